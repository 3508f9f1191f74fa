/* Fields of records anywhere in a buffer, to contiguous columns and back; sums of columns. */
#include "bytes.h"
#include "core.h"
#include "numbers.h"

/* Copy the `width` bytes of a field; `swap` reverses each number of `number` bytes in them. */
static inline void copy_field(uint8_t *to, const uint8_t *from, int64_t width, int64_t number,
                              bool swap)
{
    if (width == 8 && number == 8) {
        uint64_t word;
        memcpy(&word, from, sizeof word);
        word = swap ? __builtin_bswap64(word) : word;
        memcpy(to, &word, sizeof word);
    } else if (number == 4) {
        for (int64_t k = 0; k < width; k += 4) {
            uint32_t word;
            memcpy(&word, from + k, sizeof word);
            word = swap ? __builtin_bswap32(word) : word;
            memcpy(to + k, &word, sizeof word);
        }
    } else {
        for (int64_t k = 0; k < width; k++)
            to[k] = from[swap ? k - k % number + number - 1 - k % number : k];
    }
}

void gather(const uint8_t *buf, const int64_t *at, int64_t at_len, int64_t field,
            int64_t width, int64_t number, bool swap, uint8_t *column)
{
    if (width == 4 && number == 4) /* most fields are such numbers */
        for (int64_t k = 0; k < at_len; k++)
            copy_field(column + k * 4, buf + at[k] + field, 4, 4, swap);
    else
        for (int64_t k = 0; k < at_len; k++)
            copy_field(column + k * width, buf + at[k] + field, width, number, swap);
}

void scatter(uint8_t *buf, const int64_t *at, int64_t at_len, int64_t field,
             int64_t width, int64_t number, bool swap, const uint8_t *column)
{
    for (int64_t k = 0; k < at_len; k++)
        copy_field(buf + at[k] + field, column + k * width, width, number, swap);
}

void differing_bits(const uint8_t *a, const int64_t *a_at, int64_t a_at_len, const uint8_t *b,
                    const int64_t *b_at, uint8_t *bits, int64_t bits_len)
{
    for (int64_t k = 0; k < a_at_len; k++) {
        const uint8_t *from = a + a_at[k], *other = b + b_at[k];
        int64_t i = 0;
        for (uint64_t of_a, of_b, word; i + 8 <= bits_len; i += 8) {
            memcpy(&of_a, from + i, sizeof of_a);
            memcpy(&of_b, other + i, sizeof of_b);
            memcpy(&word, bits + i, sizeof word);
            word |= of_a ^ of_b;
            memcpy(bits + i, &word, sizeof word);
        }
        for (; i < bits_len; i++)
            bits[i] |= from[i] ^ other[i];
    }
}

void copy_ranges(const uint8_t *buf, const int64_t *from, int64_t from_len,
                 const int64_t *to, const int64_t *sizes, uint8_t *out)
{
    for (int64_t k = 0; k < from_len; k++)
        memcpy(out + to[k], buf + from[k], (size_t)sizes[k]);
}

void add_by_group(const int64_t *groups, int64_t groups_len, const double *values, double *sums)
{
    for (int64_t k = 0; k < groups_len; k++)
        add_to(sums + 2 * groups[k], values[k]);
}
