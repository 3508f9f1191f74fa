/* A hash table of distinct names: keyed FNV-1a, open addressing, linear probing. */
#include "core.h"

#include <string.h>

static int64_t name_length(const uint8_t *name, int64_t width)
{
    const uint8_t *end = memchr(name, 0, (size_t)width);
    return end ? end - name : width;
}

/* Return the slot of a name, or the free one where it would go. */
static int64_t slot_of(const uint8_t *name, int64_t length, int64_t width, uint64_t key,
                       const uint8_t *names, const int32_t *slots, int64_t mask)
{
    uint64_t mix = UINT64_C(14695981039346656037) ^ key;
    for (int64_t k = 0; k < length; k++)
        mix = (mix ^ name[k]) * UINT64_C(1099511628211);
    int64_t slot = (int64_t)(mix >> 32) & mask;
    for (; slots[slot]; slot = (slot + 1) & mask) {
        const uint8_t *known = names + (slots[slot] - 1) * width;
        if (!memcmp(known, name, (size_t)length) && (length == width || !known[length]))
            break;
    }
    return slot;
}

int64_t number_names(const uint8_t *buf, int64_t buf_len, const int64_t *at, int64_t at_len,
                     int64_t width, uint64_t key, bool adds, uint8_t *names, int32_t *slots,
                     int64_t slots_len, int64_t *known, int64_t *numbers)
{
    (void)buf_len;
    for (int64_t k = 0; k < at_len; k++) {
        const uint8_t *name = buf + at[k];
        int64_t length = name_length(name, width);
        int64_t slot = slot_of(name, length, width, key, names, slots, slots_len - 1);
        if (!slots[slot] && adds) {
            if (2 * *known >= slots_len)
                return k;
            memcpy(names + *known * width, name, (size_t)length);
            slots[slot] = (int32_t)++*known;
        }
        numbers[k] = slots[slot] - 1;
    }
    return at_len;
}
