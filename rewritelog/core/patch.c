/* The rewrite of SEBs: their regions get new lengths, and all times in them move along.

   A SEB is divided at the marks of its brackets into regions. The mapping of times from old to new
   regions is monotonic in spite of rounding: times keep their order. */
#include "numbers.h"
#include "walk.h"

#include <math.h>

/* The regions of a SEB: `count` + 1 `old` and `new` bounds, ascending, in seconds since its start;
   the predicted length of each region, or NaN to dilate it by `factor`. */
typedef struct {
    int64_t count;
    double *old, *new, *predicted;
    double factor;
} regions;

/* The SEB that is being patched. */
typedef struct {
    uint8_t *buf;
    const layout *lay;
    bool keep_recv;
    double start, end, new_end;
    regions regions;
    int64_t *counts, *fault;
} patching;

/* Divide a SEB into regions at its `brackets`, whose bounds `old` has, if there are as many records
   or none; otherwise it is one region. Set the predicted lengths of regions from the records. */
static void lay_out(regions *r, int64_t brackets, const param_record *records, int64_t records_len,
                    double duration)
{
    bool divided = brackets > 0 && (records_len == 0 || records_len == brackets);
    r->count = divided ? 2 * brackets + 1 : 1;
    for (int64_t k = 0; k < r->count; k++)
        r->predicted[k] = divided && records_len && k % 2 ? records[k / 2].predicted_s : NAN;
    if (brackets == 0 && records_len == 1)
        r->predicted[0] = records->predicted_s;
    r->old[0] = 0.0;
    r->old[r->count] = duration;
}

/* Fill in the new bounds; return whether any region changes its length. */
static bool set_new_bounds(const regions *r)
{
    bool changed = false;
    r->new[0] = 0.0;
    for (int64_t k = 0; k < r->count; k++) {
        double length = r->old[k + 1] - r->old[k];
        double target = isnan(r->predicted[k]) ? length * r->factor : r->predicted[k];
        changed |= target != length;
        r->new[k + 1] = r->new[k] + target;
    }
    return changed;
}

/* Add a SEB's old and new durations, and those of its regions, to the sums of its piece. */
static void add_durations(const regions *r, bool bracketed, double *sums)
{
    add_to(sums + 2 * SUM_OLD, r->old[r->count]);
    add_to(sums + 2 * SUM_NEW, r->new[r->count]);
    for (int64_t k = 0; k < r->count; k++) {
        int64_t sum = k % 2 ? SUM_BRACKETED_OLD : SUM_AROUND_OLD;
        if (r->count == 1)
            sum = bracketed ? SUM_BRACKETED_OLD : SUM_WITHOUT_OLD;
        add_to(sums + 2 * sum, r->old[k + 1] - r->old[k]);
        add_to(sums + 2 * (sum + 1), r->new[k + 1] - r->new[k]);
    }
}

/* Return the region of a time from 0 to the duration. The lower bound of a region belongs to it; a
   region of zero length contains its single time. */
static int64_t region_of(double time, const regions *r)
{
    int64_t low = 0, high = r->count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (r->old[middle] < time)
            low = middle + 1;
        else
            high = middle;
    }
    return r->old[low] == time ? low : low - 1;
}

/* Return whether region `k` neither moves nor changes its length. */
static bool stays(int64_t k, const regions *r)
{
    return r->old[k] == r->new[k] && r->old[k + 1] == r->new[k + 1];
}

/* Return the new time of a time in region `k`: linear, or unchanged in a region that stays. It is not
   beyond the region's new end, which is the sum of the same terms, and rounding is monotonic. */
static double map_within(double time, int64_t k, const regions *r)
{
    if (stays(k, r))
        return time;
    double inside = time - r->old[k];
    if (inside == 0.0)
        return r->new[k];
    if (isnan(r->predicted[k]))
        return r->new[k] + inside * r->factor;
    double share = inside / (r->old[k + 1] - r->old[k]);
    return r->new[k] + share * r->predicted[k];
}

/* Return the new time of a time since the start of the SEB, which is not beyond its end. The end
   becomes the new end; a time before the SEB stays. */
static double map_time(double time, const regions *r)
{
    if (!(time >= 0.0)) /* before the SEB, or not a number */
        return time;
    if (time >= r->old[r->count])
        return r->new[r->count];
    return map_within(time, region_of(time, r), r);
}

/* Return the new value of an absolute time. In a region that stays it keeps its last bit, unless it
   would then be beyond a rounded bound of the region, where the times of the next one begin. */
static double map_moment(double moment, const patching *p)
{
    const regions *r = &p->regions;
    if (moment < p->start)
        return moment;
    if (moment >= p->end)
        return p->new_end + (moment - p->end);
    double since = moment - p->start;
    if (since >= r->old[r->count])
        return p->new_end;
    int64_t k = region_of(since, r);
    if (stays(k, r))
        return smaller(larger(moment, p->start + r->new[k]), p->start + r->new[k + 1]);
    return p->start + map_within(since, k, r);
}

/* Map the times of the message at `at`; return whether they stay finite. A receive time that was
   not finite before need not become finite. */
static bool patch_message(const patching *p, int64_t at)
{
    int64_t send_at = at + p->lay->message_send_time, recv_at = at + p->lay->message_recv_time;
    double sent = load_f8(p->buf + send_at, p->lay->swap);
    if (!isfinite(sent))
        return !set_fault(p->fault, SEND_NOT_FINITE, send_at, 0);
    p->counts[MESSAGES_OUTSIDE] += sent < p->start || sent > p->end;
    double moved = map_moment(sent, p);
    if (!isfinite(moved))
        return !set_fault(p->fault, SEND_OVERFLOW, send_at, 0);
    store_f8(p->buf + send_at, moved, p->lay->swap);
    double received = load_f8(p->buf + recv_at, p->lay->swap);
    if (!p->keep_recv && moved != sent) {
        double arrived = moved + (received - sent);
        if (isfinite(received) && !isfinite(arrived))
            return !set_fault(p->fault, RECV_OVERFLOW, recv_at, 0);
        store_f8(p->buf + recv_at, arrived, p->lay->swap);
    } else if (p->keep_recv && received < moved) {
        p->counts[MESSAGES_RECV_RAISED]++;
        store_f8(p->buf + recv_at, moved, p->lay->swap);
    }
    return true;
}

/* Map the times of the events of a SEB; marks move to the bounds of their regions. No event within
   the SEB may exceed its new duration as a reader computes it. Return whether all times that were
   finite are still finite. */
static bool patch_events(const patching *p, const walked_seb *seb)
{
    const regions *r = &p->regions;
    double old_end = r->old[r->count], latest = old_end + rounding_of(p->start, p->end);
    double limit = p->new_end - p->start;
    int64_t bound = 0, at = list_at(seb, EVENTS_OF_SEB, p->lay);
    for (int64_t k = 0; k < seb->events; k++, at = after_event(p->buf, at, p->lay)) {
        double time = load_f8(p->buf + at + p->lay->event_r_time, p->lay->swap), moved;
        if (r->count > 1 && is_mark(p->buf, at, p->lay))
            moved = smaller(r->new[++bound], limit);
        else if (time > latest)
            moved = limit + (time - old_end);
        else
            moved = smaller(map_time(smaller(time, old_end), r), limit);
        if (isfinite(time) && !isfinite(moved))
            return !set_fault(p->fault, EVENT_OVERFLOW, at + p->lay->event_r_time, 0);
        store_f8(p->buf + at + p->lay->event_r_time, moved, p->lay->swap);
    }
    return true;
}

/* Write the new times of a SEB, whose index in its timeline is `index`; return false for a fault. */
static bool patch_times(patching *p, const walked_seb *seb, int64_t index)
{
    const layout *lay = p->lay;
    int64_t at = seb->at, seqno = load_i4(p->buf + at + lay->seb_seqno, lay->swap);
    if (seqno != index)
        return !set_fault(p->fault, SEQNO_WRONG, at + lay->seb_seqno, seqno);
    double duration = p->regions.new[p->regions.count];
    p->new_end = p->start + duration;
    if (!isfinite(p->new_end))
        return !set_fault(p->fault, DURATION_OVERFLOW, at + lay->seb_end_time, 0);
    store_f8(p->buf + at + lay->seb_exec_time, duration, lay->swap);
    store_f8(p->buf + at + lay->seb_end_time, p->new_end, lay->swap);
    if (!patch_events(p, seb))
        return false;
    int64_t message = list_at(seb, MESSAGES_OF_SEB, lay);
    for (; message < seb->events_at; message += lay->message_bytes)
        if (!patch_message(p, message))
            return false;
    return true;
}

/* Return the kind of a SEB whose brackets and records do not match, or 0. */
static int irregularity(int64_t brackets, int64_t records_len)
{
    if (brackets == 0 && records_len == 1)
        return SEBS_UNMARKED_WITH_RECORD;
    if (brackets == IRREGULAR)
        return SEBS_MARKS_IRREGULAR;
    return records_len && records_len != brackets ? SEBS_RECORDS_MISMATCHED : 0;
}

/* Fill in the records of a SEB; return its outcome if any was used, or 0. */
static int use_records(const regions *r, bool paired, param_record *records, int64_t records_len)
{
    int used = 0;
    for (int64_t k = 0; k < records_len; k++) {
        param_record *record = records + k;
        record->state = RECORD_NOT_PAIRED;
        if (!paired)
            continue;
        int64_t region = r->count > 1 ? 2 * k + 1 : 0;
        bool covered = !isnan(record->predicted_s);
        record->state = covered ? RECORD_PREDICTED : RECORD_NOT_COVERED;
        record->old_s = r->old[region + 1] - r->old[region];
        record->new_s = covered ? record->predicted_s : r->new[region + 1] - r->new[region];
        if (covered && used != SEBS_BY_MODEL)
            used = record->exact ? SEBS_BY_EXACT : SEBS_BY_MODEL;
    }
    return used;
}

/* Rewrite a SEB, which has a duration and some records; return its outcome, or -1 for a fault. */
static int patch_seb(patching *p, const walked_seb *seb, int64_t index, param_record *records,
                     int64_t records_len, double *sums)
{
    regions *r = &p->regions;
    double duration = p->end - p->start, latest = duration + rounding_of(p->start, p->end);
    int64_t brackets = pair_marks(p->buf, seb, p->lay, duration, latest, r->old + 1);
    if (brackets > 0) {
        p->counts[BRACKETS] += brackets;
        p->counts[BRACKETS_WITHOUT_RECORD] += records_len ? 0 : brackets;
    }
    lay_out(r, brackets, records, records_len, duration);
    bool changed = set_new_bounds(r);
    int kind = irregularity(brackets, records_len), flag = 0;
    if (kind) {
        p->counts[kind]++;
        flag = IRREGULAR_FLAG << (kind - SEBS_MARKS_IRREGULAR);
    }
    add_durations(r, kind == SEBS_UNMARKED_WITH_RECORD, sums);
    bool paired = kind == 0 || kind == SEBS_UNMARKED_WITH_RECORD;
    int used = use_records(r, paired, records, records_len);
    if (changed && !patch_times(p, seb, index))
        return -1;
    return flag | (used ? used : changed ? SEBS_BY_DILATION : SEBS_UNCHANGED);
}

/* Return the outcome of a SEB, -1 for a fault. */
static int patch_timed(patching *p, const walked_seb *seb, int64_t index, param_record *records,
                       int64_t records_len, double *sums)
{
    int64_t start_at = seb->at + p->lay->seb_start_time;
    p->start = load_f8(p->buf + start_at, p->lay->swap);
    p->end = load_f8(p->buf + seb->at + p->lay->seb_end_time, p->lay->swap);
    if (!(isfinite(p->start) && isfinite(p->end)))
        return (int)set_fault(p->fault, TIME_NOT_FINITE, start_at, 0);
    if (p->end > p->start)
        return patch_seb(p, seb, index, records, records_len, sums);
    for (int64_t k = 0; k < records_len; k++)
        records[k].state = RECORD_LEFT_ALONE;
    return p->end == p->start ? SEBS_ZERO_LENGTH : SEBS_UNCLOSED;
}

void patch(uint8_t *buf, int64_t buf_len, const int64_t *starts, int64_t starts_len,
           const int64_t *ends, const int64_t *counts, const int64_t *firsts, const layout *lay,
           const double *factors, bool keep_recv, param_record *records, int64_t records_len,
           double *table, int64_t table_len, int64_t *sebs, uint8_t *outcomes,
           int64_t *patch_counts, double *sums, int64_t *fault)
{
    int64_t bounds = table_len / 3, row = 0, first = 0, last = 0;
    patching p = {
        .buf = buf, .lay = lay, .keep_recv = keep_recv, .counts = patch_counts, .fault = fault,
        .regions = {.old = table, .new = table + bounds, .predicted = table + 2 * bounds},
    };
    for (int64_t piece = 0; piece < starts_len; piece++, sums += 2 * DURATION_SUMS) {
        int64_t at = starts[piece], end = ends[piece] < buf_len ? ends[piece] : buf_len;
        fault[FAULT_PIECE] = piece;
        for (int64_t k = 0; k < counts[piece]; k++, row++) {
            walked_seb seb;
            fault[FAULT_SEB] = k;
            at = skip_seb(buf, at, end, lay, &seb, fault);
            if (at < 0)
                return;
            for (first = last; first < records_len && records[first].seb < row;)
                first++;
            for (last = first; last < records_len && records[last].seb == row;)
                last++;
            p.regions.factor = factors[row];
            int outcome = patch_timed(&p, &seb, firsts[piece] + k, records + first, last - first,
                                      sums);
            if (outcome < 0)
                return;
            sebs[row] = seb.at;
            outcomes[row] = (uint8_t)outcome;
            patch_counts[SEBS]++;
            patch_counts[outcome % IRREGULAR_FLAG]++;
            patch_counts[MESSAGES] += seb.messages;
        }
        fault[FAULT_SEB] = counts[piece];
        if (at != ends[piece]) {
            set_fault(fault, BYTES_LEFT_OVER, at, ends[piece] - at);
            return;
        }
    }
}
