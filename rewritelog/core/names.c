/* A hash table of distinct texts: a hash with a secret key, open addressing, linear probing. */
#include "core.h"

#include <string.h>

/* Return the length of a text of at most `most` bytes, which ends before any NUL if it is a name. */
static int64_t length_of(const uint8_t *text, int64_t most, bool is_name)
{
    const uint8_t *end = is_name ? memchr(text, 0, (size_t)most) : NULL;
    return end ? end - text : most;
}

/* Return the bits mixed by a secret odd factor, a bijection. Words that differ only in the highest
   bit have products that do so too, whatever the factor: hence the fold and a second product. */
static uint64_t mixed(uint64_t bits, uint64_t factor)
{
    bits *= factor;
    bits ^= bits >> 32;
    bits *= factor;
    return bits ^ bits >> 32;
}

/* Return the slot where the search for a text begins; `slots_len` is a power of two. */
static int64_t slot_of(const uint8_t *text, int64_t length, uint64_t key, int64_t slots_len)
{
    uint64_t mix = key ^ (uint64_t)length, word;
    for (; length >= 8; text += 8, length -= 8) {
        memcpy(&word, text, 8);
        mix = mixed(mix ^ word, key | 1);
    }
    word = 0;
    memcpy(&word, text, (size_t)length);
    return (int64_t)(mixed(mix ^ word, key | 1) >> 32) & (slots_len - 1);
}

int64_t number_texts(const uint8_t *buf, const int64_t *at, int64_t at_len, const int64_t *bytes,
                     bool are_names, uint64_t key, int32_t *slots, int64_t slots_len,
                     int64_t *first, int64_t *numbers)
{
    int64_t distinct = 0;
    for (int64_t k = 0; k < at_len; k++) {
        const uint8_t *text = buf + at[k];
        int64_t length = length_of(text, bytes[k], are_names);
        int64_t slot = slot_of(text, length, key, slots_len);
        for (; slots[slot]; slot = (slot + 1) & (slots_len - 1)) {
            int64_t row = first[slots[slot] - 1];
            if (length_of(buf + at[row], bytes[row], are_names) == length
                && !memcmp(buf + at[row], text, (size_t)length))
                break;
        }
        if (!slots[slot]) {
            first[distinct++] = k;
            slots[slot] = (int32_t)distinct;
        }
        numbers[k] = slots[slot] - 1;
    }
    return distinct;
}

void find_texts(const uint8_t *known, int64_t bytes, const uint8_t *texts, uint64_t key,
                const int32_t *slots, int64_t slots_len, int64_t *numbers, int64_t numbers_len)
{
    for (int64_t k = 0; k < numbers_len; k++) {
        const uint8_t *text = texts + k * bytes;
        int64_t slot = slot_of(text, bytes, key, slots_len);
        while (slots[slot] && memcmp(known + (slots[slot] - 1) * bytes, text, (size_t)bytes))
            slot = (slot + 1) & (slots_len - 1);
        numbers[k] = slots[slot] - 1;
    }
}
