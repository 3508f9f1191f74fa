/* For BigSim emulations of C and Fortran programs: compile this as C++, with the emulator's
 * compiler wrapper and the same macros as the program, and link it. C++ programs do not need it. */
#include "tracebigsim.h"
