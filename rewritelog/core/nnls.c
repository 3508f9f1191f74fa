/* Non-negative least squares: C. Lawson and R. Hanson, "Solving least squares problems" (1974),
   chapter 23, on the triangle of a QR decomposition. */
#include "core.h"

#include <math.h>
#include <string.h>

/* Rows of `width` numbers: the columns, and the target as the last number. */
typedef struct {
    double *rows;
    int64_t count, width;
} matrix;

/* The columns in `order`, of which the first `passive` may have coefficients that are not 0:
   Lawson and Hanson's set P. `reduced` has the columns of `triangle` in this order, the passive
   ones triangular. */
typedef struct {
    matrix triangle, reduced;
    double *dots;
    int64_t *order, passive;
} search;

/* Make the first `pivots` columns upper triangular by Householder reflections of the rows; `dots`
   is room for `width` numbers. */
static void reduce(matrix of, int64_t pivots, double *dots)
{
    int64_t width = of.width;
    for (int64_t k = 0; k < pivots && k < of.count - 1; k++) {
        double square = 0, *top = of.rows + k * width;
        for (int64_t i = k; i < of.count; i++)
            square += of.rows[i * width + k] * of.rows[i * width + k];
        if (square == 0)
            continue;
        double length = top[k] > 0 ? -sqrt(square) : sqrt(square), first = top[k] - length;
        top[k] = first;
        memset(dots, 0, (size_t)width * sizeof *dots);
        for (int64_t i = k; i < of.count; i++) {
            const double *row = of.rows + i * width;
            for (int64_t j = k + 1; j < width; j++)
                dots[j] += row[k] * row[j];
        }
        for (int64_t j = k + 1; j < width; j++)
            dots[j] /= length * first;
        for (int64_t i = k; i < of.count; i++) {
            double *row = of.rows + i * width;
            for (int64_t j = k + 1; j < width; j++)
                row[j] += row[k] * dots[j];
            row[k] = 0;
        }
        top[k] = length;
    }
}

/* Bring `reduced` up to date with the order of the columns. */
static void arrange(search *of)
{
    matrix to = of->reduced;
    for (int64_t i = 0; i < to.count; i++) {
        const double *from = of->triangle.rows + i * to.width;
        for (int64_t j = 0; j < to.width; j++)
            to.rows[i * to.width + j] = from[j < to.width - 1 ? of->order[j] : j];
    }
    reduce(to, of->passive, of->dots);
}

static void swap(int64_t *order, int64_t one, int64_t other)
{
    int64_t column = order[one];
    order[one] = order[other];
    order[other] = column;
}

/* Return the place of the column, before `end`, along which the misfit falls fastest; -1 if it
   falls along none. */
static int64_t steepest(const search *of, int64_t end)
{
    matrix in = of->reduced;
    double best = 0;
    int64_t found = -1;
    for (int64_t j = of->passive; j < end; j++) {
        double slope = 0;
        for (int64_t i = of->passive; i < in.count; i++)
            slope += in.rows[i * in.width + j] * in.rows[i * in.width + in.width - 1];
        if (slope > best) {
            best = slope;
            found = j;
        }
    }
    return found;
}

/* Return whether the last passive column is independent of the others, its coefficient positive. */
static bool is_usable(const search *of)
{
    matrix in = of->reduced;
    int64_t k = of->passive - 1;
    double square = 0, own = in.rows[k * in.width + k];
    for (int64_t i = 0; i < k; i++)
        square += in.rows[i * in.width + k] * in.rows[i * in.width + k];
    double length = sqrt(square), target = in.rows[k * in.width + in.width - 1];
    return length + 0.01 * fabs(own) > length && target / own > 0;
}

/* Make the column passive along which the misfit falls fastest; return whether there is one. */
static bool activate(search *of)
{
    for (int64_t end = of->reduced.width - 1; of->passive < of->reduced.count; end--) {
        int64_t found = steepest(of, end);
        if (found < 0)
            return false;
        swap(of->order, of->passive++, found);
        arrange(of);
        if (is_usable(of))
            return true;
        swap(of->order, --of->passive, end - 1);
        arrange(of);
    }
    return false;
}

/* Fill `solution` with the coefficients of the passive columns; return whether all are positive. */
static bool solve(const search *of, double *solution)
{
    bool positive = true;
    for (int64_t i = of->passive - 1; i >= 0; i--) {
        const double *row = of->reduced.rows + i * of->reduced.width;
        double total = row[of->reduced.width - 1];
        for (int64_t j = i + 1; j < of->passive; j++)
            total -= row[j] * solution[j];
        solution[i] = total / row[i];
        positive = positive && solution[i] > 0;
    }
    return positive;
}

/* Go from `found` towards the solution until a coefficient is 0; make those of 0 not passive. */
static void step_back(search *of, double *found, const double *solution)
{
    double step = 1;
    int64_t first = -1, kept = 0;
    for (int64_t i = 0; i < of->passive; i++) {
        double from = found[of->order[i]], share = from / (from - solution[i]);
        if (!(solution[i] > 0) && !(share >= step)) {
            step = share;
            first = i;
        }
    }
    for (int64_t i = 0; i < of->passive; i++) {
        int64_t column = of->order[i];
        found[column] += step * (solution[i] - found[column]);
        if (i == first || !(found[column] > 0))
            found[column] = 0;
    }
    for (int64_t i = 0; i < of->passive; i++)
        if (found[of->order[i]] > 0)
            swap(of->order, kept++, i);
    of->passive = kept;
}

void nnls(double *rows, int64_t samples, int64_t width, double *room, int64_t *order,
          double *found)
{
    int64_t columns = width - 1, count = samples < columns ? samples : columns;
    double *dots = room + count * width, *solution = dots + width;
    search of = {{rows, count, width}, {room, count, width}, dots, order, 0};
    reduce((matrix){rows, samples, width}, columns, dots);
    for (int64_t j = 0; j < columns; j++) {
        order[j] = j;
        found[j] = 0;
    }
    arrange(&of);
    for (int64_t round = 0; round < 3 * columns && activate(&of); round++) {
        while (!solve(&of, solution)) {
            step_back(&of, found, solution);
            arrange(&of);
        }
        for (int64_t i = 0; i < of.passive; i++)
            found[order[i]] = solution[i];
    }
}
