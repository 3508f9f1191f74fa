/* Fields in protobuf's wire format, for the functions that follow them through checked bytes. */
#ifndef REWRITELOG_NODES_H
#define REWRITELOG_NODES_H

#include <string.h>

#include "core.h"

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5, MOST_VARINT_BYTES = 10 };

/* A field of a message: the offsets of its tag, of its value, and of the content after a length. */
typedef struct {
    int64_t number, at, value, content;
    int wire;
} wire_field;

/* Set the fault; return -1, which is not an offset. */
static inline int64_t set_wire_fault(int64_t *fault, int64_t code, int64_t at, int64_t value)
{
    fault[FAULT_CODE] = code;
    fault[FAULT_AT] = at;
    fault[FAULT_VALUE] = value;
    return -1;
}

/* Return the varint at `at`, which has been checked to end, and advance past it. */
static inline uint64_t load_varint(const uint8_t *buf, int64_t *at)
{
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        uint8_t byte = buf[(*at)++];
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
}

/* Read the field at `at`, which the walk has checked; return the offset after it. */
static inline int64_t next_field(const uint8_t *buf, int64_t at, wire_field *field)
{
    field->at = at;
    uint64_t tag = load_varint(buf, &at);
    field->number = (int64_t)(tag >> 3);
    field->wire = (int)(tag & 7);
    field->value = field->content = at;
    if (field->wire == WIRE_FIXED64 || field->wire == WIRE_FIXED32)
        return at + (field->wire == WIRE_FIXED64 ? 8 : 4);
    uint64_t value = load_varint(buf, &at);
    if (field->wire == WIRE_VARINT)
        return at;
    field->content = at;
    return at + (int64_t)value;
}

#endif
