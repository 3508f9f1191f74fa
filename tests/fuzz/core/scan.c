/* scan: what it finds lies in the text, and is the same in parts of any size. */
#include <math.h>

#include "target.h"
#include "tracebigsim/core/core.h"

/* What a text holds, as far as it does not depend on how it was scanned. */
typedef struct {
    int64_t records, faults, lines;
    uint64_t mixed;
} answer;

typedef struct {
    int64_t records_len, params_len, counters_len;
    line_record *records;
    double *params;
    int64_t *counters;
    line_fault faults[4];
    int32_t slots[4];
    scan_state state;
} part;

static void mix(answer *all, const void *bytes, size_t size)
{
    for (size_t k = 0; k < size; k++)
        all->mixed = (all->mixed ^ ((const uint8_t *)bytes)[k]) * UINT64_C(1099511628211);
}

static void check_record(const uint8_t *text, int64_t size, const part *one, int64_t row)
{
    const line_record *record = one->records + row, *first = one->records + record->first;
    int64_t length = record->name_end - record->name_start;
    HOLDS(record->offset >= 0 && record->name_start >= record->offset);
    HOLDS(length > 0 && record->name_end <= size);
    HOLDS(record->seb >= -1 && record->seqno >= -1);
    HOLDS(record->params >= 0 && record->params <= MAX_PARAMS && record->counters >= 0);
    HOLDS(record->unit == UNIT_NONE ? isnan(record->time)
                                    : isfinite(record->time) && !signbit(record->time));
    HOLDS(record->first >= 0 && record->first <= row);
    HOLDS(first->first == record->first && first->name_end - first->name_start == length);
    HOLDS(!memcmp(text + first->name_start, text + record->name_start, (size_t)length));
}

/* Add the records of a part to the answer. */
static void add_part(answer *all, const uint8_t *text, int64_t size, part *one)
{
    int64_t params = 0, counters = 0;
    for (int64_t row = 0; row < one->state.records; row++) {
        const line_record *record = one->records + row;
        check_record(text, size, one, row);
        mix(all, record, offsetof(line_record, params));
        mix(all, one->params + params, (size_t)record->params * sizeof *one->params);
        mix(all, one->counters + counters, (size_t)record->counters * sizeof *one->counters);
        params += record->params;
        counters += record->counters;
    }
    HOLDS(params == one->state.params && counters == one->state.counters);
    for (int64_t k = 0; k < params; k++)
        HOLDS(isfinite(one->params[k]) && (one->params[k] != 0 || !signbit(one->params[k])));
    all->records += one->state.records;
}

/* Scan a text with arrays of the lengths in `one`. */
static answer scan_all(const uint8_t *text, int64_t size, part one)
{
    answer all = {0};
    one.records = array_of(one.records_len, sizeof *one.records);
    one.params = array_of(one.params_len, sizeof *one.params);
    one.counters = array_of(one.counters_len, sizeof *one.counters);
    one.state.line = 1;
    do {
        int64_t before = one.state.position;
        memset(one.slots, 0, sizeof one.slots);
        one.state.records = one.state.params = one.state.counters = 0;
        scan(text, size, one.records, one.records_len, one.params, one.params_len, one.counters,
             one.counters_len, one.slots, 4, one.faults, 4, &one.state);
        HOLDS(size == 0 || one.state.position > before);
        add_part(&all, text, size, &one);
    } while (one.state.position < size);
    for (int64_t k = 0; k < one.state.faults && k < 4; k++) {
        line_fault fault = one.faults[k];
        HOLDS(fault.offset >= 0 && fault.offset <= fault.end && fault.end <= size);
        HOLDS(fault.at >= 0 && fault.at <= size);
        HOLDS(fault.code > FINE && fault.code <= NO_TIME_NO_SEB);
    }
    all.faults = one.state.faults;
    all.lines = one.state.line;
    free(one.records);
    free(one.params);
    free(one.counters);
    return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t length = (int64_t)size + 1;
    uint8_t *text = array_of(length, 1);
    memcpy(text, data, size);
    text[size] = '\n';
    part roomy = {.records_len = length / 16 + 1, .params_len = length + MAX_PARAMS,
                  .counters_len = length / 2 + 1};
    part narrow = {.records_len = 2, .params_len = MAX_PARAMS, .counters_len = length / 2 + 1};
    answer whole = scan_all(text, length, roomy), parts = scan_all(text, length, narrow);
    HOLDS(whole.records == parts.records && whole.faults == parts.faults);
    HOLDS(whole.lines == parts.lines && whole.mixed == parts.mixed);
    free(text);
    return 0;
}
