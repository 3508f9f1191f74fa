/* Numbers as C prints them: bytes to exactly the double that Python's `float` returns.

   Three methods, tried in turn, each exact or declining: digits and a power of ten that doubles
   hold exactly (one rounding; Clinger, 1990); else the product of the digits and 128 bits of the
   power of five, used if its error cannot change the rounding (after Lemire, 2021); else SLOW, and
   the caller uses `float` itself: subnormal, near a tie, or over 18 digits. */
#include <math.h>

#include "reader.h"

typedef unsigned __int128 wide;

enum { EXACT_POWER = 22, LEAST_POWER = -326, MOST_POWER = 308 };
enum { MOST_EXPONENT = 971, LEAST_EXPONENT = -1074 };

/* Cap of written exponents: no line has enough digits to make up for a larger one. */
enum { EXPONENT_LIMIT = 100000000 };

#define EXACT_INTEGER (INT64_C(1) << 53)

/* Below it there is room for one more digit: the digits read stay below 10^18. */
#define LAST_DIGIT_ROOM UINT64_C(100000000000000000)

static const double TENS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                              1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                              1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* 5^k for k < STEP, exactly. */
enum { STEP = 27, STEPS_BELOW = 13 };
static const uint64_t FIVES[STEP] = {
    1, 5, 25, 125, 625, 3125, 15625, 78125, 390625, 1953125, 9765625, 48828125, 244140625,
    1220703125, 6103515625, 30517578125, 152587890625, 762939453125, 3814697265625, 19073486328125,
    95367431640625, 476837158203125, 2384185791015625, 11920928955078125, 59604644775390625,
    298023223876953125, 1490116119384765625};

/* The upper and lower 64 bits of 5^(STEP (k - STEPS_BELOW)), rounded down to 128 bits. */
static const uint64_t STEPS_OF_FIVE[][2] = {
    {0x8049a4ac0c5811ae, 0x205b896d777d6278}, {0xcf42894a5dce35ea, 0x52064cac828675b9},
    {0xa76c582338ed2621, 0xaf2af2b80af6f24e}, {0x873e4f75e2224e68, 0x5a7744a6e804a291},
    {0xda7f5bf590966848, 0xaf39a475506a899e}, {0xb080392cc4349dec, 0xbd8d794d96aacfb3},
    {0x8e938662882af53e, 0x547eb47b7282ee9c}, {0xe65829b3046b0afa, 0x0cb4a5a3112a5112},
    {0xba121a4650e4ddeb, 0x92f34d62616ce413}, {0x964e858c91ba2655, 0x3a6a07f8d510f86f},
    {0xf2d56790ab41c2a2, 0xfae27299423fb9c3}, {0xc428d05aa4751e4c, 0xaa97e14c3c26b886},
    {0x9e74d1b791e07e48, 0x775ea264cf55347d}, {0x8000000000000000, 0x0000000000000000},
    {0xcecb8f27f4200f3a, 0x0000000000000000}, {0xa70c3c40a64e6c51, 0x999090b65f67d924},
    {0x86f0ac99b4e8dafd, 0x69a028bb3ded71a3}, {0xda01ee641a708de9, 0xe80e6f4820cc9495},
    {0xb01ae745b101e9e4, 0x5ec05dcff72e7f8f}, {0x8e41ade9fbebc27d, 0x14588f13be847307},
    {0xe5d3ef282a242e81, 0x8f1668c8a86da5fa}, {0xb9a74a0637ce2ee1, 0x6d953e2bd7173692},
    {0x95f83d0a1fb69cd9, 0x4abdaf101564f98e}, {0xf24a01a73cf2dccf, 0xbc633b39673c8cec},
    {0xc3b8358109e84f07, 0x0a862f80ec4700c8}};

/* Return the upper 128 bits of the product's 192. */
static wide upper_product(wide a, uint64_t b)
{
    return (a >> 64) * b + (((wide)(uint64_t)a * b) >> 64);
}

/* Set `product` to the upper 128 bits of digits * 5^power, less than 3 units too small; return the
   exponent of two by which it has to be multiplied. */
static int64_t product_with_five(uint64_t digits, int64_t power, wide *product)
{
    int64_t row = (power + STEP * STEPS_BELOW) / STEP, steps = STEP * (row - STEPS_BELOW);
    uint64_t five = FIVES[power - steps];
    int digit_zeros = __builtin_clzll(digits), five_zeros = __builtin_clzll(five);
    wide table = (wide)STEPS_OF_FIVE[row][0] << 64 | STEPS_OF_FIVE[row][1];
    *product = upper_product(upper_product(table, five << five_zeros), digits << digit_zeros);
    int64_t bits_of_five = (steps * 152170) >> 16; /* log2 5^steps, rounded down */
    return bits_of_five - 127 + 128 - digit_zeros - five_zeros;
}

/* Round digits * 10^power, digits in [1, 10^18). `dropped` says that further digits follow, which
   are not in `digits`. Numbers within an eighth of a unit below the border to infinity are called
   infinite. */
static int round_wide(uint64_t digits, int64_t power, bool dropped, double *value)
{
    if (power > MOST_POWER)
        return IS_INFINITE;
    if (power < LEAST_POWER)
        return SLOW;
    wide product;
    int64_t exponent = product_with_five(digits, power, &product) + power;
    int kept = 75 - __builtin_clzll((uint64_t)(product >> 64));
    int64_t mantissa = (int64_t)(product >> kept);
    wide half = (wide)1 << (kept - 1), rest = product & (2 * half - 1);
    exponent += kept;
    if (exponent > MOST_EXPONENT)
        return IS_INFINITE;
    bool largest = exponent == MOST_EXPONENT && mantissa == EXACT_INTEGER - 1;
    if (largest && rest >= half - (half >> 2))
        return IS_INFINITE;
    bool near_tie = rest <= half && half - rest < 3;
    if (dropped || exponent < LEAST_EXPONENT || near_tie)
        return SLOW;
    *value = ldexp((double)(mantissa + (rest > half)), (int)exponent);
    return FINE;
}

/* Round digits * 10^power by the fastest exact method. */
static int round_decimal(uint64_t digits, int64_t power, bool dropped, double *value)
{
    *value = 0;
    if (digits == 0)
        return FINE;
    if (dropped || digits > EXACT_INTEGER || power < -EXACT_POWER || power > EXACT_POWER)
        return round_wide(digits, power, dropped, value);
    *value = power < 0 ? (double)digits / TENS[-power] : (double)digits * TENS[power];
    return FINE;
}

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

/* The digits of a number, how many had no room, and whether one of these is not 0. */
typedef struct {
    uint64_t digits;
    int64_t lost;
    bool dropped;
} decimal;

/* Append a run of digits; return its end. */
static int64_t read_digits(const uint8_t *text, int64_t at, int64_t end, decimal *number)
{
    uint64_t digits = number->digits;
    for (; digits < LAST_DIGIT_ROOM && is_digit(text, at, end); at++)
        digits = digits * 10 + (text[at] - '0');
    for (; is_digit(text, at, end); at++) {
        number->lost++;
        number->dropped |= text[at] != '0';
    }
    number->digits = digits;
    return at;
}

/* Read an exponent; return the position after it, or -1 if there is no digit. */
static int64_t read_exponent(const uint8_t *text, int64_t at, int64_t end, int64_t *exponent)
{
    bool negative = is_sign(text, at, end) && text[at] == '-';
    int64_t first = at + is_sign(text, at, end);
    *exponent = 0;
    for (at = first; is_digit(text, at, end); at++)
        if (*exponent < EXPONENT_LIMIT)
            *exponent = *exponent * 10 + (text[at] - '0');
    if (negative)
        *exponent = -*exponent;
    return at > first ? at : -1;
}

int read_number(const uint8_t *text, int64_t *at, int64_t end, double *value)
{
    decimal number = {0, 0, false};
    int64_t start = *at + is_sign(text, *at, end), fraction = 0, exponent = 0;
    int64_t now = read_digits(text, start, end, &number), length = now - start;
    if (now < end && text[now] == '.') {
        fraction = read_digits(text, now + 1, end, &number) - (now + 1);
        now += 1 + fraction;
    }
    if (length + fraction == 0)
        return refusal(text, *at, end);
    if (now < end && (text[now] | 32) == 'e')
        now = read_exponent(text, now + 1, end, &exponent);
    if (now < 0 || !ends_token(text, now, end))
        return NOT_A_NUMBER;
    int64_t power = number.lost - fraction + exponent;
    int code = round_decimal(number.digits, power, number.dropped, value);
    if (code == SLOW)
        *value = 1;
    if (text[*at] == '-')
        *value = -*value;
    if (code == FINE || code == SLOW)
        *at = now;
    return code;
}

int read_integer(const uint8_t *text, int64_t *at, int64_t end, int64_t *value)
{
    int64_t start = *at + is_sign(text, *at, end), now = start, read = 0;
    bool overflow = false;
    for (; is_digit(text, now, end); now++) {
        int digit = text[now] - '0';
        if (read > (INT64_MAX - digit) / 10)
            overflow = true;
        else
            read = read * 10 + digit;
    }
    if (now == start || !ends_token(text, now, end))
        return NOT_AN_INTEGER;
    if (overflow)
        return INTEGER_OVERFLOW;
    *value = text[*at] == '-' ? -read : read;
    *at = now;
    return FINE;
}
