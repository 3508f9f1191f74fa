/* The function of the compiled core, its structs and its codes.

   This header is their only declaration: `tracebigsim.core` reads it, checks every call
   against it and fills in each NAME_len from the array NAME. Offsets count bytes from the start of
   `text`, which may hold anything. No function keeps state, so threads may call it in parallel. */
#ifndef TRACEBIGSIM_CORE_H
#define TRACEBIGSIM_CORE_H

#include <stdint.h>

#ifndef CORE
#define CORE __attribute__((visibility("default")))
#endif

/* The limits of the grammar, as in `writing.py`; a longer line is one fault, whatever it holds. */
enum { MAX_PARAMS = 20, MAX_LINE_BYTES = 1048576 };

/* What is wrong with a line; `lines.py` has a message for each. */
enum fault_code {
    FINE,
    GLUED,
    TOO_LONG,
    BAD_LEADING_NUMBER,
    NO_EVENT,
    EMPTY_NAME,
    CONTROL_IN_NAME,
    FIELD_IN_NAME,
    NOT_A_FIELD,
    DUPLICATE_FIELD,
    NOT_CLOSED,
    NOT_A_NUMBER,
    IS_NAN,
    IS_INFINITE,
    TOO_MANY_PARAMS,
    NOT_ONE_TIME,
    TWO_TIMES,
    NEGATIVE_TIME,
    NOT_AN_INTEGER,
    INTEGER_OVERFLOW,
    NOT_ONE_SEQNO,
    NO_TIME_NO_SEB
};

enum time_unit { UNIT_NONE, UNIT_SECONDS, UNIT_CYCLES };

typedef struct {
    int64_t line, offset; /* the line's number, from 1, and where it begins */
    int64_t seb, seqno;   /* -1 where the line has none */
    double time;          /* NaN where the line has none */
    int64_t name_start, name_end;
    int32_t params, counters; /* how many */
    int32_t first;            /* a record with the same name: an earlier one, or this */
    int32_t unit;             /* a time_unit */
} line_record;

/* A line that violates the grammar; `at` is where reading stopped, `end` the line's end. */
typedef struct {
    int64_t line, offset, code, at, end;
} line_fault;

/* Where the scan is, how much of each array is used, and how many faults there were. */
typedef struct {
    int64_t position, line, records, params, counters, faults;
} scan_state;

/* ---- scan.c: the records of a text ---- */

/* Scan from the state's position to the text's end, which must be a newline. Stop before a line
   that might not fit into the arrays: it may hold MAX_PARAMS params, and a counter per two bytes.
   `slots` finds records by name: 1 + a record's index, or 0; its length is a power of two. */
CORE void scan(const uint8_t *text, int64_t text_len, line_record *records, int64_t records_len,
               double *params, int64_t params_len, int64_t *counters, int64_t counters_len,
               int32_t *slots, int64_t slots_len, line_fault *faults, int64_t faults_len,
               scan_state *state);

#endif
