/* The fields of a line, `name:{ content }`, in any order and with any blanks. Each reader advances
   `line->at`; after a fault it is at the place that is wrong. */
#include "reader.h"

/* No field's name is the beginning of a later one. */
enum { EVENT, CYCLES, TIME, PAPI, SEQNO, PARAMS, FIELDS };

static const char *const NAMES[FIELDS] = {"event", "time_in_cycles", "time",
                                          "PAPI",  "seqno", "params"};
static const int64_t LENGTHS[FIELDS] = {5, 14, 4, 4, 5, 6};

/* Move past blanks; return whether the line ends there. */
static bool line_ends(line_reader *line)
{
    line->at = skip_blanks(line->text, line->at, line->end);
    return line->at >= line->end;
}

/* Move past blanks, and past a closing brace; return whether there was one. */
static bool closes(line_reader *line)
{
    if (line_ends(line) || line->text[line->at] != '}')
        return false;
    line->at++;
    return true;
}

/* Return the number of the field whose name begins at the line's position, -1 if there is none. */
static int field_at(const line_reader *line)
{
    for (int field = 0; field < FIELDS; field++) {
        int64_t after = line->at + LENGTHS[field];
        if (after <= line->end && line->text[line->at] == NAMES[field][0]
            && !memcmp(line->text + line->at, NAMES[field], (size_t)LENGTHS[field]))
            return field;
    }
    return -1;
}

/* Read a field's name, colon and brace. `seen` has a bit for each field that was read before. */
static int open_field(line_reader *line, unsigned seen, int *field)
{
    const uint8_t *text = line->text;
    *field = field_at(line);
    if (*field < 0)
        return NOT_A_FIELD;
    int64_t at = line->at + LENGTHS[*field];
    for (const char *mark = ":{"; *mark; mark++, at++) {
        at = skip_blanks(text, at, line->end);
        if (at >= line->end || text[at] != *mark)
            return NOT_A_FIELD;
    }
    if (seen >> *field & 1)
        return DUPLICATE_FIELD;
    line->at = at;
    return FINE;
}

/* Return whether the brace at `at` follows a single colon, as in a field, and not `::`. */
static bool colon_before(const uint8_t *text, int64_t at, int64_t first)
{
    do
        at--;
    while (at > first && is_blank(text[at]));
    return at >= first && text[at] == ':' && (at == first || text[at - 1] != ':');
}

/* Record the name up to `last` without trailing blanks. */
static int set_name(line_reader *line, int64_t first, int64_t last)
{
    while (last > first && is_blank(line->text[last - 1]))
        last--;
    line->record.name_start = first;
    line->record.name_end = last;
    return last > first ? FINE : EMPTY_NAME;
}

/* Read an event's name up to the brace that closes it; braces within it come in pairs. */
static int read_name(line_reader *line)
{
    const uint8_t *text = line->text;
    int64_t first = skip_blanks(text, line->at, line->end), depth = 0;
    for (int64_t at = first; at < line->end; at++) {
        uint8_t byte = text[at];
        if (byte == '}' && depth-- == 0) {
            line->at = at + 1;
            return set_name(line, first, at);
        }
        if (byte == '{') {
            depth++;
            if (colon_before(text, at, first))
                return FIELD_IN_NAME;
        }
        if ((byte < 32 && byte != '\t') || byte == 127)
            return CONTROL_IN_NAME;
        if (byte == KEYWORD[0] && is_keyword(text, at, line->end))
            return GLUED;
    }
    return NOT_CLOSED;
}

int add_param(line_reader *line)
{
    double value;
    int code = read_number(line->text, &line->at, line->end, &value);
    if (code != FINE)
        return code;
    if (line->param_count < MAX_PARAMS)
        line->params[line->param_count] = value + 0.0;
    line->param_count++;
    return FINE;
}

static int add_counter(line_reader *line)
{
    int64_t *counter = line->counters + line->counter_count;
    int code = read_integer(line->text, &line->at, line->end, counter);
    line->counter_count += code == FINE;
    return code;
}

/* Read the numbers of a field, each by `add`, up to the closing brace. */
static int read_list(line_reader *line, int (*add)(line_reader *))
{
    int code = FINE;
    while (code == FINE && !closes(line))
        code = line->at >= line->end ? NOT_CLOSED : add(line);
    return code;
}

/* Move past the brace that closes a field of one number; return `other` if more follows. */
static int close_single(line_reader *line, int other)
{
    if (closes(line))
        return FINE;
    return line->at >= line->end ? NOT_CLOSED : other;
}

/* Move to the one number of a field; return `none` if the field is empty. */
static int find_single(line_reader *line, int none)
{
    if (line_ends(line))
        return NOT_CLOSED;
    return line->text[line->at] == '}' ? none : FINE;
}

/* No call takes longer; fits add and square such times, and the results still fit into a double. */
#define MOST_TIME 1e100

/* Read the one number of a time field; -0 is stored as 0. */
static int read_time(line_reader *line)
{
    double value;
    int code = find_single(line, NOT_ONE_TIME);
    if (code != FINE)
        return code;
    int64_t start = line->at;
    code = read_number(line->text, &line->at, line->end, &value);
    if (code != FINE)
        return code;
    if (value < 0 || value > MOST_TIME) {
        line->at = start;
        return value < 0 ? NEGATIVE_TIME : IS_INFINITE;
    }
    line->record.time = value + 0.0;
    return close_single(line, NOT_ONE_TIME);
}

static int read_seqno(line_reader *line)
{
    int64_t value;
    int code = find_single(line, NOT_ONE_SEQNO);
    if (code != FINE)
        return code;
    int64_t start = line->at;
    code = read_integer(line->text, &line->at, line->end, &value);
    if (code != FINE)
        return code;
    if (value < 0) {
        line->at = start;
        return NOT_ONE_SEQNO;
    }
    line->record.seqno = value;
    return close_single(line, NOT_ONE_SEQNO);
}

static int read_content(line_reader *line, int field)
{
    switch (field) {
    case EVENT:
        return read_name(line);
    case PARAMS:
        return read_list(line, add_param);
    case PAPI:
        return read_list(line, add_counter);
    case SEQNO:
        return read_seqno(line);
    default:
        line->record.unit = field == TIME ? UNIT_SECONDS : UNIT_CYCLES;
        return read_time(line);
    }
}

/* Return FINE if the fields seen (one bit each) make a record, else a fault. */
static int complete(const line_reader *line, unsigned seen)
{
    if (!(seen >> EVENT & 1))
        return NO_EVENT;
    if (seen >> TIME & seen >> CYCLES & 1)
        return TWO_TIMES;
    if (line->param_count > MAX_PARAMS)
        return TOO_MANY_PARAMS;
    bool has_time_or_seb =
        seen & (1u << TIME | 1u << CYCLES | 1u << SEQNO) || line->record.seb >= 0;
    return has_time_or_seb ? FINE : NO_TIME_NO_SEB;
}

int read_fields(line_reader *line)
{
    unsigned seen = 0;
    int code = FINE, field;
    while (code == FINE && !line_ends(line)) {
        code = open_field(line, seen, &field);
        if (code == FINE) {
            seen |= 1u << field;
            code = read_content(line, field);
        }
    }
    return code == FINE ? complete(line, seen) : code;
}
