/* The replay. A SEB can only make others ready at its start or later, so that one queue for all PEs
   yields SEBs in the order of the times when they are ready, as in Dijkstra's algorithm. If a free
   PE takes the first ready SEB of its timeline, SEBs that become ready while it is busy wait in a
   heap of their own, and the queue has an entry for the time when the PE is free. A PE that takes a
   part of a collective is busy from then on, but all parts run when the last one is taken. If PEs
   wait for each other in this way, and nothing else can run, they go on with what they hold.

   Times are in seconds. In replays of traces all are multiples of a smaller unit instead.

   The queue is a ladder queue (Tang, Goh and Thng, 2005) with one rung. The next entries are in a
   binary heap, which is small. Later entries are unsorted in buckets, one for each interval of
   time, and enter the heap together with their bucket. Entries later than all buckets wait in a
   list. When all buckets are empty, the list is distributed over new ones. From its earliest entry
   on, these span twice the mean distance of its entries from that one, and so, by Markov's
   inequality, at least half of them: an entry is moved only a few times, however many there are. */
#include "core.h"

#include <math.h>
#include <stddef.h>

enum { ENTRIES_PER_BUCKET = 4 };

/* The arguments of `replay`. */
typedef struct {
    seb_state *states;
    const seb_links *links;
    const int32_t *waiting;
    const sent_message *messages;
    const int32_t *first_receiver, *receivers;
    int64_t workers;
    double node_latency_s;
    replay_queue *queue;
    queue_entry *heap, *nodes, *later;
    int32_t *heads;
    int64_t most_buckets;
    double *free_s; /* INFINITY while a PE waits in a collective */
    int64_t pes;
    queue_entry *held; /* SEBs that are ready while their PE is busy: a heap for each PE */
    int64_t held_len;  /* 0 if PEs take SEBs in the order of the times when they are ready */
    const int32_t *first_of_pe;
    int32_t *held_of_pe;
    const collective_part *parts; /* NULL if there are no collectives */
    int32_t *parts_left, *order;
    double *start_s; /* NULL if they are not recorded */
} replay_args;

/* Whether an entry precedes another: earlier or, at the same time, of the lower SEB number. */
static inline bool precedes(const queue_entry *a, const queue_entry *b)
{
    return a->time < b->time || (a->time == b->time && a->seb < b->seb);
}

/* Whether an entry of the queue says that a PE is free, and not that a SEB is ready. Its number is
   the number of SEBs plus the PE's, so that SEBs that are ready at the same time precede it. */
static inline bool is_free_pe(const replay_args *args, int32_t seb)
{
    return args->held_len > 0 && seb >= args->held_len;
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

/* Remove the first entry of a binary heap of `size` entries. */
static void drop_first(queue_entry *heap, int64_t size)
{
    queue_entry last = heap[size - 1];
    int64_t at = 0, left = size - 1;
    for (int64_t child = 1; child < left; child = 2 * at + 1) {
        if (child + 1 < left && precedes(&heap[child + 1], &heap[child]))
            child++;
        if (!precedes(&heap[child], &last))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
}

/* Insert an entry into a bucket. */
static void add_to_bucket(const replay_args *args, int64_t bucket, queue_entry entry)
{
    replay_queue *queue = args->queue;
    int64_t node = queue->free;
    if (node >= 0)
        queue->free = args->nodes[node].next;
    else
        node = queue->used++;
    entry.next = args->heads[bucket];
    args->nodes[node] = entry;
    args->heads[bucket] = (int32_t)node;
    queue->in_buckets++;
}

/* Insert a SEB into the queue at a time that is not before that of the last SEB removed. In spite
   of rounding, a later time never has an earlier bucket: the index is monotonic in the time. */
static void enqueue(const replay_args *args, double time, int32_t seb)
{
    replay_queue *queue = args->queue;
    queue_entry entry = {time, seb, -1};
    double bucket = (time - queue->base_s) * queue->buckets_per_s;
    if (!(bucket >= (double)(queue->current + 1))) /* NaN without buckets */
        push(args->heap, queue->in_heap++, entry);
    else if (bucket < (double)queue->buckets)
        add_to_bucket(args, (int64_t)bucket, entry);
    else
        args->later[queue->in_later++] = entry;
}

/* Move the entries of a bucket into the heap. */
static void open_bucket(const replay_args *args, int64_t bucket)
{
    replay_queue *queue = args->queue;
    int32_t node = args->heads[bucket];
    while (node >= 0) {
        int32_t next = args->nodes[node].next;
        push(args->heap, queue->in_heap++, args->nodes[node]);
        args->nodes[node].next = (int32_t)queue->free;
        queue->free = node;
        queue->in_buckets--;
        node = next;
    }
    queue->current = bucket;
}

/* Distribute the later entries over new buckets, or move them to the heap if times are equal. */
static void spread(const replay_args *args)
{
    replay_queue *queue = args->queue;
    int64_t count = queue->in_later;
    double lowest = args->later[0].time, highest = lowest, total = 0.0;
    for (int64_t k = 0; k < count; k++) {
        double time = args->later[k].time;
        lowest = time < lowest ? time : lowest;
        highest = time > highest ? time : highest;
    }
    for (int64_t k = 0; k < count; k++)
        total += args->later[k].time - lowest;
    queue->buckets = count / ENTRIES_PER_BUCKET + 1;
    if (queue->buckets > args->most_buckets)
        queue->buckets = args->most_buckets;
    double rate = total > 0.0 ? (double)queue->buckets / (2.0 * total / (double)count) : INFINITY;
    if (!(rate > 0.0 && rate < INFINITY)) {
        queue->buckets = 0;
        lowest = highest;
        rate = INFINITY;
    }
    queue->base_s = lowest;
    queue->buckets_per_s = rate;
    queue->current = -1;
    queue->in_later = 0;
    for (int64_t bucket = 0; bucket < queue->buckets; bucket++)
        args->heads[bucket] = -1;
    for (int64_t k = 0; k < count; k++)
        enqueue(args, args->later[k].time, args->later[k].seb);
}

/* Move the next entries into the heap if it is empty; return whether there are any. */
static bool refill(const replay_args *args)
{
    replay_queue *queue = args->queue;
    while (queue->in_heap == 0) {
        if (queue->in_buckets > 0)
            open_bucket(args, queue->current + 1);
        else if (queue->in_later > 0)
            spread(args);
        else
            return false;
    }
    return true;
}

/* Remove the first SEB of the queue, which is not empty, and prefetch what the next ones need. */
static int32_t dequeue(const replay_args *args)
{
    replay_queue *queue = args->queue;
    int32_t first = args->heap[0].seb;
    drop_first(args->heap, queue->in_heap--);
    if (queue->in_heap == 0 && refill(args)) {
        for (int64_t k = 0; k < queue->in_heap; k++) {
            if (is_free_pe(args, args->heap[k].seb))
                continue;
            __builtin_prefetch(&args->states[args->heap[k].seb]);
            __builtin_prefetch(&args->links[args->heap[k].seb]);
            if (args->start_s)
                __builtin_prefetch(&args->start_s[args->heap[k].seb], 1);
        }
    }
    if (queue->in_heap > 0 && !is_free_pe(args, args->heap[0].seb)) {
        int32_t message = args->links[args->heap[0].seb].first_message;
        __builtin_prefetch(&args->messages[message]);
        __builtin_prefetch(&args->first_receiver[message]);
    }
    return first;
}

/* Deliver one of its inputs to a SEB, which enters the queue when it has all of them. */
static void arrive(const replay_args *args, int32_t seb, double time, int32_t kind, int32_t source)
{
    seb_state *state = &args->states[seb];
    if (time > state->ready_s || (time == state->ready_s && kind >= state->kind)) {
        state->cause = source;
        state->kind = kind;
        state->ready_s = time;
    }
    if (--state->pending == 0)
        enqueue(args, state->ready_s, seb);
}

/* The delay of a message between two PEs, in seconds. */
static double delay(const replay_args *args, int32_t message, int32_t from, int32_t to)
{
    if (from == to)
        return 0.0;
    if (args->workers > 1 && from / args->workers == to / args->workers)
        return args->node_latency_s;
    return args->messages[message].delay_s;
}

/* Deliver the messages and the end of a SEB to all SEBs that wait for them. */
static void deliver(const replay_args *args, int32_t seb, double start, double end)
{
    int32_t pe = args->states[seb].pe;
    seb_links own = args->links[seb], next = args->links[seb + 1];
    for (int32_t message = own.first_message; message < next.first_message; message++) {
        double sent = start + args->messages[message].after_s;
        sent = end < sent ? end : sent;
        int32_t last = args->first_receiver[message + 1];
        for (int32_t k = args->first_receiver[message]; k < last; k++) {
            int32_t to = args->receivers[k];
            arrive(args, to, sent + delay(args, message, pe, args->states[to].pe), BY_MESSAGE, seb);
        }
    }
    for (int32_t k = own.first_waiting; k < next.first_waiting; k++) {
        int32_t to = args->waiting[k];
        if (to >= 0)
            arrive(args, to, end, BY_DEPENDENCY, seb);
        else
            arrive(args, -1 - to, end, BY_PREVIOUS, seb);
    }
}

/* Run a SEB from a time on. If its PE holds others, queue the end for them. */
static void run_seb(const replay_args *args, int32_t seb, double start)
{
    seb_state *state = &args->states[seb];
    replay_queue *queue = args->queue;
    int32_t pe = state->pe;
    double end = start + state->duration_s, free_s = args->free_s[pe];
    args->free_s[pe] = end > free_s || free_s == INFINITY ? end : free_s;
    queue->latest_s = end > queue->latest_s ? end : queue->latest_s;
    if (args->start_s) {
        args->order[queue->ran] = seb;
        args->start_s[seb] = start;
    }
    queue->ran++;
    deliver(args, seb, start, end);
    if (args->held_len > 0 && args->held_of_pe[pe] > 0)
        enqueue(args, args->free_s[pe], (int32_t)(args->held_len + pe));
}

/* Take a SEB that is ready when its PE is free: run it, or all parts of its collective if it is the
   last of them, for which the others have waited. */
static void take(const replay_args *args, int32_t seb)
{
    int32_t pe = args->states[seb].pe;
    double ready = args->states[seb].ready_s, free_s = args->free_s[pe];
    double start = ready > free_s ? ready : free_s;
    if (!args->parts || args->parts[seb].next == seb) {
        run_seb(args, seb, start);
        return;
    }
    if (--args->parts_left[args->parts[seb].collective] > 0) {
        args->free_s[pe] = INFINITY;
        args->states[seb].pending = WAITS_FOR_PARTS;
        return;
    }
    run_seb(args, seb, start);
    for (int32_t part = args->parts[seb].next; part != seb; part = args->parts[part].next) {
        seb_state *state = &args->states[part];
        *state = (seb_state){start, state->duration_s, state->pe, 0, seb, BY_DEPENDENCY};
        run_seb(args, part, start);
    }
}

/* Hold a SEB, ready at `time`, if its PE is busy or holds others; return whether it is held. Nobody
   knows when a PE that waits in a collective will be free. */
static bool hold(const replay_args *args, int32_t seb, double time)
{
    int32_t pe = args->states[seb].pe, *held = &args->held_of_pe[pe];
    if (*held == 0) {
        if (!(args->free_s[pe] > time))
            return false;
        if (args->free_s[pe] < INFINITY)
            enqueue(args, args->free_s[pe], (int32_t)(args->held_len + pe));
    }
    push(&args->held[args->first_of_pe[pe]], (*held)++, (queue_entry){0.0, seb, -1});
    return true;
}

/* Take the first SEB that a PE holds, if it holds any and is free. */
static void take_held(const replay_args *args, int32_t pe, double time)
{
    queue_entry *held = &args->held[args->first_of_pe[pe]];
    if (args->held_of_pe[pe] == 0 || args->free_s[pe] > time)
        return;
    int32_t first = held[0].seb;
    drop_first(held, args->held_of_pe[pe]--);
    take(args, first);
}

/* When nothing can run, free the PEs that wait in collectives and hold others, of which the first
   counts as ready from now on; return whether there are any. Such a PE may then wait in several
   collectives, and is free again when one of them ends. */
static bool break_stall(const replay_args *args)
{
    double now = args->queue->now_s;
    bool any = false;
    for (int64_t pe = 0; args->parts && pe < args->pes; pe++)
        if (args->held_of_pe[pe] > 0 && args->free_s[pe] == INFINITY) {
            args->states[args->held[args->first_of_pe[pe]].seb].ready_s = now;
            args->free_s[pe] = now;
            enqueue(args, now, (int32_t)(args->held_len + pe));
            any = true;
        }
    args->queue->stalls += any;
    return any;
}

bool replay(seb_state *states, const seb_links *links, const int32_t *waiting,
            const sent_message *messages, const int32_t *first_receiver, const int32_t *receivers,
            int64_t workers, double node_latency_s, double *free_s, int64_t free_s_len,
            replay_queue *queue, queue_entry *heap, queue_entry *nodes, queue_entry *later,
            int32_t *heads, int64_t heads_len, queue_entry *held, int64_t held_len,
            const int32_t *first_of_pe, int32_t *held_of_pe, const collective_part *parts,
            int64_t parts_len, int32_t *parts_left, int32_t *order, int64_t order_len,
            double *start_s, int64_t most)
{
    replay_args args = {states, links, waiting, messages, first_receiver, receivers, workers,
                        node_latency_s, queue, heap, nodes, later, heads, heads_len, free_s,
                        free_s_len, held, held_len, first_of_pe, held_of_pe,
                        parts_len > 0 ? parts : NULL, parts_left, order,
                        order_len > 0 ? start_s : NULL};
    for (; most > 0 && (refill(&args) || break_stall(&args)); most--) {
        double time = heap[0].time;
        int32_t seb = dequeue(&args);
        queue->now_s = time;
        if (is_free_pe(&args, seb))
            take_held(&args, (int32_t)(seb - held_len), time);
        else if (held_len == 0 || !hold(&args, seb, time))
            take(&args, seb);
    }
    return refill(&args) || break_stall(&args);
}
