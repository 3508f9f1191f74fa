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

/* Return exp(x) for -FARTHEST <= x <= 0, within 2 units in the last place. It consists of additions and
   multiplications only, so that it is vectorised, and has the same bits on every machine. */
static inline double exp_of_negative(double x)
{
    const double rounder = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer */
    double shifted = x * 1.4426950408889634 + rounder;
    double n = shifted - rounder;
    double r = x - n * 6.93147180369123816490e-01 - n * 1.90821492927058770002e-10;
    double p = 1.6059043836821613e-10; /* 1/13!, 1/12!, ...: the Taylor series for |r| < 0.35 */
    p = p * r + 2.0876756987868099e-09;
    p = p * r + 2.5052108385441719e-08;
    p = p * r + 2.7557319223985891e-07;
    p = p * r + 2.7557319223985893e-06;
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

void process_means(const double *rows, int64_t inputs, const bool *codes,
                   const double *smooth_scales, const double *rough_scales, const double *points,
                   const double *smooth_weights, const double *rough_weights,
                   int64_t rough_weights_len, double *means, int64_t means_len)
{
    const int64_t count = rough_weights_len;
    for (int64_t i = 0; i < means_len; i++) {
        double lanes[LANES] = {0};
        for (int64_t start = 0; start < count; start += BLOCK) {
            double smooth[BLOCK] = {0}, rough[BLOCK] = {0};
            int64_t width = count - start < BLOCK ? count - start : BLOCK;
            for (int64_t d = 0; d < inputs; d++) {
                const double *column = points + d * count + start;
                double value = rows[i * inputs + d];
                double s = smooth_scales[d], r = rough_scales[d];
                if (codes[d])
                    for (int64_t j = 0; j < width; j++) {
                        double square = column[j] != value ? 1.0 : 0.0;
                        smooth[j] += square * s;
                        rough[j] += square * r;
                    }
                else
                    for (int64_t j = 0; j < width; j++) {
                        double square = (column[j] - value) * (column[j] - value);
                        smooth[j] += square * s;
                        rough[j] += square * r;
                    }
            }
            for (int64_t j = 0; j < width; j++) {
                smooth[j] = smooth[j] < FARTHEST * FARTHEST ? smooth[j] : FARTHEST * FARTHEST;
                rough[j] = rough[j] < FARTHEST * FARTHEST ? rough[j] : FARTHEST * FARTHEST;
            }
            for (int64_t j = 0; j < width; j++)
                smooth[j] = matern_5_2(smooth[j]) * smooth_weights[start + j];
            for (int64_t j = 0; j < width; j++)
                rough[j] = matern_1_2(rough[j]) * rough_weights[start + j];
            for (int64_t j = 0; j < width; j++)
                lanes[j % LANES] += smooth[j] + rough[j];
        }
        means[i] = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
    }
}
