/* The errors of c0 + c1 * shape for each of many shapes of a product. */
#include "core.h"

#include <math.h>

/* The square of the exponential of this is finite. */
#define LARGEST_LOG 300.0

/* Fill `constant` and `slope` with the non-negative least-squares c0 and c1 from weighted sums of
   products: of ones, times, shapes with ones, shapes, and shapes with times. */
static void fit_line(double ones, double level, double cross, double square, double along,
                     double *constant, double *slope)
{
    double determinant = ones * square - cross * cross;
    if (determinant > 0) {
        *constant = (square * level - cross * along) / determinant;
        *slope = (ones * along - cross * level) / determinant;
        if (*constant > 0 && *slope > 0)
            return;
        if (*constant > 0) {
            *constant = level / ones;
            *slope = 0;
            return;
        }
    }
    *constant = 0;
    *slope = along / square;
}

void shape_errors(const double *logs, int64_t shapes, const double *fixed, const double *weights,
                  const double *target, int64_t target_len, double *shape, double *errors)
{
    double ones = 0, level = 0, constant, slope;
    for (int64_t i = 0; i < target_len; i++) {
        ones += weights[i] * weights[i];
        level += weights[i] * target[i];
    }
    for (int64_t j = 0; j < shapes; j++) {
        double middle = 0, cross = 0, square = 0, along = 0, total = 0;
        for (int64_t i = 0; i < target_len; i++)
            middle += (fixed[i] + logs[i * shapes + j]) / (double)target_len;
        if (!isfinite(middle)) {
            errors[j] = 1;
            continue;
        }
        for (int64_t i = 0; i < target_len; i++) {
            double log = fixed[i] + logs[i * shapes + j] - middle;
            shape[i] = exp(log < LARGEST_LOG ? log : LARGEST_LOG) * weights[i];
            cross += weights[i] * shape[i];
            square += shape[i] * shape[i];
            along += target[i] * shape[i];
        }
        fit_line(ones, level, cross, square, along, &constant, &slope);
        for (int64_t i = 0; i < target_len; i++) {
            double error = fabs(constant * weights[i] + slope * shape[i] - target[i]);
            total += error < 1 ? error : 1;
        }
        errors[j] = total / (double)target_len;
    }
}
