/* The walk over one SEB, for the functions that follow it through a checked buffer. */
#ifndef REWRITELOG_WALK_H
#define REWRITELOG_WALK_H

#include "bytes.h"
#include "core.h"

enum { PROJECTIONS_EVENT = 1, PRINT_EVENT, MARK_EVENT };

/* The offsets of the parts of a SEB: each begins with its count. */
typedef struct {
    int64_t messages, events, backward, forward, next;
} seb_parts;

/* Return the offset after the event at `at`, which the walk has checked. */
static inline int64_t after_event(const uint8_t *buf, int64_t at, const layout *lay)
{
    int64_t text = at + lay->event_bytes + lay->count_bytes;
    return buf[at] == PROJECTIONS_EVENT ? text : text + load_i4(buf + text - lay->count_bytes, lay->swap);
}

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

#endif
