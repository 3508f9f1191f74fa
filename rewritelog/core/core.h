/* The functions of the compiled core.

   This header is their only declaration: `tracebigsim.core` reads it, checks every call against it
   and fills in each NAME_len from the array NAME. Offsets count bytes from the start of `buf`,
   times are in seconds. Only `walk`, `patch` and `walk_nodes` read unchecked bytes: they check
   every count against `buf_len`. All other functions take what these returned for the same bytes.
   No function keeps state, so that threads may call any of them at the same time. */
#ifndef REWRITELOG_CORE_H
#define REWRITELOG_CORE_H

#include <stdbool.h>
#include <stdint.h>

#ifndef CORE
#define CORE __attribute__((visibility("default")))
#endif

/* ---- walk.c: where SEBs, messages, events and dependencies are ---- */

/* Sizes and offsets in bytes of one log version, derived from `formats/bgtrace/declaration.py`. */
typedef struct {
    int64_t swap; /* whether the byte order differs from this machine's */
    int64_t seb_bytes; /* the fixed part of a SEB, up to the number of messages */
    int64_t seb_seqno, seb_start_time, seb_exec_time, seb_end_time, seb_name, name_bytes;
    int64_t count_bytes; /* of counts, indices and dependencies */
    int64_t message_bytes, message_msg_id, message_send_time, message_recv_time;
    int64_t event_bytes; /* the fixed part of an event, up to the index or the text length */
    int64_t event_r_time;
} layout;

/* The codes of faults; `formats/bgtrace/declaration.py` has a message for each. */
enum fault_code {
    OK,
    SEB_TRUNCATED,
    MESSAGE_COUNT_NEGATIVE,
    MESSAGES_TRUNCATED,
    EVENT_COUNT_NEGATIVE,
    EVENTS_TRUNCATED,
    EVENT_TYPE,
    TEXT_NEGATIVE,
    TEXT_TRUNCATED,
    BACKWARD_NEGATIVE,
    BACKWARD_TRUNCATED,
    FORWARD_NEGATIVE,
    FORWARD_TRUNCATED,
    SEB_COUNT_NEGATIVE,
    SEB_COUNT_TOO_LARGE,
    BYTES_LEFT_OVER,
    TIME_NOT_FINITE,
    SEND_NOT_FINITE,
    DURATION_OVERFLOW,
    SEND_OVERFLOW,
    RECV_OVERFLOW,
    EVENT_OVERFLOW,
    SEQNO_WRONG
};

/* A fault is FAULT_SIZE integers: its code, offset, value, piece (SEBs of one timeline) and SEB. */
enum fault_part { FAULT_CODE, FAULT_AT, FAULT_VALUE, FAULT_PIECE, FAULT_SEB, FAULT_SIZE };

/* The lists of a SEB after its fixed part. */
enum seb_list { MESSAGES_OF_SEB, EVENTS_OF_SEB, BACKWARD_OF_SEB, FORWARD_OF_SEB, SEB_LISTS };

/* A SEB: its offset, those of its lists of events and of backward dependencies, each of which
   begins with its count, and the number of records in each of its lists. */
typedef struct {
    int64_t at, events_at, backward_at, messages, events, backward, forward;
} walked_seb;

/* Walk the `counts` SEBs of each piece, which begins at `starts` and has to end at `ends`. Fill in
   `sebs`, which has room for all of them; set `counts` to the number of whole SEBs of each piece,
   `ends` to the end of its last one, and `faults` (pieces x FAULT_SIZE) to what ended the walk. */
CORE void walk(const uint8_t *buf, int64_t buf_len, const int64_t *starts, int64_t starts_len,
               int64_t *ends, int64_t *counts, const layout *lay, walked_seb *sebs,
               int64_t *faults);

/* Fill in, for each record that the SEBs have in one `seb_list`, the SEB's index and its offset. */
CORE void locate(const uint8_t *buf, const walked_seb *sebs, int64_t sebs_len, const layout *lay,
                 int64_t list, int64_t *seb, int64_t *at);

/* ---- columns.c: fields of records to columns and back ---- */

/* Copy the `width` bytes at `field` in each record to `column`. The field consists of numbers of
   `number` bytes; `swap` reverses the bytes of each of them. */
CORE void gather(const uint8_t *buf, const int64_t *at, int64_t at_len,
                 int64_t field, int64_t width, int64_t number, bool swap, uint8_t *column);

/* Copy `column` to the fields of the records, as `gather` read them. */
CORE void scatter(uint8_t *buf, const int64_t *at, int64_t at_len, int64_t field,
                  int64_t width, int64_t number, bool swap, const uint8_t *column);

/* Compare records of `a` and `b` in pairs; set in `bits` each bit that differs in any pair. */
CORE void differing_bits(const uint8_t *a, const int64_t *a_at, int64_t a_at_len, const uint8_t *b,
                         const int64_t *b_at, uint8_t *bits, int64_t bits_len);

/* Copy `sizes` bytes from each offset `from` of `buf` to an offset `to` of `out`. */
CORE void copy_ranges(const uint8_t *buf, const int64_t *from, int64_t from_len,
                      const int64_t *to, const int64_t *sizes, uint8_t *out);

/* ---- names.c: distinct texts, numbered in order of first appearance ---- */

/* Number the texts at `at`, whose lengths are `bytes`; names end before their first NUL. The hash
   table `slots`, zeros at first, has a power of two of slots, more than there are texts; a slot
   becomes 1 + a text's number. `key` is random, so that no log can make all texts collide. Fill in
   the number of each text, and the `first` row of each distinct one; return how many these are. */
CORE int64_t number_texts(const uint8_t *buf, const int64_t *at, int64_t at_len,
                          const int64_t *bytes, bool are_names, uint64_t key, int32_t *slots,
                          int64_t slots_len, int64_t *first, int64_t *numbers);

/* Fill in the index in `known` of each text, or -1. All are `bytes` long, one after the other.
   `known` has the distinct texts that `number_texts` found when it filled `slots`. */
CORE void find_texts(const uint8_t *known, int64_t bytes, const uint8_t *texts, uint64_t key,
                     const int32_t *slots, int64_t slots_len, int64_t *numbers,
                     int64_t numbers_len);

/* ---- walk.c: the pairs of start and end marks in SEBs ---- */

enum { IRREGULAR = -1 };

/* Find the brackets of SEBs: set `counts` to the number of brackets of each, or IRREGULAR if its
   marks do not pair up in order within the SEB; in an unclosed SEB, only their order counts. Write
   start and end of each bracket, in seconds since the start of its SEB, to `times`, which has room
   for a number for each event. Return how many brackets there are. */
CORE int64_t find_brackets(const uint8_t *buf, const walked_seb *sebs, int64_t sebs_len,
                           const layout *lay, int64_t *counts, double *times);

/* ---- nodes.c: the messages of Chakra execution traces ---- */

/* The codes of faults; `formats/chakra.py` has a message for each. */
enum wire_fault_code {
    WIRE_OK,
    MESSAGE_CUT,
    MESSAGE_TOO_LONG,
    MESSAGE_EMPTY,
    FIELD_DAMAGED,
    FIELD_TYPE
};

enum { MOST_MESSAGE_BYTES = 134217728 };

/* A node: the offsets of its length, of its first field and of its end, of its name and of the
   shapes of its inputs; its duration field with the tag, or where to insert one; the number of its
   dependencies, and of those that are not control dependencies. */
typedef struct {
    int64_t at, body, end, name_at, name_bytes, shapes_at, shapes_bytes;
    int64_t duration_at, duration_bytes, type, deps, data_deps;
    uint64_t id, start_us, duration_us;
} trace_node;

/* An attribute of a node: its number, NaN without one, and where its text is. */
typedef struct {
    double number;
    int64_t at, bytes;
} attribute;

/* Walk messages from `at` on and fill in `nodes`, of which the first may be the metadata; return
   how many there are. The walk ends when `nodes` is full, at the end of the bytes, or with a fault,
   which is MESSAGE_CUT if a message is not whole. */
CORE int64_t walk_nodes(const uint8_t *buf, int64_t buf_len, int64_t at, bool has_metadata,
                        trace_node *nodes, int64_t nodes_len, int64_t *fault);

/* Fill `deps` with the ids that nodes wait for, as many for each node as its `deps` counts, the
   control dependencies of a node last. */
CORE void read_deps(const uint8_t *buf, const trace_node *nodes, int64_t nodes_len, uint64_t *deps);

/* Fill `hashes` with a hash of each node's fields, without its start and duration. */
CORE void hash_nodes(const uint8_t *buf, const trace_node *nodes, int64_t nodes_len,
                     uint64_t *hashes);

/* Fill `attributes` (nodes, names) with the last attribute of each name in each node. The names are
   one after the other; `ends` has the end of each. */
CORE void read_attributes(const uint8_t *buf, const trace_node *nodes, int64_t nodes_len,
                          const uint8_t *names, const int64_t *ends, int64_t ends_len,
                          attribute *attributes);

/* Write nodes with new durations to `out`, which has room for 20 more bytes per node than they
   take; return the size. A node whose duration stays the same is copied. */
CORE int64_t write_nodes(const uint8_t *buf, const trace_node *nodes, int64_t nodes_len,
                         const uint64_t *durations, uint8_t *out);

/* ---- columns.c: compensated sums ---- */

/* Add each value, in this order, to the sum of its group: a high and a low part in `sums`. */
CORE void add_by_group(const int64_t *groups, int64_t groups_len, const double *values,
                       double *sums);

/* ---- selection.c: stepwise selection of the terms of a sum ---- */

enum { MOST_TERMS = 16 };

/* Select at most `most` columns, those whose sum explains weighted times best; return how many, and
   fill `places` (most) with their indices.

   The columns have length 1: `gram` is their Gram matrix, `xty` has their inner products with
   the times, `yty` is the times' squared length. As long as BIC falls, the column that lowers
   chi2 most is taken, and those that it makes superfluous are removed (Efroymson's stepwise
   regression, 1960). One search starts from the column `constant`, unless that is -1, and one from
   nothing; the result is that of the lower BIC.
   Then columns, the fastest-growing first, are exchanged for ones that grow less and explain about
   as much: each for that of the first `candidates` columns that grows less and has the least n
   log(chi2/n) + price * growth. `rows` (most + 2, columns) is work space. */
CORE int64_t select_columns(const double *gram, const double *xty, int64_t xty_len,
                            double yty, int64_t samples, bool non_negative, int64_t constant,
                            int64_t most, const double *growth, int64_t candidates, double price,
                            double *rows, int64_t *places);

/* Return the penalty of BIC for terms, corrected for few samples; huge unless there are at least
   two more samples than terms. */
CORE double bic_penalty(int64_t terms, int64_t samples);

/* ---- process.c: means of a Gaussian process ---- */

/* The number of points is a multiple of this. */
enum { PROCESS_LANES = 64 };

/* Add to the mean of each row the sum over points of weight * covariance, which is (1 + r +
   r^2/3) exp(-r) at the distance r, or exp(-r) if it is `rough`. Rows, of the shape (rows, inputs),
   and points, (inputs, points), are finite numbers in units of the inputs' lengths; if an input has
   `code_squares` above 0, that is the squared distance of any two different values. A row's mean
   does not depend on other rows, nor on whether vectors are `wide`: of eight numbers, if the
   processor has them, which takes half of the time. */
CORE void process_add_means(const float *rows, int64_t inputs, const float *code_squares,
                            bool rough, bool wide, const float *points, const float *weights,
                            int64_t weights_len, double *means, int64_t means_len);

/* ---- replay.c: a program run on its PEs ---- */

/* What a SEB can wait for; of inputs that arrive last together, the kind listed last counts. */
enum input_kind { BY_ITSELF, BY_PREVIOUS, BY_DEPENDENCY, BY_MESSAGE };

/* In place of a number of inputs, for a SEB that waits for the other parts of its collective. */
enum { WAITS_FOR_PARTS = -1 };

/* A SEB in a run. `ready_s` is the time of its latest input so far, and `cause` the SEB behind it;
   `pending` counts the inputs that it waits for. */
typedef struct {
    double ready_s, duration_s;
    int32_t pe, pending, cause, kind;
} seb_state;

/* The first message that a SEB sends, and the first entry in `waiting` of SEBs that wait for it. */
typedef struct {
    int32_t first_message, first_waiting;
} seb_links;

/* How long after the start of its SEB a message leaves, and its delay between two nodes. */
typedef struct {
    double after_s, delay_s;
} sent_message;

/* The collective that a SEB is a part of, and the next part of it, after the last the first; a SEB
   that is its own next part runs alone. */
typedef struct {
    int32_t collective, next;
} collective_part;

typedef struct {
    double time;
    int32_t seb, next; /* the index of the next entry of the same bucket, -1 for none */
} queue_entry;

/* The number of entries in each part of the queue; the number of buckets, and the one now in the
   heap; the first free entry of `nodes`, and how many were ever used; how many SEBs have run, and
   how often PEs waited for each other in collectives; the time of the first bucket, the buckets per
   second, the time of the last entry removed, and the latest end of a SEB. */
typedef struct {
    int64_t in_heap, in_buckets, in_later, buckets, current, free, used, ran, stalls;
    double base_s, buckets_per_s, now_s, latest_s;
} replay_queue;

/* Run up to `most` SEBs; return whether there are more. `links` has a row more than `states`, and
   `first_receiver` an element more than `messages`; `waiting` lists the SEBs that wait for the end
   of each SEB, the one that follows it on its PE as -1 - SEB. `free_s` is when each PE can run its
   next SEB. `heap`, `nodes` and `later` have room for all SEBs and PEs; `later` begins with
   the SEBs that wait for nothing. If `held` is empty, a PE takes SEBs in the order of the times
   when they are ready. Else it takes, when free, the first ready SEB of its timeline: `held`, with
   room for all SEBs, has those that are ready while their PE is busy, `first_of_pe` says where
   those of a PE are, and `held_of_pe`, zeros at first, how many. Unless `parts` is empty, SEBs are
   parts of collectives, and `parts_left`, at first the number of parts of each, counts those that
   no PE has taken. Unless `order` is empty, fill it with the SEBs in the order in which they run,
   and `start_s` with the start of each. */
CORE bool replay(seb_state *states, const seb_links *links, const int32_t *waiting,
                 const sent_message *messages, const int32_t *first_receiver,
                 const int32_t *receivers, int64_t workers, double node_latency_s, double *free_s,
                 int64_t free_s_len, replay_queue *queue, queue_entry *heap, queue_entry *nodes,
                 queue_entry *later, int32_t *heads, int64_t heads_len, queue_entry *held,
                 int64_t held_len, const int32_t *first_of_pe, int32_t *held_of_pe,
                 const collective_part *parts, int64_t parts_len, int32_t *parts_left,
                 int32_t *order, int64_t order_len, double *start_s, int64_t most);

/* ---- chains.c: what SEBs waited for ---- */

/* Seconds along the chain of a SEB (chains.c): messages in transit, SEBs running while no other PE
   is busy, and SEBs waiting for their PE; the chain's depth, and a SEB further down it. */
typedef struct {
    double communication_s, alone_s, imbalance_s;
    int32_t depth, jump;
} chain_link;

/* An interval in which exactly one PE is busy, and the length of all such intervals before it. */
typedef struct {
    double begin_s, end_s, before_s;
} lone_interval;

/* Set the chains of `sebs`, in the order in which they ran, given the starts and starting messages
   of all SEBs, and the intervals in which one PE is busy, in order. */
CORE void add_up_chains(const int32_t *sebs, int64_t sebs_len, const seb_state *states,
                        const double *start_s, const int32_t *starter, const sent_message *messages,
                        const lone_interval *alone, int64_t alone_len, chain_link *chains);

/* Set `split` (SEBs, 3) to the seconds of a `chain_link` from `since_s` until SEBs are ready. */
CORE void split_idle(const int32_t *sebs, int64_t sebs_len, const double *since_s,
                     const seb_state *states, const double *start_s, const int32_t *starter,
                     const sent_message *messages, const lone_interval *alone, int64_t alone_len,
                     const chain_link *chains, double *split);

/* ---- patch.c: new times for SEBs, their messages and log events ---- */

/* Sums of durations before and after a rewrite: of SEBs, in brackets, around them, without any. */
enum duration_sum {
    SUM_OLD,
    SUM_NEW,
    SUM_BRACKETED_OLD,
    SUM_BRACKETED_NEW,
    SUM_AROUND_OLD,
    SUM_AROUND_NEW,
    SUM_WITHOUT_OLD,
    SUM_WITHOUT_NEW,
    DURATION_SUMS
};

/* Counts of SEBs, messages and brackets. The outcome of a SEB is a number from SEBS_BY_MODEL to
   SEBS_ZERO_LENGTH, plus a flag if its marks or records are irregular. */
enum patch_count {
    SEBS,
    MESSAGES,
    SEBS_BY_MODEL,
    SEBS_BY_EXACT,
    SEBS_BY_DILATION,
    SEBS_UNCHANGED,
    SEBS_UNCLOSED,
    SEBS_ZERO_LENGTH,
    BRACKETS,
    BRACKETS_WITHOUT_RECORD,
    SEBS_MARKS_IRREGULAR,
    SEBS_RECORDS_MISMATCHED,
    SEBS_UNMARKED_WITH_RECORD,
    MESSAGES_OUTSIDE,
    MESSAGES_RECV_RAISED,
    PATCH_COUNTS
};

/* The flag of SEBS_MARKS_IRREGULAR; those of the other kinds are the next bits. */
enum { IRREGULAR_FLAG = 16 };

enum record_state {
    RECORD_NO_SEB,
    RECORD_PREDICTED,
    RECORD_NOT_COVERED,
    RECORD_NOT_PAIRED,
    RECORD_LEFT_ALONE
};

/* A param record: its SEB, counted over all pieces, or -1; the predicted seconds of its bracket, or
   NaN to dilate it, and whether they are an exact match. Filled in: the state, and the seconds of
   the bracket before and after. */
typedef struct {
    int64_t seb;
    double predicted_s, old_s, new_s;
    bool exact;
    uint8_t state;
} param_record;

/* Walk the `counts` SEBs of each piece, which begins at `starts` and has to end at `ends`, and
   rewrite them in place; stop at the first fault. `firsts` is the index of the first SEB of each
   piece in its timeline, `factors` the dilation of each SEB. The records of a SEB belong to its
   brackets if there are as many of both; a SEB without marks and with one record is a bracket from
   start to end. `keep_recv` keeps receive times, or raises them to the new send times. `table` has
   room for 3 x (2 + events) numbers for any SEB. Filled in: the offset of each SEB, its outcome,
   and the counts; `sums` has a high and a low part for each duration_sum of each piece. */
CORE void patch(uint8_t *buf, int64_t buf_len, const int64_t *starts, int64_t starts_len,
                const int64_t *ends, const int64_t *counts, const int64_t *firsts,
                const layout *lay, const double *factors, bool keep_recv,
                param_record *records, int64_t records_len,
                double *table, int64_t table_len, int64_t *sebs, uint8_t *outcomes,
                int64_t *patch_counts, double *sums, int64_t *fault);

#endif
