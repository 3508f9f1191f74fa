/* Stepwise selection of the terms of a sum: forward steps, each followed by backward ones.

   It needs inner products alone, so that its time does not depend on the number of samples. */
#include "core.h"
#include "numbers.h"

#include <math.h>
#include <string.h>

/* A column of length 1 is collinear if its part orthogonal to those taken is shorter than this. */
#define NEW_SHARE 1e-5

/* A fit with a smaller mean squared error is exact, and the rest is rounding. */
#define LEAST_CHI2 1e-14

/* The least squared length of the orthogonal part of a column that replaces a similar one. */
#define LEAST_SHARE 1e-8

/* Terms whose growth differs by at most this are not exchanged. */
#define LEAST_GROWTH 0.05

/* A criterion has to fall by more than this, or rounding would decide. */
#define LEAST_GAIN 1e-9

/* Of columns that are equally good up to this share the first is taken: pairs of terms, such as
   those on both sides of a threshold, may explain exactly the same. */
#define TIES 1e-6

/* The most columns in a fit: those selected, and one that is tried. */
enum { TRIED = MOST_TERMS + 1 };

typedef double triangle[TRIED][TRIED];

/* What is fitted; `select_columns` in core.h says more. */
typedef struct {
    const double *gram, *xty;
    int64_t columns, samples;
    double yty;
    bool non_negative;
} least_squares;

static const double *gram_row(const least_squares *lsq, int64_t column)
{
    return lsq->gram + column * lsq->columns;
}

/* Fill `factor` with the Cholesky factor L of the Gram matrix of the columns at `places`. */
static void cholesky(const least_squares *lsq, const int64_t *places, int64_t count,
                     triangle factor)
{
    for (int64_t i = 0; i < count; i++) {
        for (int64_t j = 0; j <= i; j++) {
            double total = gram_row(lsq, places[i])[places[j]];
            for (int64_t m = 0; m < j; m++)
                total -= factor[i][m] * factor[j][m];
            factor[i][j] = i == j ? sqrt(larger(total, 1e-24)) : total / factor[j][j];
        }
    }
}

/* Solve L x = b; `solution` holds b, and then x. */
static void substitute(triangle factor, int64_t count, double *solution)
{
    for (int64_t i = 0; i < count; i++) {
        double total = solution[i];
        for (int64_t m = 0; m < i; m++)
            total -= factor[i][m] * solution[m];
        solution[i] = total / factor[i][i];
    }
}

/* Solve L Lt x = b; `solution` holds b, and then x. */
static void substitute_both(triangle factor, int64_t count, double *solution)
{
    substitute(factor, count, solution);
    for (int64_t i = count - 1; i >= 0; i--) {
        double total = solution[i];
        for (int64_t m = i + 1; m < count; m++)
            total -= factor[m][i] * solution[m];
        solution[i] = total / factor[i][i];
    }
}

/* Solve the normal equations of the columns at `places`; return whether no x is negative. */
static bool solve(const least_squares *lsq, const int64_t *places, int64_t count, double *solution)
{
    triangle factor;
    cholesky(lsq, places, count, factor);
    for (int64_t i = 0; i < count; i++)
        solution[i] = lsq->xty[places[i]];
    substitute_both(factor, count, solution);
    bool positive = true;
    for (int64_t i = 0; i < count; i++)
        positive = positive && solution[i] >= 0;
    return positive;
}

/* Fill `coefficients` with numbers that are not negative: the least becomes 0, and the others are
   solved anew, until none is below 0. */
static void solve_non_negative(const least_squares *lsq, const int64_t *places, int64_t count,
                               double *coefficients)
{
    int64_t left[TRIED], at[TRIED], kept = count;
    double solution[TRIED];
    for (int64_t i = 0; i < count; i++) {
        left[i] = places[i];
        at[i] = i;
        coefficients[i] = 0;
    }
    while (kept && !solve(lsq, left, kept, solution)) {
        int64_t least = 0;
        for (int64_t i = 1; i < kept; i++)
            if (solution[i] < solution[least])
                least = i;
        kept--;
        memmove(left + least, left + least + 1, (size_t)(kept - least) * sizeof *left);
        memmove(at + least, at + least + 1, (size_t)(kept - least) * sizeof *at);
    }
    for (int64_t i = 0; i < kept; i++)
        coefficients[at[i]] = solution[i];
}

/* k log n n/(n - k - 1), or more than any n log(chi2/n) with too few samples for the terms. */
double bic_penalty(int64_t terms, int64_t samples)
{
    int64_t room = samples - terms - 1;
    if (room <= 0)
        return 1e9 * (double)terms;
    return (double)terms * log((double)samples) * (double)samples / (double)room;
}

/* Fill in the `coefficients` of the columns; return BIC with a small-sample correction.

   It is n log(chi2/n) and the penalty, where chi2 = yty - 2 xtXty + xtGx. */
static double fit(const least_squares *lsq, const int64_t *places, int64_t count,
                  double *coefficients)
{
    if (!solve(lsq, places, count, coefficients) && lsq->non_negative)
        solve_non_negative(lsq, places, count, coefficients);
    double samples = (double)lsq->samples;
    if (lsq->samples - count - 1 <= 0)
        return bic_penalty(count, lsq->samples);
    double chi2 = lsq->yty;
    for (int64_t i = 0; i < count; i++) {
        chi2 -= 2 * coefficients[i] * lsq->xty[places[i]];
        for (int64_t j = 0; j < count; j++)
            chi2 += coefficients[i] * gram_row(lsq, places[i])[places[j]] * coefficients[j];
    }
    double misfit = samples * log(larger(chi2 / samples, LEAST_CHI2));
    return misfit + bic_penalty(count, lsq->samples);
}

/* Return which column, but for the last one, raises chi2 least when it is removed.

   Without column i, chi2 grows by the square of x_i, divided by element i, i of G's inverse. */
static int64_t weakest(const least_squares *lsq, const int64_t *places, int64_t count,
                       const double *coefficients)
{
    triangle factor;
    double unit[TRIED], least = INFINITY;
    int64_t cheapest = 0;
    cholesky(lsq, places, count, factor);
    for (int64_t i = 0; i < count - 1; i++) {
        for (int64_t j = 0; j < count; j++)
            unit[j] = i == j;
        substitute_both(factor, count, unit);
        double cost = coefficients[i] * coefficients[i] / unit[i];
        if (cost < least * (1 - TIES)) {
            least = cost;
            cheapest = i;
        }
    }
    return cheapest;
}

/* Copy `places` without the one at `left_out`. */
static void without(const int64_t *places, int64_t count, int64_t left_out, int64_t *fewer)
{
    for (int64_t i = 0; i < count - 1; i++)
        fewer[i] = places[i < left_out ? i : i + 1];
}

/* Remove from `places` the columns that the newest one, the last, has made superfluous. Return how
   many are left, and set `bic` to their BIC. */
static int64_t prune(const least_squares *lsq, int64_t *places, int64_t count, double *bic)
{
    double coefficients[TRIED];
    int64_t fewer[TRIED], used = 0;
    *bic = fit(lsq, places, count, coefficients);
    for (int64_t i = 0; i < count; i++)
        used += coefficients[i] > 0;
    if (lsq->non_negative && 0 < used && used < count) {
        used = 0;
        for (int64_t i = 0; i < count; i++)
            if (coefficients[i] > 0)
                places[used++] = places[i];
        count = used;
        *bic = fit(lsq, places, count, coefficients);
    }
    while (count > 1) {
        without(places, count, weakest(lsq, places, count, coefficients), fewer);
        double bic_of_fewer = fit(lsq, fewer, count - 1, coefficients);
        if (bic_of_fewer > *bic + LEAST_GAIN)
            break;
        *bic = bic_of_fewer;
        count--;
        memcpy(places, fewer, (size_t)count * sizeof *places);
    }
    return count;
}

/* Add a column to the orthogonal basis, and update the other columns' orthogonal parts.

   `rows` is a Cholesky decomposition that grows by one row at a time; `share` holds the squared
   length of the part of each column that is orthogonal to those taken. */
static void take(const least_squares *lsq, double *rows, int64_t count, int64_t place,
                 double *share)
{
    int64_t columns = lsq->columns;
    double *new = rows + count * columns;
    double length = sqrt(larger(share[place], NEW_SHARE * NEW_SHARE));
    memcpy(new, gram_row(lsq, place), (size_t)columns * sizeof *new);
    for (int64_t m = 0; m < count; m++) {
        const double *row = rows + m * columns;
        double projection = row[place];
        for (int64_t j = 0; j < columns; j++)
            new[j] -= projection * row[j];
    }
    for (int64_t j = 0; j < columns; j++) {
        new[j] /= length;
        share[j] = larger(share[j] - new[j] * new[j], 0);
    }
    share[place] = 0;
}

/* Return the column that lowers chi2 most beside those taken, -1 if none does.

   As in orthogonal least squares (Chen, Billings and Luo, 1989), the gain of a column is the
   residual along its part that is orthogonal to those taken. Fill `gains` with all of them. */
static int64_t steepest(const least_squares *lsq, const int64_t *places, int64_t count,
                        const double *coefficients, const double *share, double *gains)
{
    double best = sqrt(LEAST_CHI2);
    int64_t place = -1;
    memcpy(gains, lsq->xty, (size_t)lsq->columns * sizeof *gains);
    for (int64_t i = 0; i < count; i++) {
        const double *row = gram_row(lsq, places[i]);
        for (int64_t j = 0; j < lsq->columns; j++)
            gains[j] -= row[j] * coefficients[i];
    }
    for (int64_t j = 0; j < lsq->columns; j++) {
        double alignment = lsq->non_negative ? gains[j] : fabs(gains[j]);
        gains[j] = share[j] > NEW_SHARE * NEW_SHARE ? alignment / sqrt(share[j]) : 0;
        if (gains[j] > best * (1 + TIES)) {
            best = gains[j];
            place = j;
        }
    }
    return place;
}

/* Search from the column `start`, or from nothing if that is -1; return how many columns are taken.
   `rows` (most + 2, columns) is work space. */
static int64_t search(const least_squares *lsq, int64_t start, int64_t most, double *rows,
                      int64_t *places, double *bic)
{
    double *gains = rows + most * lsq->columns, *share = gains + lsq->columns, coefficients[TRIED];
    int64_t tried[TRIED], count = 0, taken = 0, kept = start >= 0;
    places[0] = start;
    *bic = kept ? fit(lsq, places, 1, coefficients) : INFINITY;
    for (;;) {
        if (kept != count + 1 || !count) {
            taken = 0;
            for (int64_t j = 0; j < lsq->columns; j++)
                share[j] = gram_row(lsq, j)[j];
        }
        count = kept;
        for (; taken < count; taken++)
            take(lsq, rows, taken, places[taken], share);
        if (count == most)
            return count;
        fit(lsq, places, count, coefficients);
        int64_t place = steepest(lsq, places, count, coefficients, share, gains);
        if (place < 0)
            return count;
        memcpy(tried, places, (size_t)count * sizeof *tried);
        tried[count] = place;
        double bic_of_tried;
        kept = prune(lsq, tried, count + 1, &bic_of_tried);
        if (bic_of_tried >= *bic - LEAST_GAIN)
            return count;
        *bic = bic_of_tried;
        memcpy(places, tried, (size_t)kept * sizeof *places);
    }
}

/* Return the index in `places` of the fastest-growing column that is not done. */
static int64_t fastest(const double *growth, const int64_t *places, int64_t count,
                       const bool *done)
{
    int64_t leader = -1;
    for (int64_t i = 0; i < count; i++)
        if (!done[i] && (leader < 0 || growth[places[i]] > growth[places[leader]]))
            leader = i;
    return leader;
}

/* Return the column with the least cost beside the others: `own`, or one that grows less. */
static int64_t slower(const least_squares *lsq, const int64_t *others, int64_t count, int64_t own,
                      const double *growth, int64_t candidates, double price)
{
    triangle factor;
    double rest[TRIED], row[TRIED], chi2_of_others = lsq->yty, best = INFINITY;
    double samples = (double)lsq->samples;
    int64_t cheapest = own;
    cholesky(lsq, others, count, factor);
    for (int64_t m = 0; m < count; m++)
        rest[m] = lsq->xty[others[m]];
    substitute(factor, count, rest);
    for (int64_t m = 0; m < count; m++)
        chi2_of_others -= rest[m] * rest[m];
    for (int64_t j = -1; j < candidates; j++) {
        int64_t column = j < 0 ? own : j;
        if (j >= 0 && growth[column] > growth[own] - LEAST_GROWTH)
            continue;
        for (int64_t m = 0; m < count; m++)
            row[m] = gram_row(lsq, others[m])[column];
        substitute(factor, count, row);
        double share = gram_row(lsq, column)[column], gain = lsq->xty[column];
        for (int64_t m = 0; m < count; m++) {
            share -= row[m] * row[m];
            gain -= row[m] * rest[m];
        }
        if (share > LEAST_SHARE && (gain > 0 || !lsq->non_negative)) {
            double chi2 = larger((chi2_of_others - gain * gain / share) / samples, LEAST_CHI2);
            double cost = samples * log(chi2) + price * growth[column];
            if (cost < best - LEAST_GAIN) {
                best = cost;
                cheapest = column;
            }
        } else if (j < 0) {
            break;
        }
    }
    return cheapest;
}

/* Exchange columns for ones that grow less, the fastest first; see core.h. */
static void exchange_for_slower(const least_squares *lsq, const double *growth, int64_t candidates,
                                double price, int64_t *places, int64_t count)
{
    int64_t others[TRIED];
    double coefficients[TRIED];
    bool done[TRIED] = {false};
    for (int64_t round = 0; round < count; round++) {
        int64_t i = fastest(growth, places, count, done);
        done[i] = true;
        without(places, count, i, others);
        others[count - 1] = slower(lsq, others, count - 1, places[i], growth, candidates, price);
        if (others[count - 1] != places[i]
            && (solve(lsq, others, count, coefficients) || !lsq->non_negative))
            places[i] = others[count - 1];
    }
}

int64_t select_columns(const double *gram, const double *xty, int64_t xty_len,
                       double yty, int64_t samples, bool non_negative, int64_t constant,
                       int64_t most, const double *growth, int64_t candidates, double price,
                       double *rows, int64_t *places)
{
    const least_squares lsq = {gram, xty, xty_len, samples, yty, non_negative};
    int64_t tried[TRIED], taken = 0;
    double bic, best = INFINITY;
    for (int64_t start = most < 2 ? -1 : constant;; start = -1) {
        int64_t count = search(&lsq, start, most, rows, tried, &bic);
        if (bic < best) {
            best = bic;
            taken = count;
            memcpy(places, tried, (size_t)count * sizeof *places);
        }
        if (start < 0)
            break;
    }
    if (candidates)
        exchange_for_slower(&lsq, growth, candidates, price, places, taken);
    return taken;
}
