/* The smaller and the larger of two numbers, and compensated sums. */
#ifndef REWRITELOG_NUMBERS_H
#define REWRITELOG_NUMBERS_H

static inline double smaller(double a, double b)
{
    return b < a ? b : a;
}

static inline double larger(double a, double b)
{
    return b > a ? b : a;
}

/* Add a value to a sum, a high and a low part, with Knuth's TwoSum (The Art of Computer
   Programming, vol. 2, 4.2.2), also found by Møller (1965). */
static inline void add_to(double *sum, double value)
{
    double high = sum[0], total = high + value, part = total - high;
    sum[0] = total;
    sum[1] += (high - (total - part)) + (value - part);
}

#endif
