/* The functions that the Fortran module calls: compile this with the macros that choose what
 * brackets do (see tracebigsim.h), and link it with tracebigsim.f90. */
#include "tracebigsim.h"

#include <stddef.h>
#include <string.h>

#if defined(TRACEBIGSIM_OFF)
#define tracebigsim_start_for_(event, length, params, count) \
  ((void)event, (void)length, (void)params, (void)count)
#define tracebigsim_end_ tracebigsim_start_for_
#endif

#define WEAK __attribute__((weak)) /* several objects of a program may have these functions */

WEAK void tracebigsim_fortran_start(void) { startTraceBigSim(); }

WEAK void tracebigsim_fortran_start_for(const char *event, size_t length, const double *params,
                                        size_t count) {
  tracebigsim_start_for_(event, length, params, count);
}

WEAK void tracebigsim_fortran_end(const char *event, size_t length, const double *params,
                                  size_t count) {
  tracebigsim_end_(event, length, params, count);
}

WEAK void tracebigsim_fortran_flush(void) { flushTraceBigSim(); }
