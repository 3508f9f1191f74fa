/* The walk over one SEB and the marks in it, for what follows it through a checked buffer. */
#ifndef REWRITELOG_WALK_H
#define REWRITELOG_WALK_H

#include "bytes.h"
#include "core.h"

enum { PROJECTIONS_EVENT = 1, PRINT_EVENT, MARK_EVENT };

/* Set the fault; return -1, which is not an offset. */
static inline int64_t set_fault(int64_t *fault, int64_t code, int64_t at, int64_t value)
{
    fault[FAULT_CODE] = code;
    fault[FAULT_AT] = at;
    fault[FAULT_VALUE] = value;
    return -1;
}

/* The offsets of the parts of a SEB: each begins with its count. */
typedef struct {
    int64_t messages, events, backward, forward, next;
} seb_parts;

/* Return the offset after the event at `at`, which the walk has checked. */
static inline int64_t after_event(const uint8_t *buf, int64_t at, const layout *lay)
{
    int64_t number = at + lay->event_bytes, text = number + lay->count_bytes;
    return buf[at] == PROJECTIONS_EVENT ? text : text + load_i4(buf + number, lay->swap);
}

/* Check the SEB at `at` and fill in its parts; return the offset after it, or -1 with a fault if it
   is damaged or does not end before `end`. */
int64_t skip_seb(const uint8_t *buf, int64_t at, int64_t end, const layout *lay, seb_parts *parts,
                 int64_t *fault);

/* Return the parts of the SEB at `at`, which the walk has checked. */
static inline seb_parts parts_of(const uint8_t *buf, int64_t at, const layout *lay)
{
    seb_parts parts = {.messages = at + lay->seb_bytes};
    parts.events = parts.messages + lay->count_bytes
                   + load_i4(buf + parts.messages, lay->swap) * lay->message_bytes;
    int64_t events = load_i4(buf + parts.events, lay->swap);
    parts.backward = parts.events + lay->count_bytes;
    for (int64_t k = 0; k < events; k++)
        parts.backward = after_event(buf, parts.backward, lay);
    parts.forward = parts.backward + lay->count_bytes
                    + load_i4(buf + parts.backward, lay->swap) * lay->dependency_bytes;
    parts.next = parts.forward + lay->count_bytes
                 + load_i4(buf + parts.forward, lay->swap) * lay->dependency_bytes;
    return parts;
}

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
