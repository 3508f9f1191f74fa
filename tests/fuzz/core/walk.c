/* walk and locate: they agree, and what they find lies in the buffer, in order. */
#include "block.h"

/* Walk each piece SEB by SEB, and compare with what was found in one walk. */
static void check_walk(const block *all)
{
    const walked_seb *sebs = all->sebs;
    for (int64_t piece = 0; piece < all->pieces; piece++) {
        int64_t at = all->starts[piece], count = all->counts[piece], walked = 0;
        int64_t fault[FAULT_SIZE] = {0};
        walked_seb seb = {0};
        const int64_t *found = all->faults + FAULT_SIZE * piece;
        for (int64_t one = 1; walked < count; walked++) {
            int64_t end = all->ends[piece];
            memset(fault, 0, sizeof fault);
            walk(all->buf, all->len, &at, 1, &end, &one, all->lay, &seb, fault);
            at = end;
            if (one == 0)
                break;
            HOLDS(!memcmp(&seb, sebs++, sizeof seb));
        }
        HOLDS(walked == all->walked[piece] && at == all->after[piece]);
        HOLDS(at >= all->starts[piece] && at <= all->ends[piece]);
        if (found[FAULT_CODE] == BYTES_LEFT_OVER)
            HOLDS(found[FAULT_VALUE] == all->ends[piece] - at);
        else if (walked < count)
            HOLDS(fault[FAULT_CODE] == found[FAULT_CODE] && fault[FAULT_AT] == found[FAULT_AT]
                  && fault[FAULT_VALUE] == found[FAULT_VALUE]);
    }
}

/* Check that records of one kind are those that the SEBs count, and have room for `bytes`. */
static void check_records(const block *all, int kind, int64_t bytes)
{
    int64_t next = 0;
    for (int64_t seb = 0; seb < all->seb_count; seb++)
        for (int64_t k = 0; k < listed(all->sebs + seb, kind); k++, next++) {
            HOLDS(all->record_seb[kind][next] == seb);
            HOLDS(all->record_at[kind][next] > all->sebs[seb].at);
            HOLDS(all->record_at[kind][next] + bytes <= all->len);
            HOLDS(!next || all->record_at[kind][next] > all->record_at[kind][next - 1]);
        }
    HOLDS(next == all->totals[kind]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    block all;
    if (!open_block(&all, data, size))
        return 0;
    check_walk(&all);
    check_records(&all, 0, all.lay->message_bytes);
    check_records(&all, 1, all.lay->event_bytes + all.lay->count_bytes);
    check_records(&all, 2, all.lay->count_bytes);
    check_records(&all, 3, all.lay->count_bytes);
    close_block(&all);
    return 0;
}
