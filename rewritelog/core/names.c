/* A hash table of distinct names: keyed FNV-1a, open addressing, linear probing. */
#include "core.h"

#include <string.h>

/* Return the slot of a name, or the free one where it would go. */
static int64_t slot_of(const uint8_t *buf, int64_t at, int64_t width, uint64_t key,
                       const int64_t *first, const int32_t *slots, int64_t mask)
{
    const uint8_t *name = buf + at, *end = memchr(name, 0, (size_t)width);
    int64_t length = end ? end - name : width;
    uint64_t mix = UINT64_C(14695981039346656037) ^ key;
    for (int64_t k = 0; k < length; k++)
        mix = (mix ^ name[k]) * UINT64_C(1099511628211);
    int64_t slot = (int64_t)(mix >> 32) & mask;
    for (; slots[slot]; slot = (slot + 1) & mask) {
        const uint8_t *known = buf + first[slots[slot] - 1];
        if (!memcmp(known, name, (size_t)length) && (length == width || !known[length]))
            break;
    }
    return slot;
}

int64_t number_names(const uint8_t *buf, const int64_t *at, int64_t at_len, int64_t width,
                     uint64_t key, int32_t *slots, int64_t slots_len, int64_t *first,
                     int64_t *numbers)
{
    int64_t known = 0;
    for (int64_t k = 0; k < at_len; k++) {
        int64_t slot = slot_of(buf, at[k], width, key, first, slots, slots_len - 1);
        if (!slots[slot]) {
            first[known++] = at[k];
            slots[slot] = (int32_t)known;
        }
        numbers[k] = slots[slot] - 1;
    }
    return known;
}
