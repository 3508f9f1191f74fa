/* The marks of one SEB, paired to brackets. */
#ifndef REWRITELOG_BRACKETS_H
#define REWRITELOG_BRACKETS_H

#include "core.h"

/* Whether the event at `at`, which the walk has checked, is a mark. */
bool is_mark(const uint8_t *buf, int64_t at, const layout *lay);

/* Return the largest rounding error of the duration of a SEB, in seconds. */
double rounding_of(double start, double end);

/* Pair the marks among the events whose count is at `events`: write start and end of each bracket
   to `times`, which has room for a number for each event. Return the number of brackets, or
   IRREGULAR if the marks do not pair up in order, from 0 to `latest`. Times beyond `duration`
   become `duration`. */
int64_t pair_marks(const uint8_t *buf, int64_t events, const layout *lay, double duration,
                   double latest, double *times);

#endif
