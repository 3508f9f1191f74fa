/* replay and what follows it: SEBs run in order and one at a time, in steps of any size. */
#include <math.h>

#include "rewritelog/core/core.h"
#include "target.h"

enum { PES = 4, BYTES = 5, MOST = 500, BUCKETS = 8 };

/* A program: each SEB takes BYTES of the input. */
typedef struct {
    int32_t count;
    seb_state *states;
    seb_links *links;
    sent_message *messages;
    int32_t *starter, *first_receiver, *receivers, *waiting;
    collective_part *parts; /* of each SEB, of which some are parts of collectives of two */
} program;

/* The outcome of a replay. */
typedef struct {
    seb_state *states;
    double *start_s;
    int32_t *order;
    int64_t ran, stalls;
} outcome;

/* A time between nothing and more than any number. */
static double seconds(uint8_t byte)
{
    static const double units[] = {0.0, 1.0, 0.125, 1e-9, 1e-300, 1e300, 1e308, 3.0};
    return units[byte % 8] * (byte / 8);
}

/* Return the values grouped by their keys, and in `first`, all 0, where each group begins. */
static int32_t *grouped(const int32_t *keys, const int32_t *values, int32_t count, int32_t *first)
{
    int32_t *places = array_of(count, sizeof *places), *found = array_of(count, sizeof *found);
    for (int32_t k = 0; k < count; k++)
        if (keys[k] >= 0)
            first[keys[k] + 1]++;
    for (int32_t k = 0; k < count; k++)
        places[k] = first[k + 1] += first[k];
    for (int32_t k = count; k > 0; k--)
        places[k - 1] = first[k - 1];
    for (int32_t k = 0; k < count; k++)
        if (keys[k] >= 0)
            found[places[keys[k]]++] = values[k];
    free(places);
    return found;
}

/* SEB k has one message of number k, which starts the SEB that names it, and waits for another SEB
   or the one before it; all indices exist, as loading has checked. */
static program read_program(const uint8_t *data, size_t size)
{
    program all = {.count = (int32_t)(size / BYTES < MOST ? size / BYTES : MOST)};
    int64_t count = all.count;
    int32_t *keys = array_of(count, sizeof *keys), *values = array_of(count, sizeof *values);
    int32_t *first = array_of(count + 1, sizeof *first);
    all.states = array_of(count, sizeof *all.states);
    all.links = array_of(count + 1, sizeof *all.links);
    all.messages = array_of(count, sizeof *all.messages);
    all.starter = array_of(count, sizeof *all.starter);
    all.first_receiver = array_of(count + 1, sizeof *all.first_receiver);
    all.parts = array_of(count, sizeof *all.parts);
    for (int32_t k = 0, open = -1; k < all.count; k++, data += BYTES) {
        all.parts[k].next = k;
        if (data[3] % 4 == 3 && open >= 0 && all.states[open].pe != data[0] % PES) {
            all.parts[k] = (collective_part){open, open};
            all.parts[open] = (collective_part){open, k};
            open = -1;
        } else if (data[3] % 4 == 3) {
            open = k;
        }
        bool told = data[1] & 1, waits = data[4] & 1, follows = !waits && data[4] & 2 && k > 0;
        all.starter[k] = told ? (int32_t)(data[1] / 2 * 4 + data[0] / 64) % all.count : -1;
        keys[k] = waits ? (int32_t)(data[4] / 2) % all.count : follows ? k - 1 : -1;
        values[k] = follows ? -1 - k : k;
        int32_t inputs = told + waits + follows;
        all.states[k] = (seb_state){0.0, seconds(data[2]), data[0] % PES, inputs, -1, BY_ITSELF};
        all.messages[k] = (sent_message){seconds(data[3]), seconds(data[0])};
    }
    all.waiting = grouped(keys, values, all.count, first);
    for (int32_t k = 0; k < all.count; k++) {
        all.links[k + 1] = (seb_links){k + 1, first[k + 1]};
        values[k] = k;
    }
    all.receivers = grouped(all.starter, values, all.count, all.first_receiver);
    free(keys);
    free(values);
    free(first);
    return all;
}

/* Run a program in steps; if `by_index`, a PE takes the first SEB of those that are ready. */
static outcome run(const program *all, int64_t step, bool by_index)
{
    int64_t count = all->count;
    outcome found = {array_of(count, sizeof(seb_state)), array_of(count, sizeof(double)),
                     array_of(count, sizeof(int32_t)), 0, 0};
    queue_entry *heap = array_of(count + PES, sizeof *heap);
    queue_entry *nodes = array_of(count + PES, sizeof *nodes);
    queue_entry *later = array_of(count + PES, sizeof *later);
    queue_entry *held = array_of(count, sizeof *held);
    int32_t *heads = array_of(BUCKETS, sizeof *heads);
    int32_t *parts_left = array_of(count, sizeof *parts_left);
    int32_t first_of_pe[PES + 1] = {0}, held_of_pe[PES] = {0};
    double free_s[PES] = {0};
    for (int64_t k = 0; k < count; k++)
        parts_left[k] = 2;
    for (int64_t k = 0; k < count; k++)
        for (int32_t pe = all->states[k].pe; pe < PES; pe++)
            first_of_pe[pe + 1]++;
    replay_queue queue = {.current = -1, .free = -1, .base_s = -1.0, .buckets_per_s = 1.0};
    memcpy(found.states, all->states, (size_t)count * sizeof(seb_state));
    for (int32_t k = 0; k < count; k++)
        if (found.states[k].pending == 0)
            later[queue.in_later++] = (queue_entry){0.0, k, -1};
    while (replay(found.states, all->links, all->waiting, all->messages, all->first_receiver,
                  all->receivers, 2, 0.25, free_s, PES, &queue, heap, nodes, later, heads,
                  BUCKETS, held, by_index ? count : 0, first_of_pe, held_of_pe, all->parts,
                  by_index ? count : 0, parts_left, found.order, count, found.start_s, step))
        HOLDS(queue.ran <= count);
    found.ran = queue.ran;
    found.stalls = queue.stalls;
    free(heap);
    free(nodes);
    free(later);
    free(held);
    free(heads);
    free(parts_left);
    return found;
}

static void check_order(const program *all, const outcome *found, bool by_index)
{
    double free_s[PES] = {0}, latest = 0.0;
    for (int64_t k = 0; k < found->ran; k++) {
        int32_t seb = found->order[k], other_part = by_index ? all->parts[seb].next : seb;
        seb_state state = found->states[seb];
        HOLDS(found->start_s[seb] == found->start_s[other_part]);
        HOLDS(state.pending == 0 && (by_index || state.ready_s >= latest));
        HOLDS(found->stalls || found->start_s[seb] == fmax(state.ready_s, free_s[state.pe]));
        double end = found->start_s[seb] + state.duration_s;
        HOLDS(end >= found->start_s[seb]);
        for (int64_t later = k + 1; by_index && seb == other_part && later < found->ran; later++) {
            int32_t other = found->order[later];
            HOLDS(found->states[other].pe != state.pe || other > seb ||
                  found->states[other].ready_s >= found->start_s[seb]);
        }
        free_s[state.pe] = end;
        latest = state.ready_s;
    }
}

/* Chains lead nowhere outside of the program, and end. */
static void check_causes(const program *all, outcome *found)
{
    chain_link *chains = array_of(all->count, sizeof *chains);
    double *split = array_of(3 * found->ran, sizeof *split);
    double *since = array_of(found->ran, sizeof *since);
    lone_interval alone = {0.0, 1.0, 0.0};
    add_up_chains(found->order, found->ran, found->states, found->start_s, all->starter,
                  all->messages, &alone, 1, chains);
    split_idle(found->order, found->ran, since, found->states, found->start_s, all->starter,
               all->messages, &alone, 1, chains, split);
    for (int64_t k = 0; k < found->ran; k++) {
        int64_t length = 0;
        for (int32_t seb = found->order[k]; seb >= 0; seb = found->states[seb].cause)
            length++;
        HOLDS(length == chains[found->order[k]].depth + 1);
    }
    free(chains);
    free(split);
    free(since);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < BYTES)
        return 0;
    program all = read_program(data, size);
    bool by_index = data[0] & 128;
    outcome whole = run(&all, 3 * MOST, by_index), parts = run(&all, 1 + data[0] % 7, by_index);
    HOLDS(whole.ran == parts.ran);
    HOLDS(!memcmp(whole.order, parts.order, (size_t)whole.ran * sizeof *whole.order));
    HOLDS(!memcmp(whole.states, parts.states, (size_t)all.count * sizeof *whole.states));
    check_order(&all, &whole, by_index);
    check_causes(&all, &whole);
    outcome both[] = {whole, parts};
    for (int k = 0; k < 2; k++) {
        free(both[k].states);
        free(both[k].start_s);
        free(both[k].order);
    }
    void *arrays[] = {all.states,         all.links,     all.messages, all.starter,
                      all.first_receiver, all.receivers, all.waiting,  all.parts};
    for (int k = 0; k < 8; k++)
        free(arrays[k]);
    return 0;
}
