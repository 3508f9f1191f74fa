/* The posterior probabilities of many products of factors, alone or in a sum of two.

   A product is a set of factors that use different parameters. A time is c F, c F + d or
   c F + d G, F being a product and G a single factor. Larger products are made from the most
   probable smaller ones (a beam search), each one once. */
#include "core.h"
#include "numbers.h"

#include <math.h>
#include <string.h>

/* Standard deviations of log t about the product, each as probable as the others. */
static const double NOISES[] = {0.04, 0.1, 0.25, 0.6};

/* Degrees of freedom of Student's t distribution of the errors of log t. */
#define HEAVY_TAIL 4.0

/* A larger error of log t counts as this. */
#define LARGEST_ERROR 5.0

/* The exponential of a larger number overflows. */
#define LARGEST_LOG 700.0

/* The corner of Huber's loss in standard deviations, as in `fitting.regression`. */
#define HUBER 1.345
#define LEAST_SPREAD 1e-3

/* Two terms are collinear if their determinant is less than this share of its largest value. */
#define LEAST_SHARE 1e-9

/* The product of so many densities does not overflow. */
#define CHUNK 32

/* What is fitted, and work arrays of `count` numbers. */
typedef struct {
    const double *times;
    int64_t count;
    double *shape, *second, *ones, *weights, *errors;
} samples;

/* Rows of integers with their figures, the first of which is a log posterior: the best first. */
typedef struct {
    int64_t *rows;
    double *figures;
    int64_t columns, numbers; /* of a row, and of its figures */
    int64_t most, count;
} ranking;

/* A product's row has its mark, the parameters that it uses, and its factors; its figures are its
   log posterior, its log prior, and its logarithm for each sample. */
enum { MARK, USES, FIRST_FACTOR };
enum { POSTERIOR, PRIOR, LOGS };

/* A function's row has G and the factors of F; its figures are its log posterior and d/c. */
enum { SECOND, FIRST };
enum { RATIO = 1 };

/* Return the upper median of the numbers, which it reorders (C. Hoare 1961). */
static double upper_median(double *values, int64_t count)
{
    int64_t low = 0, high = count - 1, middle = count / 2;
    while (low < high) {
        double pivot = values[middle];
        int64_t i = low, j = high;
        while (i <= j) {
            while (values[i] < pivot)
                i++;
            while (pivot < values[j])
                j--;
            if (i <= j) {
                double one = values[i];
                values[i++] = values[j];
                values[j--] = one;
            }
        }
        if (j < middle)
            low = i;
        if (middle < i)
            high = j;
    }
    return values[middle];
}

/* Fill c and d of the weighted fit of c shape + d second to relative errors; return whether there
   is a fit. Both have to be positive, or d is 0 if the sum is not one of two. */
static bool fit_line(const samples *of, const double *second, bool of_two, double *c, double *d)
{
    double ones = 0, cross = 0, square = 0, level = 0, along = 0;
    for (int64_t i = 0; i < of->count; i++) {
        double unit = of->weights[i] / of->times[i];
        double one = of->shape[i] * unit, other = second[i] * unit;
        ones += other * other;
        cross += one * other;
        square += one * one;
        level += other * of->weights[i];
        along += one * of->weights[i];
    }
    *c = along / square;
    *d = 0;
    if (!of_two)
        return isfinite(*c);
    double determinant = ones * square - cross * cross;
    *c = (ones * along - cross * level) / determinant;
    *d = (square * level - cross * along) / determinant;
    return determinant > LEAST_SHARE * ones * square && *c > 0 && *d > 0 && isfinite(*c);
}

/* Return the log likelihood of the squared errors of log t, averaged over the noises. */
static double log_likelihood(const double *squares, int64_t squares_len, int64_t fitted)
{
    double count = (double)squares_len, best = -INFINITY, total = 0;
    for (size_t k = 0; k < sizeof NOISES / sizeof *NOISES; k++) {
        double unit = 1 / (HEAVY_TAIL * NOISES[k] * NOISES[k]), sum = 0, density = 1;
        for (int64_t i = 0; i < squares_len; i++) {
            density *= 1 + squares[i] * unit;
            if (i % CHUNK == CHUNK - 1) {
                sum += log(density);
                density = 1;
            }
        }
        sum = -(HEAVY_TAIL + 1) / 2 * (sum + log(density));
        sum += (double)(fitted - squares_len) * log(NOISES[k])
               - (double)fitted * 0.5 * log(count);
        if (sum > best) {
            total = total > 0 ? total * exp(best - sum) + 1 : 1;
            best = sum;
        } else {
            total += exp(sum - best);
        }
    }
    return best + log(total);
}

/* Return the log marginal likelihood of c shape or c shape + d second, and in `ratio` d/c.

   c and d are those of a robust fit; each one costs log(noise / sqrt n), the width of its posterior
   relative to that of its prior (Laplace's approximation). */
static double evidence(const samples *of, const double *second, bool of_two, double *ratio)
{
    double c, d;
    *ratio = 0;
    for (int64_t i = 0; i < of->count; i++)
        of->weights[i] = 1;
    if (!fit_line(of, second, of_two, &c, &d))
        return -INFINITY;
    for (int64_t i = 0; i < of->count; i++) {
        of->errors[i] = fabs((c * of->shape[i] + d * second[i]) / of->times[i] - 1);
        of->weights[i] = of->errors[i];
    }
    double corner = HUBER * (1.4826 * upper_median(of->weights, of->count) + LEAST_SPREAD);
    for (int64_t i = 0; i < of->count; i++)
        of->weights[i] = sqrt(smaller(1, corner / larger(of->errors[i], 1e-12)));
    if (!fit_line(of, second, of_two, &c, &d))
        return -INFINITY;
    for (int64_t i = 0; i < of->count; i++) {
        double share = (c * of->shape[i] + d * second[i]) / of->times[i];
        double error = share > 0 ? log(share) : -LARGEST_ERROR;
        of->errors[i] = smaller(error * error, LARGEST_ERROR * LARGEST_ERROR);
    }
    *ratio = d / c;
    return log_likelihood(of->errors, of->count, of_two ? 2 : 1);
}

/* Return whether a mark is not in the hash table yet, and put it there. */
static bool is_new(int64_t *seen, int64_t seen_len, int64_t mark)
{
    int64_t place = mark % seen_len;
    for (; seen[place]; place = (place + 1) % seen_len)
        if (seen[place] == mark)
            return false;
    seen[place] = mark;
    return true;
}

/* Insert a row by its log posterior; if the ranking is full, the last one is lost. */
static void put(ranking *of, const int64_t *row, const double *figures)
{
    int64_t last = of->most - 1, place = of->count < last ? of->count : last;
    double posterior = figures[POSTERIOR], *all = of->figures;
    bool full = of->count == of->most;
    if (!isfinite(posterior) || (full && posterior <= all[place * of->numbers]))
        return;
    int64_t after = place;
    while (place && posterior > all[(place - 1) * of->numbers])
        place--;
    size_t row_bytes = (size_t)of->columns * sizeof *row;
    size_t figures_bytes = (size_t)of->numbers * sizeof *figures;
    int64_t *own_row = of->rows + place * of->columns;
    double *own_figures = all + place * of->numbers;
    memmove(own_row + of->columns, own_row, (size_t)(after - place) * row_bytes);
    memmove(own_figures + of->numbers, own_figures, (size_t)(after - place) * figures_bytes);
    memcpy(own_row, row, row_bytes);
    memcpy(own_figures, figures, figures_bytes);
    of->count += !full;
}

/* Fill `shape` with exponentials, scaled to at most 1; return the largest logarithm. */
static double to_shape(const double *logs, int64_t count, double *shape)
{
    double largest = -INFINITY;
    for (int64_t i = 0; i < count; i++)
        largest = larger(largest, logs[i]);
    for (int64_t i = 0; i < count; i++)
        shape[i] = exp(logs[i] - largest);
    return largest;
}

/* Rank the function of the row, with one term c F, with two terms c F + d G, or both ways. `scale`
   is the logarithm of what d/c has to be multiplied with. Return the larger log posterior. */
static double rank(const samples *of, const double *second, int fewest, int most,
                   const int64_t *row, double prior, double second_prior, double scale,
                   ranking *found)
{
    double best = -INFINITY, figures[2];
    for (int terms = fewest; terms <= most; terms++) {
        double ratio, log = evidence(of, second, terms == 2, &ratio) + prior + second_prior;
        figures[POSTERIOR] = log;
        figures[RATIO] = ratio * exp(smaller(scale, LARGEST_LOG));
        put(found, row, figures);
        best = larger(best, log);
    }
    return best;
}

/* Rank a product times a factor, alone and with a constant, among functions and among the products
   of this round; `own` is the row of both together, `own_figures` room for its figures. */
static void multiply(const samples *of, const double *old_figures, const double *logs,
                     double prior, const int64_t *own, double *own_figures,
                     ranking *found, ranking *products)
{
    int64_t function[1 + MOST_FACTORS];
    for (int64_t i = 0; i < of->count; i++)
        own_figures[LOGS + i] = old_figures[LOGS + i] + logs[i];
    double largest = to_shape(own_figures + LOGS, of->count, of->shape);
    own_figures[PRIOR] = old_figures[PRIOR] + prior;
    function[SECOND] = -1;
    memcpy(function + FIRST, own + FIRST_FACTOR, (size_t)(found->columns - 1) * sizeof *own);
    own_figures[POSTERIOR] =
        rank(of, of->ones, 1, 2, function, own_figures[PRIOR], 0, largest, found);
    put(products, own, own_figures);
}

/* Rank the sums of each product and each factor. */
static void add_seconds(const samples *of, const ranking *products, const double *logs,
                        const double *second_prior, int64_t factors, ranking *found)
{
    int64_t function[1 + MOST_FACTORS];
    for (int64_t k = 0; k < products->count; k++) {
        const int64_t *row = products->rows + k * products->columns;
        const double *figures = products->figures + k * products->numbers;
        memcpy(function + FIRST, row + FIRST_FACTOR, (size_t)(found->columns - 1) * sizeof *row);
        double of_first = to_shape(figures + LOGS, of->count, of->shape);
        for (int64_t factor = 0; factor < factors; factor++) {
            if (!isfinite(second_prior[factor]))
                continue;
            double of_second = to_shape(logs + factor * of->count, of->count, of->second);
            function[SECOND] = factor;
            rank(of, of->second, 2, 2, function, figures[PRIOR], second_prior[factor],
                 of_first - of_second, found);
        }
    }
}

int64_t most_probable_products(const double *logs, const double *prior,
                               const double *second_prior, const int64_t *uses,
                               const int64_t *marks, int64_t marks_len, const double *times,
                               int64_t times_len, int64_t width, int64_t depth, int64_t *seen,
                               int64_t seen_len, int64_t *beam, double *beam_figures,
                               double *work, int64_t *found, double *figures, int64_t most)
{
    const samples of = {times, times_len, work, work + times_len, work + 2 * times_len,
                        work + 3 * times_len, work + 4 * times_len};
    const int64_t columns = FIRST_FACTOR + depth, numbers = LOGS + times_len;
    ranking all = {found, figures, FIRST + depth, 2, most, 0};
    ranking old = {beam, beam_figures, columns, numbers, width, 0}, new = old, top = old;
    new.rows = old.rows + width * columns, new.figures = old.figures + width * numbers;
    top.rows = new.rows + width * columns, top.figures = new.figures + width * numbers;
    top.most = MOST_WITH_SECOND;
    int64_t *own = top.rows + top.most * columns;
    double *own_figures = top.figures + top.most * numbers;
    for (int64_t i = 0; i < times_len; i++)
        of.ones[i] = of.shape[i] = 1;
    for (int64_t i = 0; i < columns; i++)
        own[i] = -1;
    rank(&of, of.ones, 1, 1, own, 0, 0, 0, &all);
    own[MARK] = own[USES] = 0;
    memset(own_figures, 0, (size_t)numbers * sizeof *own_figures);
    put(&old, own, own_figures);
    for (int64_t size = 0; size < depth; size++) {
        new.count = 0;
        for (int64_t k = 0; k < old.count; k++) {
            const int64_t *row = old.rows + k * columns;
            for (int64_t factor = 0; factor < marks_len; factor++) {
                int64_t mark = row[MARK] ^ marks[factor];
                if (row[USES] & uses[factor] || !is_new(seen, seen_len, mark))
                    continue;
                memcpy(own, row, (size_t)columns * sizeof *own);
                own[MARK] = mark;
                own[USES] |= uses[factor];
                own[FIRST_FACTOR + size] = factor;
                multiply(&of, old.figures + k * numbers, logs + factor * times_len,
                         prior[factor], own, own_figures, &all, &new);
            }
        }
        for (int64_t k = 0; k < new.count; k++)
            put(&top, new.rows + k * columns, new.figures + k * numbers);
        const ranking last = old;
        old = new;
        new = last;
    }
    add_seconds(&of, &top, logs, second_prior, marks_len, &all);
    return all.count;
}
