/* Loads and stores of numbers in either byte order, at any alignment: callers check bounds. */
#ifndef REWRITELOG_BYTES_H
#define REWRITELOG_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline int32_t load_i4(const uint8_t *at, bool swap)
{
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return (int32_t)(swap ? __builtin_bswap32(word) : word);
}

static inline double load_f8(const uint8_t *at, bool swap)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    word = swap ? __builtin_bswap64(word) : word;
    double value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static inline void store_f8(uint8_t *at, double value, bool swap)
{
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    word = swap ? __builtin_bswap64(word) : word;
    memcpy(at, &word, sizeof word);
}

#endif
