/* Means of a Gaussian process at many rows.

   Floats of 32 bits are precise enough: a mean is the logarithm of a factor that measurements
   determine to some per cent. A vector instruction processes twice as many of them as doubles. */
#include "core.h"

#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* A row meets this many points at a time, and has a sum for each of them. No processor's vectors
   are wider, so that the order of additions does not depend on their width. */
#define LANES PROCESS_LANES

/* This many rows in turn meet the same points, while these are in the nearest cache. */
#define ROWS 16

/* A larger distance counts as this one, whose covariance is 2^-87. */
#define FARTHEST 87.0f

#define LN_2 0.693147181f

/* Return 2^-x for 0 <= x <= FARTHEST with a relative error below 1e-6. It consists of additions and
   multiplications only, so that it is vectorised, and has the same bits on every machine. */
static inline float power_of_half(float x)
{
    const float rounder = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    float shifted = rounder - x;
    float r = (rounder - shifted) - x; /* -0.5 to 0.5 */
    float p = 0.0013264727f;
    p = p * r + 0.009671513f;
    p = p * r + 0.055507336f;
    p = p * r + 0.24022242f;
    p = p * r + 0.693147f;
    p = p * r + 1.0f;
    uint32_t bits, exponent;
    memcpy(&bits, &p, sizeof bits);
    memcpy(&exponent, &shifted, sizeof exponent);
    bits += exponent << 23; /* the low bits of `shifted` are those of the integer */
    memcpy(&p, &bits, sizeof p);
    return p;
}

/* Set `squares` to the squared distances, over (ln 2)^2 and limited, of a row and LANES points. The
   first point's first input is at `points`, each further input `count` numbers later. */
static inline void square_distances(const float *row, int64_t inputs, const float *code_squares,
                                    const float *points, int64_t count, float *squares)
{
    float sums[LANES] = {0};
    for (int64_t d = 0; d < inputs; d++) {
        const float *column = points + d * count;
        float value = row[d], square = code_squares[d];
        if (square)
            for (int64_t j = 0; j < LANES; j++)
                sums[j] += column[j] != value ? square : 0.0f;
        else
            for (int64_t j = 0; j < LANES; j++)
                sums[j] += (column[j] - value) * (column[j] - value);
    }
    for (int64_t j = 0; j < LANES; j++) {
        float square = sums[j] * (1 / (LN_2 * LN_2));
        squares[j] = square < FARTHEST * FARTHEST ? square : FARTHEST * FARTHEST;
    }
}

/* Add to the sums the Matérn covariances at these squared distances, times the weights. */
static inline void add_matern_5_2(const float *squares, const float *weights, float *sums)
{
    for (int64_t j = 0; j < LANES; j++) {
        float distance = sqrtf(squares[j]);
        float factor = 1 + distance * LN_2 + squares[j] * (LN_2 * LN_2 / 3);
        sums[j] += factor * power_of_half(distance) * weights[j];
    }
}

static inline void add_matern_1_2(const float *squares, const float *weights, float *sums)
{
    for (int64_t j = 0; j < LANES; j++)
        sums[j] += power_of_half(sqrtf(squares[j])) * weights[j];
}

/* The arguments of `process_add_means`. */
struct task {
    const float *rows;
    int64_t inputs;
    const float *code_squares;
    bool rough;
    const float *points, *weights;
    int64_t weights_len;
    double *means;
    int64_t means_len;
};

__attribute__((always_inline)) static inline void add_means(struct task task)
{
    for (int64_t first = 0; first < task.means_len; first += ROWS) {
        int64_t block_rows = task.means_len - first < ROWS ? task.means_len - first : ROWS;
        float sums[ROWS][LANES] = {{0}};
        for (int64_t start = 0; start + LANES <= task.weights_len; start += LANES)
            for (int64_t i = 0; i < block_rows; i++) {
                float squares[LANES];
                square_distances(task.rows + (first + i) * task.inputs, task.inputs,
                                 task.code_squares, task.points + start, task.weights_len,
                                 squares);
                if (task.rough)
                    add_matern_1_2(squares, task.weights + start, sums[i]);
                else
                    add_matern_5_2(squares, task.weights + start, sums[i]);
            }
        for (int64_t i = 0; i < block_rows; i++)
            for (int64_t j = 0; j < LANES; j++)
                task.means[first + i] += sums[i][j];
    }
}

#if defined(__x86_64__)
/* Not all compilers know a builtin for this. */
static bool has_avx2(void)
{
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
        return false;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    bool are_kept = (a & 6) == 6; /* the system keeps the wide registers */
    return are_kept && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX2);
}

__attribute__((target("avx2"))) static void add_means_avx2(struct task task) { add_means(task); }
#else
static bool has_avx2(void) { return false; }
static void add_means_avx2(struct task task) { add_means(task); }
#endif

void process_add_means(const float *rows, int64_t inputs, const float *code_squares, bool rough,
                       bool wide, const float *points, const float *weights, int64_t weights_len,
                       double *means, int64_t means_len)
{
    struct task task = {rows,    inputs,      code_squares, rough,    points,
                        weights, weights_len, means,        means_len};
    if (wide && has_avx2())
        add_means_avx2(task);
    else
        add_means(task);
}
