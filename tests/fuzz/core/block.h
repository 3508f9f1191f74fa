/* A block of timelines made of a fuzzer's bytes: log version and byte order (1 byte), the number of
   timelines (1), where the second and third begin (2 each), then timelines as in a file. */
#include "layouts.h" /* written by `fuzz/running/engines.py`: LAYOUTS and LAYOUT_COUNT */
#include "rewritelog/core/walk.h"
#include "target.h"

enum { HEAD_BYTES = 6, MOST_PIECES = 3 };

typedef struct {
    const layout *lay;
    const uint8_t *buf;
    int64_t len, pieces;
    int64_t starts[MOST_PIECES], ends[MOST_PIECES], counts[MOST_PIECES];
    int64_t after[MOST_PIECES], walked[MOST_PIECES], faults[MOST_PIECES * FAULT_SIZE];
    int64_t seb_count, totals[SEB_LISTS]; /* the numbers of SEBs, and of records in all their lists */
    walked_seb *sebs;
    int64_t *record_seb[SEB_LISTS], *record_at[SEB_LISTS];
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

/* Return the number of records in a list of a SEB. */
static inline int64_t listed(const walked_seb *seb, int list)
{
    int64_t counts[SEB_LISTS] = {seb->messages, seb->events, seb->backward, seb->forward};
    return counts[list];
}

/* Return an array with room for all SEBs that pieces with room for them may have. */
static inline walked_seb *room_for_sebs(const block *all)
{
    int64_t room = 0, least = all->lay->seb_bytes + SEB_LISTS * all->lay->count_bytes;
    for (int64_t piece = 0; piece < all->pieces; piece++)
        room += (all->ends[piece] - all->starts[piece]) / least + 1;
    return array_of(room, sizeof(walked_seb));
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
    all->sebs = room_for_sebs(all);
    walk(all->buf, all->len, all->starts, all->pieces, all->after, all->walked, all->lay,
         all->sebs, all->faults);
    for (int64_t piece = 0; piece < all->pieces; piece++)
        all->seb_count += all->walked[piece];
    for (int list = 0; list < SEB_LISTS; list++) {
        for (int64_t seb = 0; seb < all->seb_count; seb++)
            all->totals[list] += listed(all->sebs + seb, list);
        all->record_seb[list] = array_of(all->totals[list], sizeof(int64_t));
        all->record_at[list] = array_of(all->totals[list], sizeof(int64_t));
        locate(all->buf, all->sebs, all->seb_count, all->lay, list, all->record_seb[list],
               all->record_at[list]);
    }
    return true;
}

/* Return the offset of each SEB. */
static inline int64_t *seb_offsets(const block *all)
{
    int64_t *offsets = array_of(all->seb_count, sizeof *offsets);
    for (int64_t seb = 0; seb < all->seb_count; seb++)
        offsets[seb] = all->sebs[seb].at;
    return offsets;
}

static inline void close_block(block *all)
{
    free(all->sebs);
    for (int list = 0; list < SEB_LISTS; list++) {
        free(all->record_seb[list]);
        free(all->record_at[list]);
    }
}
