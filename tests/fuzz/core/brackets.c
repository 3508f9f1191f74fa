/* find_brackets: no more brackets than a SEB has room for, and their number is that of all SEBs. */
#include "block.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    block all;
    if (!open_block(&all, data, size))
        return 0;
    int64_t *counts = array_of(all.seb_count, sizeof *counts);
    double *times = array_of(all.totals[1], sizeof *times);
    int64_t found = find_brackets(all.buf, all.sebs, all.seb_count, all.lay, counts, times);
    for (int64_t seb = 0; seb < all.seb_count; seb++) {
        HOLDS(counts[seb] >= IRREGULAR && 2 * counts[seb] <= all.sebs[seb].events);
        found -= counts[seb] > 0 ? counts[seb] : 0;
    }
    HOLDS(found == 0);
    free(times);
    free(counts);
    close_block(&all);
    return 0;
}
