/* What targets share. A target is a C file with one function, which libFuzzer calls with its inputs
   and `replay.c` with files; `fuzz/running/engines.py` compiles it with both cores and gives it seeds. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* End the process if something does not hold. */
#define HOLDS(condition)                                                                          \
    do {                                                                                          \
        if (!(condition)) {                                                                       \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);        \
            abort();                                                                              \
        }                                                                                         \
    } while (0)

/* Return an array of exactly this length, so that the address sanitizer sees what leaves it. */
static inline void *array_of(int64_t length, size_t size)
{
    return calloc(length > 0 ? (size_t)length : 1, size);
}
