/* gather and scatter give back the same bytes; names are numbered by what they are. */
#include "block.h"

/* Gather a field of some records, if this log version has it, and scatter it over a cleared copy:
   the field is as it was. */
static void check_field(const block *all, const int64_t *at, int64_t count, int64_t field,
                        int64_t width)
{
    if (field < 0)
        return;
    uint8_t *column = array_of(count * width, 1), *copy = array_of(all->len, 1);
    gather(all->buf, at, count, field, width, width, all->lay->swap, column);
    scatter(copy, at, count, field, width, width, all->lay->swap, column);
    for (int64_t k = 0; k < count; k++)
        HOLDS(!memcmp(copy + at[k] + field, all->buf + at[k] + field, (size_t)width));
    free(column);
    free(copy);
}

/* Return whether two names in the buffer are the same. */
static bool same_name(const block *all, int64_t one, int64_t other)
{
    const char *text = (const char *)all->buf;
    return !strncmp(text + one, text + other, (size_t)all->lay->name_bytes);
}

static void check_names(const block *all, const int64_t *seb_at)
{
    int64_t width = all->lay->name_bytes, count = all->seb_count, slots_len = 1;
    int64_t *at = array_of(count, sizeof *at), *numbers = array_of(count, sizeof *numbers);
    int64_t *bytes = array_of(count, sizeof *bytes);
    while (slots_len <= count)
        slots_len *= 2;
    int32_t *slots = array_of(slots_len, sizeof *slots);
    int64_t *first = array_of(count, sizeof *first);
    for (int64_t k = 0; k < count; k++)
        at[k] = seb_at[k] + all->lay->seb_name, bytes[k] = width;
    int64_t known = number_texts(all->buf, at, count, bytes, true, (uint64_t)count, slots,
                                 slots_len, first, numbers);
    HOLDS(known <= count);
    for (int64_t k = 0; k < count; k++) {
        HOLDS(numbers[k] >= 0 && numbers[k] < known);
        HOLDS(same_name(all, at[k], at[first[numbers[k]]]));
    }
    for (int64_t k = 1; k < known; k++)
        HOLDS(!same_name(all, at[first[k]], at[first[k - 1]]));
    free(at);
    free(bytes);
    free(numbers);
    free(slots);
    free(first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    block all;
    if (!open_block(&all, data, size))
        return 0;
    int64_t *sebs = seb_offsets(&all);
    check_field(&all, sebs, all.seb_count, all.lay->seb_start_time, 8);
    check_field(&all, sebs, all.seb_count, all.lay->seb_name, all.lay->name_bytes);
    check_field(&all, all.record_at[0], all.totals[0], all.lay->message_msg_id, 4);
    check_field(&all, all.record_at[1], all.totals[1], all.lay->event_bytes, 4);
    check_field(&all, all.record_at[3], all.totals[3], 0, all.lay->count_bytes);
    check_names(&all, sebs);
    free(sebs);
    close_block(&all);
    return 0;
}
