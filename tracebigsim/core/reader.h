/* Declarations that the readers of a line share. They read no byte outside of text[at:end]. */
#ifndef TRACEBIGSIM_READER_H
#define TRACEBIGSIM_READER_H

#include <stdbool.h>
#include <string.h>

#include "core.h"

#define KEYWORD "TRACEBIGSIM"
#define KEYWORD_BYTES ((int64_t)sizeof KEYWORD - 1)

/* The code of a line without a record or a fault. */
enum { NO_RECORD = -1 };

/* A line, and what has been read of it. */
typedef struct {
    const uint8_t *text;
    int64_t at;  /* the next byte to read; after a fault, where reading stopped */
    int64_t end; /* the line's end, without newline and carriage return */
    line_record record;
    double *params; /* room for the line's numbers */
    int64_t *counters;
    int64_t param_count, counter_count; /* param_count may exceed MAX_PARAMS */
} line_reader;

static inline bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t';
}

/* Return the position of the first byte that is neither a space nor a tab. */
static inline int64_t skip_blanks(const uint8_t *text, int64_t at, int64_t end)
{
    while (at < end && is_blank(text[at]))
        at++;
    return at;
}

static inline bool is_keyword(const uint8_t *text, int64_t at, int64_t end)
{
    return end - at >= KEYWORD_BYTES && !memcmp(text + at, KEYWORD, sizeof KEYWORD - 1);
}

/* ---- numbers.c ---- */

/* Read the number at `*at` and move past it; it must be followed by a blank, a closing brace or
   the line's end. Return FINE, or a fault without moving. */
int read_number(const uint8_t *text, int64_t *at, int64_t end, double *value);

/* Read the 64-bit integer at `*at` and move past it, or return a fault without moving. */
int read_integer(const uint8_t *text, int64_t *at, int64_t end, int64_t *value);

/* ---- fields.c ---- */

/* Read one parameter; -0 is stored as 0, and one beyond MAX_PARAMS is only counted. */
int add_param(line_reader *line);

/* Read fields `name:{ content }` up to the line's end, in any order and with any blanks. */
int read_fields(line_reader *line);

#endif
