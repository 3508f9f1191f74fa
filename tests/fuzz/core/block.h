/* A block of timelines made of a fuzzer's bytes: log version and byte order (1 byte), the number of
   timelines (1), where the second and third begin (2 each), then timelines as in a file. */
#include "layouts.h" /* written by `fuzz/cores.py`: LAYOUTS and LAYOUT_COUNT */
#include "rewritelog/core/walk.h"
#include "target.h"

enum { HEAD_BYTES = 6, MOST_PIECES = 3 };

typedef struct {
    const layout *lay;
    const uint8_t *buf;
    int64_t len, pieces;
    int64_t starts[MOST_PIECES], ends[MOST_PIECES], counts[MOST_PIECES];
    int64_t after[MOST_PIECES], walked[MOST_PIECES], totals[4], faults[MOST_PIECES * FAULT_SIZE];
    int64_t seb_count, *sebs;             /* as `locate` gives them */
    int64_t *record_seb[4], *record_at[4]; /* messages, events, backward, forward */
} block;

/* Set the pieces: those that have no room for their count of SEBs end them. */
static inline void split(block *all, const uint8_t *head)
{
    int64_t wanted = 1 + head[1] % MOST_PIECES, at = 0;
    for (int64_t piece = 0; piece < wanted; piece++) {
        int64_t end = all->len;
        if (piece + 1 < wanted)
            end = head[2 + 2 * piece] + 256 * head[3 + 2 * piece];
        if (end > all->len || end - at < 4)
            break;
        all->starts[piece] = at + 4;
        all->counts[piece] = load_i4(all->buf + at, all->lay->swap);
        all->ends[piece] = at = end;
        all->pieces++;
    }
}

/* Walk a block and find its records; return false if the bytes are too few for one. */
static inline bool open_block(block *all, const uint8_t *data, size_t size)
{
    memset(all, 0, sizeof *all);
    if (size < HEAD_BYTES)
        return false;
    all->lay = LAYOUTS + data[0] % LAYOUT_COUNT;
    all->buf = data + HEAD_BYTES;
    all->len = (int64_t)size - HEAD_BYTES;
    split(all, data);
    memcpy(all->after, all->ends, sizeof all->ends);
    memcpy(all->walked, all->counts, sizeof all->counts);
    tally(all->buf, all->len, all->starts, all->pieces, all->after, all->walked, all->lay,
          all->totals, all->faults);
    for (int64_t piece = 0; piece < all->pieces; piece++)
        all->seb_count += all->walked[piece];
    all->sebs = array_of(5 * all->seb_count, sizeof(int64_t));
    for (int kind = 0; kind < 4; kind++) {
        all->record_seb[kind] = array_of(all->totals[kind], sizeof(int64_t));
        all->record_at[kind] = array_of(all->totals[kind], sizeof(int64_t));
    }
    locate(all->buf, all->starts, all->pieces, all->walked, all->lay, all->sebs,
           all->record_seb[0], all->record_at[0], all->record_seb[1], all->record_at[1],
           all->record_seb[2], all->record_at[2], all->record_seb[3], all->record_at[3]);
    return true;
}

/* Return the offset of each SEB. */
static inline int64_t *seb_offsets(const block *all)
{
    int64_t *offsets = array_of(all->seb_count, sizeof *offsets);
    for (int64_t seb = 0; seb < all->seb_count; seb++)
        offsets[seb] = all->sebs[5 * seb];
    return offsets;
}

static inline void close_block(block *all)
{
    free(all->sebs);
    for (int kind = 0; kind < 4; kind++) {
        free(all->record_seb[kind]);
        free(all->record_at[kind]);
    }
}
