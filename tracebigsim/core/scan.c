/* The pass over a text's lines: find the records, parse them, and store them in columns. */
#define _POSIX_C_SOURCE 200809L /* locales, which strict C hides */
#include <locale.h>
#include <math.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

#include "reader.h"

#ifdef HEADER_CRC32 /* given by the build: a library that is older than its header is not loaded */
CORE const uint32_t header_crc32 = HEADER_CRC32;
#endif

/* Return whether a TRACEBIGSIM that ends at `after` is followed by a colon or a blank. */
static bool begins_record(const line_reader *line, int64_t after)
{
    return after < line->end && (line->text[after] == ':' || is_blank(line->text[after]));
}

/* Search the line from `at`; return the position after the first TRACEBIGSIM that counts, or -1.
   Set `keywords` to the number of all, whether they count or not. */
static int64_t search_keyword(const line_reader *line, int64_t at, int *keywords)
{
    int64_t keyword_end = -1;
    *keywords = 0;
    while (at < line->end) {
        const uint8_t *next = memchr(line->text + at, KEYWORD[0], (size_t)(line->end - at));
        if (!next)
            break;
        at = next - line->text;
        if (!is_keyword(line->text, at, line->end)) {
            at++;
            continue;
        }
        at += KEYWORD_BYTES;
        (*keywords)++;
        if (keyword_end < 0 && begins_record(line, at))
            keyword_end = at;
    }
    return keyword_end;
}

/* Move past a UTF-8 byte order mark, which some editors write, and blanks at a line's beginning. */
static int64_t skip_margin(const line_reader *line, int64_t at)
{
    if (line->end - at >= 3 && !memcmp(line->text + at, "\xef\xbb\xbf", 3))
        at += 3;
    return skip_blanks(line->text, at, line->end);
}

/* Move past the TRACEBIGSIM that counts, and read the number before it. */
static int find_keyword(line_reader *line, int64_t start)
{
    int code = FINE, keywords;
    const uint8_t *text = line->text;
    int64_t at = skip_margin(line, start);
    if (at < line->end && text[at] == '#')
        return NO_RECORD;
    if (at < line->end && text[at] >= '0' && text[at] <= '9') {
        code = read_integer(text, &at, line->end, &line->record.seb);
        while (code == INTEGER_OVERFLOW && at < line->end && text[at] >= '0' && text[at] <= '9')
            at++;
        at = skip_blanks(text, at, line->end);
    }
    if (is_keyword(text, at, line->end) && begins_record(line, at + KEYWORD_BYTES)) {
        line->at = at + KEYWORD_BYTES;
        return code == INTEGER_OVERFLOW ? BAD_LEADING_NUMBER : FINE;
    }
    line->record.seb = -1;
    line->at = search_keyword(line, start, &keywords);
    if (line->at < 0)
        return NO_RECORD;
    return keywords > 1 ? GLUED : FINE;
}

/* Move past a token of a bare line; return a fault if a control character or keyword is in it. */
static int skip_bare_token(line_reader *line)
{
    for (; line->at < line->end && !is_blank(line->text[line->at]); line->at++) {
        uint8_t byte = line->text[line->at];
        if (byte < 32 || byte == 127)
            return CONTROL_IN_NAME;
        if (byte == KEYWORD[0] && is_keyword(line->text, line->at, line->end))
            return GLUED;
    }
    return FINE;
}

/* Read a line of older writers, which has no braces: a name, then the trailing run of numbers. */
static int read_bare(line_reader *line)
{
    line_record *record = &line->record;
    record->name_start = record->name_end = line->at;
    while ((line->at = skip_blanks(line->text, line->at, line->end)) < line->end) {
        int code = add_param(line);
        if (code == NOT_A_NUMBER) {
            line->param_count = 0;
            code = skip_bare_token(line);
            record->name_end = line->at;
        }
        if (code != FINE)
            return code;
    }
    if (record->name_end == record->name_start)
        return NO_EVENT;
    return line->param_count > MAX_PARAMS ? TOO_MANY_PARAMS : FINE;
}

/* Read what follows the keyword: fields, if there is a colon or a brace, else a bare line. A bare
   line without any number is no record: the keyword is a word of a sentence. */
static int read_record(line_reader *line)
{
    const uint8_t *text = line->text;
    int64_t at = line->at = skip_blanks(text, line->at, line->end);
    size_t left = (size_t)(line->end - at);
    bool colon = left > 0 && text[at] == ':' && (left == 1 || text[at + 1] != ':');
    if (colon || memchr(text + at, '{', left) || memchr(text + at, '}', left)) {
        line->at += colon;
        return read_fields(line);
    }
    int code = read_bare(line);
    return line->record.seb < 0 && line->param_count == 0 ? NO_RECORD : code;
}

/* Read the line at `start`; return FINE, NO_RECORD or a fault, of which GLUED takes precedence. */
static int read_line(line_reader *line, int64_t start)
{
    int keywords;
    int code = find_keyword(line, start);
    if (code == FINE)
        code = read_record(line);
    if (code > FINE && search_keyword(line, start, &keywords) >= 0 && keywords > 1)
        return GLUED;
    return code;
}

static bool same_name(const uint8_t *text, const line_record *a, const line_record *b)
{
    int64_t length = a->name_end - a->name_start;
    return length == b->name_end - b->name_start
           && !memcmp(text + a->name_start, text + b->name_start, (size_t)length);
}

/* Return a record with the same name as the last one. The slots are a cache: a name evicted from
   it has a new first record when it recurs, so that no choice of names makes the scan slower than
   linear. */
static int32_t first_of_name(const uint8_t *text, const line_record *records, int64_t last,
                             int32_t *slots, int64_t slots_len)
{
    const line_record *record = records + last;
    if (last > 0 && same_name(text, record, record - 1))
        return record[-1].first;
    uint32_t hash = 0;
    for (int64_t at = record->name_start; at < record->name_end; at++)
        hash = (hash ^ text[at]) * 16777619u;
    int64_t slot = (hash ^ hash >> 16) & (slots_len - 1);
    for (int64_t way = 0; way < 2; way++) {
        int32_t entry = slots[slot ^ way];
        if (entry && same_name(text, record, records + entry - 1))
            return entry - 1;
    }
    if (slots[slot] && !slots[slot ^ 1])
        slot ^= 1;
    slots[slot] = (int32_t)last + 1;
    return (int32_t)last;
}

/* Store a record after those of earlier lines. */
static void store_record(line_reader *line, line_record *records, int32_t *slots,
                         int64_t slots_len, scan_state *state)
{
    line->record.params = (int32_t)line->param_count;
    line->record.counters = (int32_t)line->counter_count;
    records[state->records] = line->record;
    records[state->records].first
        = first_of_name(line->text, records, state->records, slots, slots_len);
    state->params += line->param_count;
    state->counters += line->counter_count;
    state->records++;
}

void scan(const uint8_t *text, int64_t text_len, line_record *records, int64_t records_len,
          double *params, int64_t params_len, int64_t *counters, int64_t counters_len,
          int32_t *slots, int64_t slots_len, line_fault *faults, int64_t faults_len,
          scan_state *state)
{
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0), before = uselocale(plain);
    while (state->position < text_len) {
        int64_t start = state->position;
        const uint8_t *newline = memchr(text + start, '\n', (size_t)(text_len - start));
        int64_t end = newline ? newline - text : text_len, length = end - start;
        bool too_long = length > MAX_LINE_BYTES;
        if (state->records >= records_len || params_len - state->params < MAX_PARAMS
            || (!too_long && counters_len - state->counters <= length / 2))
            break;
        line_reader line = {
            .text = text,
            .at = start,
            .end = end - (length > 0 && text[end - 1] == '\r'),
            .record = {.line = state->line, .offset = start, .seb = -1, .seqno = -1, .time = NAN},
            .params = params + state->params,
            .counters = counters + state->counters,
        };
        int code = too_long ? TOO_LONG : read_line(&line, start);
        if (code == FINE)
            store_record(&line, records, slots, slots_len, state);
        else if (code > FINE && state->faults++ < faults_len)
            faults[state->faults - 1] = (line_fault){state->line, start, code, line.at, end};
        state->position = end + 1;
        state->line++;
    }
    uselocale(before);
    freelocale(plain);
}
