/* Brackets: the pairs of start and end marks among the log events of a SEB. */
#include "brackets.h"
#include "walk.h"

#include <float.h>
#include <math.h>

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
