/* Rows of numbers as lines of text. */
#include "core.h"

/* Write the digits of a number; return where they end. */
static uint8_t *put_number(uint8_t *out, int64_t number)
{
    uint8_t digits[20];
    int count = 0;
    do {
        digits[count++] = (uint8_t)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (count > 0)
        *out++ = digits[--count];
    return out;
}

int64_t write_lines(const int64_t *kinds, int64_t kinds_len, const int64_t *numbers,
                    int64_t columns, const uint8_t *templates, const int64_t *begins, uint8_t *out)
{
    uint8_t *end = out;
    for (int64_t row = 0; row < kinds_len; row++) {
        const int64_t *number = numbers + row * columns;
        const uint8_t *from = templates + begins[kinds[row]];
        do {
            if (*from == '#')
                end = put_number(end, *number++);
            else
                *end++ = *from;
        } while (*from++ != '\n');
    }
    return end - out;
}
