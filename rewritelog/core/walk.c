/* The walk over timelines: the one place where counts in a log are checked against its bytes. Then
   brackets: the pairs of start and end marks among the log events of a SEB. */
#include "walk.h"

#include <float.h>
#include <math.h>

#ifdef HEADER_CRC32 /* given by the build: a library that is older than its header is not loaded */
CORE const uint32_t header_crc32 = HEADER_CRC32;
#endif

/* Return the offset after a list of `size`-byte items that begins at `at` with their count, or -1.
   `code` is the fault of a negative count; the next code is that of a list that does not fit. */
static int64_t skip_list(const uint8_t *buf, int64_t at, int64_t end, int64_t size,
                         const layout *lay, int64_t *fault, int64_t code, int64_t *count)
{
    if (lay->count_bytes > end - at)
        return set_fault(fault, SEB_TRUNCATED, at, 0);
    *count = load_i4(buf + at, lay->swap);
    if (*count < 0)
        return set_fault(fault, code, at, *count);
    if (*count * size > end - at - lay->count_bytes)
        return set_fault(fault, code + 1, at, *count);
    return at + lay->count_bytes + *count * size;
}

/* Return the offset after a list of events that begins at `at` with their count, or -1. */
static int64_t skip_events(const uint8_t *buf, int64_t at, int64_t end, const layout *lay,
                           int64_t *fault, int64_t *count)
{
    int64_t smallest = lay->event_bytes + lay->count_bytes;
    if (skip_list(buf, at, end, smallest, lay, fault, EVENT_COUNT_NEGATIVE, count) < 0)
        return -1;
    int64_t offset = at + lay->count_bytes;
    for (int64_t k = 0; k < *count; k++) {
        if (smallest > end - offset)
            return set_fault(fault, EVENTS_TRUNCATED, at, *count);
        int64_t type = (int8_t)buf[offset];
        if (type != PROJECTIONS_EVENT && type != PRINT_EVENT && type != MARK_EVENT)
            return set_fault(fault, EVENT_TYPE, offset, type);
        if (type != PROJECTIONS_EVENT) {
            int64_t length = load_i4(buf + offset + lay->event_bytes, lay->swap);
            if (length < 0)
                return set_fault(fault, TEXT_NEGATIVE, offset + lay->event_bytes, length);
            if (length > end - offset - smallest)
                return set_fault(fault, TEXT_TRUNCATED, offset + lay->event_bytes, length);
            offset += length;
        }
        offset += smallest;
    }
    return offset;
}

int64_t skip_seb(const uint8_t *buf, int64_t at, int64_t end, const layout *lay, walked_seb *seb,
                 int64_t *fault)
{
    if (lay->seb_bytes + lay->count_bytes > end - at)
        return set_fault(fault, SEB_TRUNCATED, at, 0);
    seb->at = at;
    seb->events_at = skip_list(buf, at + lay->seb_bytes, end, lay->message_bytes, lay, fault,
                               MESSAGE_COUNT_NEGATIVE, &seb->messages);
    if (seb->events_at < 0)
        return -1;
    seb->backward_at = skip_events(buf, seb->events_at, end, lay, fault, &seb->events);
    if (seb->backward_at < 0)
        return -1;
    int64_t forward_at = skip_list(buf, seb->backward_at, end, lay->count_bytes, lay, fault,
                                   BACKWARD_NEGATIVE, &seb->backward);
    if (forward_at < 0)
        return -1;
    return skip_list(buf, forward_at, end, lay->count_bytes, lay, fault, FORWARD_NEGATIVE,
                     &seb->forward);
}

void walk(const uint8_t *buf, int64_t buf_len, const int64_t *starts, int64_t starts_len,
          int64_t *ends, int64_t *counts, const layout *lay, walked_seb *sebs, int64_t *faults)
{
    for (int64_t piece = 0; piece < starts_len; piece++) {
        int64_t *fault = faults + FAULT_SIZE * piece;
        int64_t at = starts[piece], end = ends[piece] < buf_len ? ends[piece] : buf_len, seb = 0;
        fault[FAULT_PIECE] = piece;
        for (; seb < counts[piece]; seb++) {
            int64_t next = at < 0 ? -1 : skip_seb(buf, at, end, lay, sebs, fault);
            if (next < 0)
                break;
            sebs++;
            at = next;
        }
        if (seb == counts[piece] && at != ends[piece])
            set_fault(fault, BYTES_LEFT_OVER, at, ends[piece] - at);
        ends[piece] = at;
        fault[FAULT_SEB] = counts[piece] = seb;
    }
}

void locate(const uint8_t *buf, const walked_seb *sebs, int64_t sebs_len, const layout *lay,
            int64_t list, int64_t *seb, int64_t *at)
{
    int64_t size = list == MESSAGES_OF_SEB ? lay->message_bytes : lay->count_bytes;
    for (int64_t k = 0; k < sebs_len; k++) {
        const walked_seb *own = sebs + k;
        int64_t counts[SEB_LISTS] = {own->messages, own->events, own->backward, own->forward};
        int64_t next = list_at(own, list, lay);
        for (int64_t record = 0; record < counts[list]; record++) {
            *seb++ = k;
            *at++ = next;
            next = list == EVENTS_OF_SEB ? after_event(buf, next, lay) : next + size;
        }
    }
}

enum mark { NO_MARK, START_MARK, END_MARK };

/* Return whether the `length` bytes of a text begin with `beginning`. */
static bool begins_with(const uint8_t *text, int64_t length, const char *beginning)
{
    int64_t beginning_bytes = (int64_t)strlen(beginning);
    return length >= beginning_bytes && !memcmp(text, beginning, (size_t)beginning_bytes);
}

static enum mark mark_at(const uint8_t *buf, int64_t at, const layout *lay)
{
    if (buf[at] == PROJECTIONS_EVENT)
        return NO_MARK;
    int64_t length = load_i4(buf + at + lay->event_bytes, lay->swap);
    const uint8_t *text = buf + at + lay->event_bytes + lay->count_bytes;
    if (begins_with(text, length, "startTraceBigSim"))
        return START_MARK;
    return begins_with(text, length, "endTraceBigSim") ? END_MARK : NO_MARK;
}

bool is_mark(const uint8_t *buf, int64_t at, const layout *lay)
{
    return mark_at(buf, at, lay) != NO_MARK;
}

double rounding_of(double start, double end)
{
    double a = fabs(start), b = fabs(end);
    return 4.0 * DBL_EPSILON * (b > a ? b : a);
}

int64_t pair_marks(const uint8_t *buf, const walked_seb *seb, const layout *lay, double duration,
                   double latest, double *times)
{
    int64_t marks = 0, at = list_at(seb, EVENTS_OF_SEB, lay);
    double before = 0.0;
    for (int64_t k = 0; k < seb->events; k++, at = after_event(buf, at, lay)) {
        enum mark mark = mark_at(buf, at, lay);
        if (mark == NO_MARK)
            continue;
        double time = load_f8(buf + at + lay->event_r_time, lay->swap);
        enum mark expected = marks % 2 ? END_MARK : START_MARK;
        if (mark != expected || !(before <= time && time <= latest))
            return IRREGULAR;
        times[marks++] = before = time < duration ? time : duration;
    }
    return marks % 2 ? IRREGULAR : marks / 2;
}

int64_t find_brackets(const uint8_t *buf, const walked_seb *sebs, int64_t sebs_len,
                      const layout *lay, int64_t *counts, double *times)
{
    int64_t brackets = 0;
    for (int64_t k = 0; k < sebs_len; k++) {
        double start = load_f8(buf + sebs[k].at + lay->seb_start_time, lay->swap);
        double end = load_f8(buf + sebs[k].at + lay->seb_end_time, lay->swap);
        bool closed = end >= start;
        double duration = closed ? end - start : INFINITY;
        double latest = closed ? duration + rounding_of(start, end) : INFINITY;
        counts[k] = pair_marks(buf, sebs + k, lay, duration, latest, times + 2 * brackets);
        brackets += counts[k] > 0 ? counts[k] : 0;
    }
    return brackets;
}
