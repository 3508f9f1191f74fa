/* What SEBs waited for: chains of causes.

   The chain of a SEB leads from it to the SEB behind its last input, and so on to time 0. Jump
   pointers find a place in it in a time that grows with the logarithm of its length (Myers, "An
   applicative random-access stack", 1983). */
#include "core.h"
#include "numbers.h"

/* The run and its messages, from which chains are computed. */
typedef struct {
    const seb_state *states;
    const double *start_s;
    const int32_t *starter;
    const sent_message *messages;
    const lone_interval *alone;
    int64_t alone_len;
} run_history;

/* For how long exactly one PE was busy before a time. */
static double alone_before(const run_history *run, double time)
{
    int64_t low = 0, high = run->alone_len;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (run->alone[middle].begin_s <= time)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return 0.0;
    lone_interval last = run->alone[low - 1];
    return last.before_s + smaller(last.end_s, time) - last.begin_s;
}

/* The sums over a SEB's first link from `since` on; the rest of it is running beside other PEs. */
static chain_link split_link(const run_history *run, int32_t seb, double since)
{
    seb_state state = run->states[seb], source = run->states[state.cause];
    double start = run->start_s[state.cause], departure = state.ready_s;
    if (state.kind == BY_MESSAGE) {
        double sent = start + run->messages[run->starter[seb]].after_s;
        double end = start + source.duration_s;
        departure = smaller(state.ready_s, smaller(end, sent));
    }
    double from = larger(since, start);
    chain_link link = {.communication_s = state.ready_s - larger(since, departure)};
    if (departure > from)
        link.alone_s = alone_before(run, departure) - alone_before(run, from);
    link.imbalance_s = larger(0.0, start - larger(source.ready_s, since));
    return link;
}

void add_up_chains(const int32_t *sebs, int64_t sebs_len, const seb_state *states,
                   const double *start_s, const int32_t *starter, const sent_message *messages,
                   const lone_interval *alone, int64_t alone_len, chain_link *chains)
{
    run_history run = {states, start_s, starter, messages, alone, alone_len};
    for (int64_t k = 0; k < sebs_len; k++) {
        int32_t seb = sebs[k], source = states[seb].cause;
        if (source < 0) {
            chains[seb] = (chain_link){.jump = seb};
            continue;
        }
        chain_link link = split_link(&run, seb, states[source].ready_s);
        chain_link before = chains[source], far = chains[before.jump];
        link.communication_s += before.communication_s;
        link.alone_s += before.alone_s;
        link.imbalance_s += before.imbalance_s;
        link.depth = before.depth + 1;
        bool as_far = before.depth - far.depth == far.depth - chains[far.jump].depth;
        link.jump = as_far ? far.jump : source;
        chains[seb] = link;
    }
}

/* The SEB of a chain in whose first link a time lies. */
static int32_t chain_at(const seb_state *states, const chain_link *chains, int32_t seb, double time)
{
    while (states[seb].cause >= 0 && states[states[seb].cause].ready_s > time) {
        int32_t jump = chains[seb].jump;
        seb = states[jump].ready_s > time ? jump : states[seb].cause;
    }
    return seb;
}

void split_idle(const int32_t *sebs, int64_t sebs_len, const double *since_s,
                const seb_state *states, const double *start_s, const int32_t *starter,
                const sent_message *messages, const lone_interval *alone, int64_t alone_len,
                const chain_link *chains, double *split)
{
    run_history run = {states, start_s, starter, messages, alone, alone_len};
    for (int64_t k = 0; k < sebs_len; k++, split += 3) {
        int32_t first = chain_at(states, chains, sebs[k], since_s[k]);
        chain_link own = chains[sebs[k]], before = chains[first], link = {0};
        if (states[first].cause >= 0)
            link = split_link(&run, first, since_s[k]);
        split[0] = own.communication_s - before.communication_s + link.communication_s;
        split[1] = own.alone_s - before.alone_s + link.alone_s;
        split[2] = own.imbalance_s - before.imbalance_s + link.imbalance_s;
    }
}
