/* The replay. A SEB can only make others ready at its start or later, so that one queue for all PEs
   yields SEBs in the order of the times when they are ready, as in Dijkstra's algorithm. */
#include "core.h"

#include <stddef.h>

/* The arguments of `replay`. */
typedef struct {
    seb_run *runs;
    const seb_links *links;
    const int32_t *waiting;
    const sent_message *messages;
    const int32_t *first_receiver, *receivers;
    int64_t workers;
    double node_latency_s;
    replay_queue *queue;
    queue_entry *heap;
    double *starts_s; /* NULL if they are not recorded */
} replayed;

/* Whether an entry precedes another one: at the same time the first SEB does. */
static inline bool precedes(const queue_entry *a, const queue_entry *b)
{
    return a->time < b->time || (a->time == b->time && a->seb < b->seb);
}

/* Insert an entry into a binary heap of `size` entries. */
static void push(queue_entry *heap, int64_t size, queue_entry entry)
{
    int64_t at = size;
    for (; at > 0; at = (at - 1) / 2) {
        int64_t parent = (at - 1) / 2;
        if (precedes(&heap[parent], &entry))
            break;
        heap[at] = heap[parent];
    }
    heap[at] = entry;
}

/* Remove the first entry of a binary heap of `size` entries: the last one takes its place at the
   bottom, and rises. */
static void drop_first(queue_entry *heap, int64_t size)
{
    int64_t at = 0, left = size - 1;
    for (int64_t child = 1; child < left; child = 2 * at + 1) {
        child += child + 1 < left && precedes(&heap[child + 1], &heap[child]);
        heap[at] = heap[child];
        at = child;
    }
    push(heap, at, heap[left]);
}

/* Remove the first SEB of the queue, which is not empty, and prefetch what the next ones need. */
static int32_t take(const replayed *all)
{
    queue_entry *heap = all->heap;
    int32_t first = heap[0].seb;
    drop_first(heap, all->queue->waiting--);
    for (int64_t k = 0; k < 3 && k < all->queue->waiting; k++) {
        __builtin_prefetch(&all->runs[heap[k].seb]);
        __builtin_prefetch(&all->links[heap[k].seb]);
    }
    if (all->queue->waiting > 0)
        __builtin_prefetch(&all->messages[all->links[heap[0].seb].first_message]);
    return first;
}

/* Deliver one of its inputs to a SEB, which enters the queue when it has all of them. */
static void arrive(const replayed *all, int32_t seb, double time, int32_t kind, int32_t source)
{
    seb_run *run = &all->runs[seb];
    if (time > run->ready_s || (time == run->ready_s && kind >= run->kind)) {
        run->cause = source;
        run->kind = kind;
        run->ready_s = time;
    }
    if (--run->missing == 0)
        push(all->heap, all->queue->waiting++, (queue_entry){run->ready_s, seb});
}

/* The delay of a message between two PEs, in seconds. */
static double delay(const replayed *all, int32_t message, int32_t from, int32_t to)
{
    if (from == to)
        return 0.0;
    if (all->workers > 1 && from / all->workers == to / all->workers)
        return all->node_latency_s;
    return all->messages[message].delay_s;
}

/* Deliver the messages and the end of a SEB to all SEBs that wait for them. */
static void deliver(const replayed *all, int32_t seb, double start, double end)
{
    int32_t pe = all->runs[seb].pe;
    seb_links own = all->links[seb], next = all->links[seb + 1];
    for (int32_t message = own.first_message; message < next.first_message; message++) {
        double sent = start + all->messages[message].after_s;
        sent = end < sent ? end : sent;
        int32_t last = all->first_receiver[message + 1];
        for (int32_t k = all->first_receiver[message]; k < last; k++) {
            int32_t to = all->receivers[k];
            arrive(all, to, sent + delay(all, message, pe, all->runs[to].pe), BY_MESSAGE, seb);
        }
    }
    for (int32_t k = own.first_waiting; k < next.first_waiting; k++) {
        int32_t to = all->waiting[k];
        if (to >= 0)
            arrive(all, to, end, BY_DEPENDENCY, seb);
        else
            arrive(all, -1 - to, end, BY_PREVIOUS, seb);
    }
}

bool replay(seb_run *runs, const seb_links *links, const int32_t *waiting,
            const sent_message *messages, const int32_t *first_receiver, const int32_t *receivers,
            int64_t workers, double node_latency_s, double *free_s, replay_queue *queue,
            queue_entry *heap, int32_t *order, int64_t order_len, double *starts_s, int64_t most)
{
    replayed all = {runs, links, waiting, messages, first_receiver, receivers, workers,
                    node_latency_s, queue, heap, order_len > 0 ? starts_s : NULL};
    for (; most > 0 && queue->waiting > 0; most--) {
        int32_t seb = take(&all);
        seb_run *run = &runs[seb];
        double start = run->ready_s > free_s[run->pe] ? run->ready_s : free_s[run->pe];
        double end = start + run->end_s;
        free_s[run->pe] = run->end_s = end;
        queue->latest_s = end > queue->latest_s ? end : queue->latest_s;
        if (all.starts_s) {
            order[queue->run] = seb;
            starts_s[seb] = start;
        }
        queue->run++;
        deliver(&all, seb, start, end);
    }
    return queue->waiting > 0;
}
