/* Events that wait for others: an order in which all can run that ever do. */
#include "core.h"

int64_t run_order(const int64_t *first, const int64_t *waiting, int64_t *missing, int64_t missing_len,
                  int64_t *order)
{
    int64_t ready = 0;
    for (int64_t k = 0; k < missing_len; k++)
        if (missing[k] == 0)
            order[ready++] = k;
    for (int64_t next = 0; next < ready; next++)
        for (int64_t k = first[order[next]]; k < first[order[next] + 1]; k++)
            if (--missing[waiting[k]] == 0)
                order[ready++] = waiting[k];
    return ready;
}
