/* patch: whatever the bytes are, it stays within them, and what it rewrites has the same SEBs; the
   high bit of the first byte keeps receive times. */
#include "block.h"

#include <math.h>

enum { RECORDS = 4 };

/* Fill in records of the first SEBs: predicted, not covered, and out of all bounds. */
static void fill(param_record *records, int64_t sebs)
{
    static const double given[RECORDS] = {1e-6, NAN, 0.5, 1.7e308};
    static const int64_t seb[RECORDS] = {0, 1, 1, 2};
    for (int k = 0; k < RECORDS; k++)
        records[k] = (param_record){.seb = seb[k] < sebs ? seb[k] : -1, .predicted_s = given[k]};
}

/* Return how many SEBs the pieces say that they have, -1 if they have no room for them. */
static int64_t claimed(const block *all)
{
    int64_t sum = 0, smallest = all->lay->seb_bytes + 4 * all->lay->count_bytes;
    for (int64_t piece = 0; piece < all->pieces; piece++) {
        if (all->counts[piece] < 0
            || all->counts[piece] * smallest > all->ends[piece] - all->starts[piece])
            return -1;
        sum += all->counts[piece];
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    block all;
    if (!open_block(&all, data, size))
        return 0;
    int64_t sebs = claimed(&all), firsts[MOST_PIECES] = {0}, counts[PATCH_COUNTS] = {0};
    if (sebs >= 0) {
        uint8_t *buf = array_of(all.len, 1), *outcomes = array_of(sebs, 1);
        memcpy(buf, all.buf, (size_t)all.len);
        int64_t *at = array_of(sebs, sizeof *at), fault[FAULT_SIZE] = {0};
        int64_t table_len = 3 * (2 + all.len / (all.lay->event_bytes + all.lay->count_bytes));
        double *factors = array_of(sebs, sizeof *factors);
        double *table = array_of(table_len, sizeof *table);
        double *sums = array_of(2 * DURATION_SUMS * all.pieces, sizeof *sums);
        param_record *records = array_of(RECORDS, sizeof *records);
        for (int64_t k = 0; k < sebs; k++)
            factors[k] = 1.9;
        fill(records, sebs);
        patch(buf, all.len, all.starts, all.pieces, all.ends, all.counts, firsts, all.lay, factors,
              data[0] & 128, records, RECORDS, table, table_len, at, outcomes, counts, sums, fault);
        HOLDS(fault[FAULT_AT] >= 0 && fault[FAULT_AT] <= all.len);
        if (fault[FAULT_CODE] == OK) {
            HOLDS(sebs == all.seb_count);
            for (int64_t k = 0; k < sebs; k++) {
                walked_seb seb = {0};
                HOLDS(at[k] == all.sebs[k].at);
                HOLDS(skip_seb(buf, at[k], all.len, all.lay, &seb, fault) > at[k]);
                HOLDS(!memcmp(&seb, all.sebs + k, sizeof seb));
            }
        }
        free(records);
        free(sums);
        free(table);
        free(factors);
        free(at);
        free(outcomes);
        free(buf);
    }
    close_block(&all);
    return 0;
}
