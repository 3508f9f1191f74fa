/* The walk over timelines: the one place where counts in a log are checked against its bytes. Then
   brackets: the pairs of start and end marks among the log events of a SEB. */
#include "walk.h"

#include <float.h>
#include <math.h>

/* Return the offset after the list of `size`-byte items whose count is at `at`, or -1. `code` is
   the fault of a negative count; the next code is that of a list that does not fit. */
static int64_t skip_list(const uint8_t *buf, int64_t at, int64_t end, int64_t size,
                         const layout *lay, int64_t *fault, int64_t code)
{
    if (lay->count_bytes > end - at)
        return set_fault(fault, SEB_TRUNCATED, at, 0);
    int64_t count = load_i4(buf + at, lay->swap);
    if (count < 0)
        return set_fault(fault, code, at, count);
    if (count * size > end - at - lay->count_bytes)
        return set_fault(fault, code + 1, at, count);
    return at + lay->count_bytes + count * size;
}

/* Return the offset after the events whose count is at `at`, or -1. */
static int64_t skip_events(const uint8_t *buf, int64_t at, int64_t end, const layout *lay,
                           int64_t *fault)
{
    int64_t smallest = lay->event_bytes + lay->index_bytes;
    if (skip_list(buf, at, end, smallest, lay, fault, EVENT_COUNT_NEGATIVE) < 0)
        return -1;
    int64_t count = load_i4(buf + at, lay->swap);
    int64_t offset = at + lay->count_bytes;
    for (int64_t k = 0; k < count; k++) {
        if (smallest > end - offset)
            return set_fault(fault, EVENTS_TRUNCATED, at, count);
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

int64_t skip_seb(const uint8_t *buf, int64_t at, int64_t end, const layout *lay, seb_parts *parts,
                 int64_t *fault)
{
    if (lay->seb_bytes + lay->count_bytes > end - at)
        return set_fault(fault, SEB_TRUNCATED, at, 0);
    parts->messages = at + lay->seb_bytes;
    parts->events = skip_list(buf, parts->messages, end, lay->message_bytes, lay, fault,
                              MESSAGE_COUNT_NEGATIVE);
    if (parts->events < 0)
        return -1;
    parts->backward = skip_events(buf, parts->events, end, lay, fault);
    if (parts->backward < 0)
        return -1;
    parts->forward = skip_list(buf, parts->backward, end, lay->dependency_bytes, lay, fault,
                               BACKWARD_NEGATIVE);
    if (parts->forward < 0)
        return -1;
    return parts->next = skip_list(buf, parts->forward, end, lay->dependency_bytes, lay, fault,
                                   FORWARD_NEGATIVE);
}

/* Add the counts of a checked SEB to the totals. */
static void add_counts(const uint8_t *buf, seb_parts parts, const layout *lay, int64_t *totals)
{
    totals[0] += load_i4(buf + parts.messages, lay->swap);
    totals[1] += load_i4(buf + parts.events, lay->swap);
    totals[2] += load_i4(buf + parts.backward, lay->swap);
    totals[3] += load_i4(buf + parts.forward, lay->swap);
}

void tally(const uint8_t *buf, int64_t buf_len, const int64_t *starts, int64_t starts_len,
           int64_t *ends, int64_t *counts, const layout *lay, int64_t *totals, int64_t *faults)
{
    for (int64_t piece = 0; piece < starts_len; piece++) {
        int64_t *fault = faults + FAULT_SIZE * piece;
        int64_t at = starts[piece], end = ends[piece] < buf_len ? ends[piece] : buf_len;
        int64_t seb = 0;
        fault[FAULT_PIECE] = piece;
        for (; seb < counts[piece]; seb++) {
            seb_parts parts;
            int64_t next = at < 0 ? -1 : skip_seb(buf, at, end, lay, &parts, fault);
            if (next < 0)
                break;
            add_counts(buf, parts, lay, totals);
            at = next;
        }
        if (seb == counts[piece] && at != ends[piece])
            set_fault(fault, BYTES_LEFT_OVER, at, ends[piece] - at);
        ends[piece] = at;
        fault[FAULT_SEB] = counts[piece] = seb;
    }
}

void locate(const uint8_t *buf, const int64_t *starts, int64_t starts_len, const int64_t *walked,
            const layout *lay, int64_t *sebs, int64_t *message_seb, int64_t *message_at,
            int64_t *event_seb, int64_t *event_at, int64_t *backward_seb, int64_t *backward_at,
            int64_t *forward_seb, int64_t *forward_at)
{
    int64_t seb = 0;
    for (int64_t piece = 0; piece < starts_len; piece++) {
        int64_t at = starts[piece];
        for (int64_t k = 0; k < walked[piece]; k++, seb++) {
            seb_parts parts = parts_of(buf, at, lay);
            int64_t *row = sebs + 5 * seb;
            row[0] = at;
            row[1] = load_i4(buf + parts.messages, lay->swap);
            row[2] = load_i4(buf + parts.events, lay->swap);
            row[3] = load_i4(buf + parts.backward, lay->swap);
            row[4] = load_i4(buf + parts.forward, lay->swap);
            for (int64_t m = 0; m < row[1]; m++) {
                *message_seb++ = seb;
                *message_at++ = parts.messages + lay->count_bytes + m * lay->message_bytes;
            }
            int64_t event = parts.events + lay->count_bytes;
            for (int64_t e = 0; e < row[2]; e++) {
                *event_seb++ = seb;
                *event_at++ = event;
                event = after_event(buf, event, lay);
            }
            for (int64_t b = 0; b < row[3]; b++) {
                *backward_seb++ = seb;
                *backward_at++ = parts.backward + lay->count_bytes + b * lay->dependency_bytes;
            }
            for (int64_t f = 0; f < row[4]; f++) {
                *forward_seb++ = seb;
                *forward_at++ = parts.forward + lay->count_bytes + f * lay->dependency_bytes;
            }
            at = parts.next;
        }
    }
}

enum mark { NO_MARK, START_MARK, END_MARK };

/* Return whether the `length` bytes of a text begin with `beginning`. */
static bool begins_with(const uint8_t *text, int64_t length, const char *beginning)
{
    int64_t wanted = (int64_t)strlen(beginning);
    return length >= wanted && !memcmp(text, beginning, (size_t)wanted);
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

int64_t pair_marks(const uint8_t *buf, int64_t events, const layout *lay, double duration,
                   double latest, double *times)
{
    int64_t count = load_i4(buf + events, lay->swap), known = 0;
    int64_t at = events + lay->count_bytes;
    double before = 0.0;
    for (int64_t k = 0; k < count; k++, at = after_event(buf, at, lay)) {
        enum mark mark = mark_at(buf, at, lay);
        if (mark == NO_MARK)
            continue;
        double time = load_f8(buf + at + lay->event_r_time, lay->swap);
        enum mark expected = known % 2 ? END_MARK : START_MARK;
        if (mark != expected || !(before <= time && time <= latest))
            return IRREGULAR;
        times[known++] = before = time < duration ? time : duration;
    }
    return known % 2 ? IRREGULAR : known / 2;
}

int64_t find_brackets(const uint8_t *buf, int64_t buf_len, const int64_t *starts,
                      int64_t starts_len, const int64_t *walked, const layout *lay,
                      int64_t *counts, double *times)
{
    (void)buf_len;
    int64_t found = 0;
    for (int64_t piece = 0; piece < starts_len; piece++) {
        int64_t at = starts[piece];
        for (int64_t k = 0; k < walked[piece]; k++, counts++) {
            seb_parts parts = parts_of(buf, at, lay);
            double start = load_f8(buf + at + lay->seb_start_time, lay->swap);
            double end = load_f8(buf + at + lay->seb_end_time, lay->swap);
            bool closed = end >= start;
            double duration = closed ? end - start : INFINITY;
            double latest = closed ? duration + rounding_of(start, end) : INFINITY;
            *counts = pair_marks(buf, parts.events, lay, duration, latest, times + 2 * found);
            found += *counts > 0 ? *counts : 0;
            at = parts.next;
        }
    }
    return found;
}
