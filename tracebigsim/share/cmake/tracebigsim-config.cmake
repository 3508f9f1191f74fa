# find_package(tracebigsim CONFIG), with -Dtracebigsim_DIR="$(tracebigsim --cmake-dir)", gives these
# targets, which are its COMPONENTS too:
#
#   tracebigsim::tracebigsim   tracebigsim.h, for C and C++
#   tracebigsim::fortran       the Fortran module, compiled once, and its C source, compiled with
#                              the target; in projects of the languages C and Fortran
#   tracebigsim::emulation     the C++ source that C and Fortran programs need in an emulation
get_filename_component(_tracebigsim_include "${CMAKE_CURRENT_LIST_DIR}/../../include" ABSOLUTE)

if(NOT TARGET tracebigsim::tracebigsim)
  add_library(tracebigsim::tracebigsim INTERFACE IMPORTED)
  set_target_properties(tracebigsim::tracebigsim PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_tracebigsim_include}")

  add_library(tracebigsim::emulation INTERFACE IMPORTED)
  set_target_properties(tracebigsim::emulation PROPERTIES
    INTERFACE_SOURCES "${_tracebigsim_include}/tracebigsim_emulation.cpp"
    INTERFACE_LINK_LIBRARIES tracebigsim::tracebigsim)
endif()

# Apart from the others: a subproject may add a language after the first find_package.
if(NOT TARGET tracebigsim::fortran)
  if(CMAKE_Fortran_COMPILER_LOADED AND CMAKE_C_COMPILER_LOADED)
    if(NOT TARGET tracebigsim_module)
      set(_tracebigsim_modules "${CMAKE_CURRENT_BINARY_DIR}/tracebigsim")
      add_library(tracebigsim_module STATIC EXCLUDE_FROM_ALL "${_tracebigsim_include}/tracebigsim.f90")
      set_target_properties(tracebigsim_module PROPERTIES
        POSITION_INDEPENDENT_CODE ON
        Fortran_MODULE_DIRECTORY "${_tracebigsim_modules}"
        INTERFACE_INCLUDE_DIRECTORIES "${_tracebigsim_modules}")
      unset(_tracebigsim_modules)
    endif()

    add_library(tracebigsim::fortran INTERFACE IMPORTED)
    set_target_properties(tracebigsim::fortran PROPERTIES
      INTERFACE_SOURCES "${_tracebigsim_include}/tracebigsim_fortran.c"
      INTERFACE_LINK_LIBRARIES "tracebigsim::tracebigsim;tracebigsim_module")
  elseif(CMAKE_Fortran_COMPILER_LOADED)
    message(STATUS "tracebigsim::fortran is left out: it needs the project's languages C and Fortran")
  endif()
endif()

foreach(_tracebigsim_component IN LISTS tracebigsim_FIND_COMPONENTS)
  if(TARGET tracebigsim::${_tracebigsim_component})
    set(tracebigsim_${_tracebigsim_component}_FOUND TRUE)
  elseif(tracebigsim_FIND_REQUIRED_${_tracebigsim_component})
    set(tracebigsim_FOUND FALSE)
    set(tracebigsim_NOT_FOUND_MESSAGE
      "There is no target tracebigsim::${_tracebigsim_component} for the languages of this project.")
  endif()
endforeach()

unset(_tracebigsim_component)
unset(_tracebigsim_include)
