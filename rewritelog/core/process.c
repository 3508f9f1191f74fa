/* Means of a Gaussian process at many rows. */
#include "core.h"

#include <math.h>
#include <string.h>

/* Points are taken in blocks of this many, whose distances stay in the nearest cache. */
#define BLOCK 256

/* Sums are kept in this many lanes, so that they have the same bits with any vector width. */
#define LANES 4

/* A larger distance counts as this one, whose covariance is 1e-300. */
#define FARTHEST 700.0

/* Return exp(x) for -FARTHEST <= x <= 0 with a relative error below 1e-11. It consists of additions and
   multiplications only, so that it is vectorised, and has the same bits on every machine. */
static inline double exp_of_negative(double x)
{
    const double rounder = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer */
    double shifted = x * 1.4426950408889634 + rounder;
    double n = shifted - rounder;
    double r = x - n * 6.93147180369123816490e-01 - n * 1.90821492927058770002e-10;
    double p = 2.7557319223985893e-06; /* 1/9!, 1/8!, ...: the Taylor series for |r| < 0.35 */
    p = p * r + 2.4801587301587302e-05;
    p = p * r + 1.9841269841269841e-04;
    p = p * r + 1.3888888888888889e-03;
    p = p * r + 8.3333333333333332e-03;
    p = p * r + 4.1666666666666664e-02;
    p = p * r + 1.6666666666666666e-01;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52; /* the low bits of `shifted` are those of n */
    double power;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

/* The Matérn covariances of two points at a distance whose square is given. */
static inline double matern_5_2(double square)
{
    double distance = sqrt(square);
    return (1 + distance + square / 3) * exp_of_negative(-distance);
}

static inline double matern_1_2(double square)
{
    return exp_of_negative(-sqrt(square));
}

/* Set `squares` to the squared distances of a row and `width` of `count` points. */
static inline void square_distances(const double *row, int64_t inputs, const double *code_squares,
                                    const double *points, int64_t count, int64_t width,
                                    double *squares)
{
    for (int64_t j = 0; j < width; j++)
        squares[j] = 0;
    int64_t d = 0;
    for (; d + 1 < inputs && !code_squares[d] && !code_squares[d + 1]; d += 2) {
        const double *first = points + d * count, *second = first + count;
        double a = row[d], b = row[d + 1];
        for (int64_t j = 0; j < width; j++)
            squares[j] += (first[j] - a) * (first[j] - a) + (second[j] - b) * (second[j] - b);
    }
    for (; d < inputs; d++) {
        const double *column = points + d * count;
        double value = row[d], square = code_squares[d];
        if (square)
            for (int64_t j = 0; j < width; j++)
                squares[j] += column[j] != value ? square : 0.0;
        else
            for (int64_t j = 0; j < width; j++)
                squares[j] += (column[j] - value) * (column[j] - value);
    }
    for (int64_t j = 0; j < width; j++)
        squares[j] = squares[j] < FARTHEST * FARTHEST ? squares[j] : FARTHEST * FARTHEST;
}

void process_add_means(const double *rows, int64_t inputs, const double *code_squares, bool rough,
                       const double *points, const double *weights, int64_t weights_len,
                       double *means, int64_t means_len)
{
    const int64_t count = weights_len;
    for (int64_t i = 0; i < means_len; i++) {
        double lanes[LANES] = {0};
        for (int64_t start = 0; start < count; start += BLOCK) {
            double values[BLOCK];
            int64_t width = count - start < BLOCK ? count - start : BLOCK;
            square_distances(rows + i * inputs, inputs, code_squares, points + start, count, width,
                             values);
            if (rough)
                for (int64_t j = 0; j < width; j++)
                    values[j] = matern_1_2(values[j]) * weights[start + j];
            else
                for (int64_t j = 0; j < width; j++)
                    values[j] = matern_5_2(values[j]) * weights[start + j];
            for (int64_t j = 0; j < width; j++)
                lanes[j % LANES] += values[j];
        }
        means[i] += (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
    }
}
