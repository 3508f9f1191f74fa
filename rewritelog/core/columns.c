/* Fields of records, which lie anywhere in a buffer, to contiguous columns and back; their sums. */
#include "bytes.h"
#include "core.h"
#include "numbers.h"

/* Copy the field of each record one way or the other; the compiler knows `width` and `swap`. */
#define MOVE(type, swapped)                                                                       \
    for (int64_t k = 0; k < at_len; k++) {                                                        \
        type word;                                                                                \
        memcpy(&word, MOVE_FROM, sizeof word);                                                    \
        word = swap ? swapped(word) : word;                                                       \
        memcpy(MOVE_TO, &word, sizeof word);                                                      \
    }

/* Copy `width` bytes, reversing each number of `number` bytes in them. */
static void copy_swapped(uint8_t *to, const uint8_t *from, int64_t width, int64_t number)
{
    for (int64_t k = 0; k < width; k++)
        to[k] = from[k - k % number + number - 1 - k % number];
}

#define MOVE_FIELDS                                                                               \
    if (width == 8 && number == 8) {                                                              \
        MOVE(uint64_t, __builtin_bswap64)                                                         \
    } else if (width == 4 && number == 4) {                                                       \
        MOVE(uint32_t, __builtin_bswap32)                                                         \
    } else if (width == 2 && number == 2) {                                                       \
        MOVE(uint16_t, __builtin_bswap16)                                                         \
    } else {                                                                                      \
        for (int64_t k = 0; k < at_len; k++)                                                      \
            if (swap)                                                                             \
                copy_swapped(MOVE_TO, MOVE_FROM, width, number);                                  \
            else                                                                                  \
                memcpy(MOVE_TO, MOVE_FROM, (size_t)width);                                        \
    }

void gather(const uint8_t *buf, int64_t buf_len, const int64_t *at, int64_t at_len, int64_t field,
            int64_t width, int64_t number, bool swap, uint8_t *column)
{
    (void)buf_len;
#define MOVE_FROM (buf + at[k] + field)
#define MOVE_TO (column + k * width)
    MOVE_FIELDS
#undef MOVE_FROM
#undef MOVE_TO
}

void scatter(uint8_t *buf, int64_t buf_len, const int64_t *at, int64_t at_len, int64_t field,
             int64_t width, int64_t number, bool swap, const uint8_t *column)
{
    (void)buf_len;
#define MOVE_FROM (column + k * width)
#define MOVE_TO (buf + at[k] + field)
    MOVE_FIELDS
}

void copy_ranges(const uint8_t *buf, int64_t buf_len, const int64_t *from, int64_t from_len,
                 const int64_t *to, const int64_t *sizes, uint8_t *out)
{
    (void)buf_len;
    for (int64_t k = 0; k < from_len; k++)
        memcpy(out + to[k], buf + from[k], (size_t)sizes[k]);
}

void add_by_group(const int64_t *groups, int64_t groups_len, const double *values, double *sums)
{
    for (int64_t k = 0; k < groups_len; k++)
        add_to(sums + 2 * groups[k], values[k]);
}
