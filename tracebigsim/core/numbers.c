/* Reads numbers as C prints them, as exactly the doubles that Python's `float` returns.

   If doubles hold the digits and the power of ten exactly, one operation rounds correctly (Clinger,
   1990). All other numbers are left to `strtod`, which rounds correctly too, but takes longer. */
#include <math.h>
#include <stdlib.h>

#include "reader.h"

enum { EXACT_POWER = 22 };

/* No line has enough digits to make up for a larger exponent. */
enum { MOST_EXPONENT = 100000000 };

#define EXACT_INTEGER (UINT64_C(1) << 53)

static const double TENS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                              1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                              1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static bool is_digit(const uint8_t *text, int64_t at, int64_t end)
{
    return at < end && text[at] >= '0' && text[at] <= '9';
}

static bool is_sign(const uint8_t *text, int64_t at, int64_t end)
{
    return at < end && (text[at] == '-' || text[at] == '+');
}

/* Return whether a number ends at `at`: before a blank, a closing brace or the line's end. */
static bool ends_token(const uint8_t *text, int64_t at, int64_t end)
{
    return at >= end || is_blank(text[at]) || text[at] == '}' || text[at] == '\n'
           || text[at] == '\r';
}

/* Return whether a word of lower-case letters is at `at`, in upper or lower case. */
static bool is_word(const uint8_t *text, int64_t at, int64_t end, const char *word)
{
    for (; *word; word++, at++)
        if (at >= end || (text[at] | 32) != *word)
            return false;
    return true;
}

/* Return why no number begins at `at`. */
static int refusal(const uint8_t *text, int64_t at, int64_t end)
{
    at += is_sign(text, at, end);
    if (is_word(text, at, end, "nan"))
        return ends_token(text, at + 3, end) || text[at + 3] == '(' ? IS_NAN : NOT_A_NUMBER;
    if (!is_word(text, at, end, "inf"))
        return NOT_A_NUMBER;
    at += is_word(text, at, end, "infinity") ? 8 : 3;
    return ends_token(text, at, end) ? IS_INFINITE : NOT_A_NUMBER;
}

/* Append a run of digits to a number until it exceeds 2^53; return where the run ends. */
static int64_t read_digits(const uint8_t *text, int64_t at, int64_t end, uint64_t *digits)
{
    for (; is_digit(text, at, end); at++)
        if (*digits <= EXACT_INTEGER)
            *digits = *digits * 10 + (text[at] - '0');
    return at;
}

/* Read an exponent; return the position after it, or -1 if there is no digit. */
static int64_t read_exponent(const uint8_t *text, int64_t at, int64_t end, int64_t *power)
{
    bool negative = is_sign(text, at, end) && text[at] == '-';
    int64_t first = at + is_sign(text, at, end), exponent = 0;
    for (at = first; is_digit(text, at, end); at++)
        if (exponent < MOST_EXPONENT)
            exponent = exponent * 10 + (text[at] - '0');
    *power += negative ? -exponent : exponent;
    return at > first ? at : -1;
}

int read_number(const uint8_t *text, int64_t *at, int64_t end, double *value)
{
    uint64_t digits = 0;
    int64_t start = *at + is_sign(text, *at, end), power = 0;
    int64_t position = read_digits(text, start, end, &digits), length = position - start;
    if (position < end && text[position] == '.') {
        int64_t fraction = position + 1;
        position = read_digits(text, fraction, end, &digits);
        power = fraction - position;
        length -= power;
    }
    if (length == 0)
        return refusal(text, *at, end);
    if (position < end && (text[position] | 32) == 'e')
        position = read_exponent(text, position + 1, end, &power);
    if (position < 0 || !ends_token(text, position, end))
        return NOT_A_NUMBER;
    if (digits > EXACT_INTEGER || power < -EXACT_POWER || power > EXACT_POWER) {
        *value = strtod((const char *)text + *at, NULL);
    } else {
        *value = power < 0 ? (double)digits / TENS[-power] : (double)digits * TENS[power];
        *value = text[*at] == '-' ? -*value : *value;
    }
    if (isinf(*value))
        return IS_INFINITE;
    *at = position;
    return FINE;
}

int read_integer(const uint8_t *text, int64_t *at, int64_t end, int64_t *value)
{
    int64_t start = *at + is_sign(text, *at, end), position = start, magnitude = 0;
    bool overflow = false;
    for (; is_digit(text, position, end); position++) {
        int digit = text[position] - '0';
        if (magnitude > (INT64_MAX - digit) / 10)
            overflow = true;
        else
            magnitude = magnitude * 10 + digit;
    }
    if (position == start || !ends_token(text, position, end))
        return NOT_AN_INTEGER;
    if (overflow)
        return INTEGER_OVERFLOW;
    *value = text[*at] == '-' ? -magnitude : magnitude;
    *at = position;
    return FINE;
}
