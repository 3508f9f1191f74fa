/* Compensated sums of many values, in groups. */
#include "sums.h"
#include "core.h"

void add_by_group(const int64_t *groups, int64_t groups_len, const double *values, double *sums)
{
    for (int64_t k = 0; k < groups_len; k++)
        add_to(sums + 2 * groups[k], values[k]);
}
