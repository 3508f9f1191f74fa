/* What the files that walk through records share: the walk over a SEB, its marks, faults. */
#ifndef REWRITELOG_WALK_H
#define REWRITELOG_WALK_H

#include "bytes.h"
#include "core.h"

enum { PROJECTIONS_EVENT = 1, PRINT_EVENT, MARK_EVENT };

/* Set the fault; return -1, which stands for no offset. */
static inline int64_t set_fault(int64_t *fault, int64_t code, int64_t at, int64_t value)
{
    fault[FAULT_CODE] = code;
    fault[FAULT_AT] = at;
    fault[FAULT_VALUE] = value;
    return -1;
}

/* Return the offset after the event at `at`, which the walk has checked. */
static inline int64_t after_event(const uint8_t *buf, int64_t at, const layout *lay)
{
    int64_t number = at + lay->event_bytes, text = number + lay->count_bytes;
    return buf[at] == PROJECTIONS_EVENT ? text : text + load_i4(buf + number, lay->swap);
}

/* Check the SEB at `at` and fill it in; return the offset after it, or -1 with a fault if it is
   damaged or does not end before `end`. */
int64_t skip_seb(const uint8_t *buf, int64_t at, int64_t end, const layout *lay, walked_seb *seb,
                 int64_t *fault);

/* Return the offset of the first record of a list of a SEB that the walk has checked. */
static inline int64_t list_at(const walked_seb *seb, int64_t list, const layout *lay)
{
    if (list == MESSAGES_OF_SEB)
        return seb->at + lay->seb_bytes + lay->count_bytes;
    if (list == EVENTS_OF_SEB)
        return seb->events_at + lay->count_bytes;
    int64_t backward = seb->backward_at + lay->count_bytes;
    bool is_forward = list == FORWARD_OF_SEB;
    return backward + is_forward * (seb->backward * lay->count_bytes + lay->count_bytes);
}

/* Whether the event at `at`, which the walk has checked, is a mark. */
bool is_mark(const uint8_t *buf, int64_t at, const layout *lay);

/* Return the largest rounding error of the duration of a SEB, in seconds. */
double rounding_of(double start, double end);

/* Pair the marks among the events of a SEB: write start and end of each bracket to `times`, which
   has room for a number for each event. Return the number of brackets, or IRREGULAR if the marks do
   not pair up in order, from 0 to `latest`. Times beyond `duration` become `duration`. */
int64_t pair_marks(const uint8_t *buf, const walked_seb *seb, const layout *lay, double duration,
                   double latest, double *times);

#endif
