# find_package(tracebigsim 0.1) takes any version from 0.1 on; the version is that of pkg-config.
file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/../pkgconfig/tracebigsim.pc" PACKAGE_VERSION REGEX "^Version: ")
string(REPLACE "Version: " "" PACKAGE_VERSION "${PACKAGE_VERSION}")

if(NOT PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()

if(PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
