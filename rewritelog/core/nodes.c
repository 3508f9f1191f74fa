/* Messages in protobuf's wire format, one after the other as in a file of a Chakra trace: the one
   place where their lengths are checked against the bytes. What a field may hold is in a table. */
#include <string.h>

#include "core.h"

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5, MOST_VARINT_BYTES = 10 };

/* A field of a message: the offsets of its tag, of its value, and of the content after a length;
   a varint's value, or that length. */
typedef struct {
    int64_t number, at, value, content;
    uint64_t bits;
    int wire;
} wire_field;

/* Set the fault; return -1, which is not an offset. */
static int64_t set_wire_fault(int64_t *fault, int64_t code, int64_t at, int64_t value)
{
    fault[FAULT_CODE] = code;
    fault[FAULT_AT] = at;
    fault[FAULT_VALUE] = value;
    return -1;
}

/* Read the varint at `at`, which has to end before `end`; return the offset after it, or -1. */
static inline int64_t read_varint(const uint8_t *buf, int64_t at, int64_t end, uint64_t *value,
                                  int64_t *fault)
{
    if (at < end && buf[at] < 0x80) {
        *value = buf[at];
        return at + 1;
    }
    *value = 0;
    for (int64_t k = at; k < at + MOST_VARINT_BYTES; k++) {
        if (k >= end)
            return set_wire_fault(fault, VARINT_CUT, at, end - at);
        *value |= (uint64_t)(buf[k] & 0x7f) << 7 * (k - at);
        if (buf[k] < 0x80)
            return k == at + MOST_VARINT_BYTES - 1 && buf[k] > 1
                       ? set_wire_fault(fault, VARINT_TOO_LONG, at, 0)
                       : k + 1;
    }
    return set_wire_fault(fault, VARINT_TOO_LONG, at, 0);
}

/* Read the tag at `at` and skip the field's value; return the offset after it, or -1. */
static inline int64_t read_field(const uint8_t *buf, int64_t at, int64_t end, wire_field *field,
                                 int64_t *fault)
{
    uint64_t tag;
    *field = (wire_field){.at = at};
    field->value = field->content = read_varint(buf, at, end, &tag, fault);
    if (field->value < 0)
        return -1;
    field->number = (int64_t)(tag >> 3);
    field->wire = (int)(tag & 7);
    if (tag >> 32 || field->number == 0)
        return set_wire_fault(fault, FIELD_NUMBER, at, field->number);
    if (field->wire == WIRE_FIXED64 || field->wire == WIRE_FIXED32) {
        int64_t width = field->wire == WIRE_FIXED64 ? 8 : 4;
        if (width > end - field->value)
            return set_wire_fault(fault, FIELD_CUT, field->value, width);
        return field->value + width;
    }
    if (field->wire != WIRE_VARINT && field->wire != WIRE_BYTES)
        return set_wire_fault(fault, WIRE_TYPE, at, field->wire);
    int64_t next = read_varint(buf, field->value, end, &field->bits, fault);
    if (next < 0 || field->wire == WIRE_VARINT)
        return next;
    if (field->bits > (uint64_t)(end - next))
        return set_wire_fault(fault, FIELD_CUT, next, (int64_t)(field->bits >> 1));
    field->content = next;
    return next + (int64_t)field->bits;
}

/* Read the field at `at`, which the walk has checked; return the offset after it. */
static inline int64_t next_field(const uint8_t *buf, int64_t at, wire_field *field)
{
    return read_field(buf, at, INT64_MAX, field, NULL);
}

static int64_t check_message(const uint8_t *buf, int64_t at, int64_t end, const int32_t *schema,
                             int64_t message, int64_t *fault);

/* Return `next` if the value of a field, which ends there, is what the schema says, or -1. */
static int64_t check_value(const uint8_t *buf, const wire_field *field, int64_t next,
                           const int32_t *schema, int32_t kind, int64_t *fault)
{
    static const int WIRES[] = {
        [VARINT_VALUE] = WIRE_VARINT, [FIXED64_VALUE] = WIRE_FIXED64,
        [FIXED32_VALUE] = WIRE_FIXED32, [BYTES_VALUE] = WIRE_BYTES,
    };
    if (kind >= MESSAGE_VALUE) {
        if (field->wire != WIRE_BYTES)
            return set_wire_fault(fault, FIELD_TYPE, field->at, field->number);
        return check_message(buf, field->content, next, schema, kind - MESSAGE_VALUE, fault);
    }
    int32_t each = kind & ~SEVERAL_VALUES;
    if (each == UNKNOWN_VALUE || field->wire == WIRES[each])
        return next;
    if (!(kind & SEVERAL_VALUES) || field->wire != WIRE_BYTES)
        return set_wire_fault(fault, FIELD_TYPE, field->at, field->number);
    if (each == VARINT_VALUE) {
        uint64_t value;
        int64_t at = field->content;
        while (at >= 0 && at < next)
            at = read_varint(buf, at, next, &value, fault);
        return at;
    }
    if ((next - field->content) % (each == FIXED64_VALUE ? 8 : 4))
        return set_wire_fault(fault, PACKED_CUT, field->content, next - field->content);
    return next;
}

/* Skip the field at `at` of a message and check its value; return the offset after it, or -1. */
static int64_t check_field(const uint8_t *buf, int64_t at, int64_t end, const int32_t *schema,
                           int64_t message, wire_field *field, int64_t *fault)
{
    int64_t next = read_field(buf, at, end, field, fault);
    if (next < 0 || field->number >= SCHEMA_FIELDS)
        return next;
    int32_t kind = schema[SCHEMA_FIELDS * message + field->number];
    return check_value(buf, field, next, schema, kind, fault);
}

/* Return `end` if a message from `at` on is what the schema says, or -1. It holds no message of
   its own kind, so that the depth is that of the schema. */
static int64_t check_message(const uint8_t *buf, int64_t at, int64_t end, const int32_t *schema,
                             int64_t message, int64_t *fault)
{
    wire_field field;
    while (at >= 0 && at < end)
        at = check_field(buf, at, end, schema, message, &field, fault);
    return at;
}

/* Set what is kept of a field of a node. */
static void keep(const uint8_t *buf, const wire_field *field, int64_t next,
                 const node_fields *fields, trace_node *node)
{
    int64_t number = field->number;
    if (number == fields->data_deps)
        for (int64_t k = field->content; k < next; k++)
            node->deps += buf[k] < 0x80;
    else if (number == fields->id)
        node->id = field->bits;
    else if (number == fields->name) {
        node->name_at = field->content;
        node->name_bytes = next - field->content;
    } else if (number == fields->type)
        node->type = (int64_t)field->bits;
    else if (number == fields->start_time_micros)
        node->start_us = field->bits;
    else if (number == fields->duration_micros) {
        node->duration_us = field->bits;
        node->duration_at = field->at;
        node->duration_bytes = next - field->at;
    } else if (number == fields->inputs) {
        wire_field part;
        for (int64_t at = field->content, after; at < next; at = after) {
            after = next_field(buf, at, &part);
            if (part.number == fields->shapes) {
                node->shapes_at = part.content;
                node->shapes_bytes = after - part.content;
            }
        }
    }
    if (number < fields->duration_micros && !node->duration_bytes)
        node->duration_at = next;
}

int64_t walk_nodes(const uint8_t *buf, int64_t buf_len, int64_t at, bool is_last,
                   const int32_t *schema, int64_t message, const node_fields *fields,
                   trace_node *nodes, int64_t nodes_len, int64_t *fault)
{
    int64_t count = 0;
    for (; count < nodes_len && at < buf_len; count++) {
        fault[FAULT_SEB] = count;
        uint64_t length;
        int64_t body = read_varint(buf, at, buf_len, &length, fault);
        if (body < 0 || length > (uint64_t)(buf_len - body)) {
            if (body >= 0)
                set_wire_fault(fault, length < MOST_MESSAGE_BYTES ? MESSAGE_CUT : MESSAGE_TOO_LONG,
                               at, (int64_t)(length >> 1));
            if (!is_last && (fault[FAULT_CODE] == MESSAGE_CUT || fault[FAULT_CODE] == VARINT_CUT))
                fault[FAULT_CODE] = WIRE_OK;
            break;
        }
        trace_node node = {.at = at, .body = body, .end = body + (int64_t)length};
        node.duration_at = body;
        wire_field field;
        int64_t next = body;
        while (next >= 0 && next < node.end) {
            next = check_field(buf, next, node.end, schema, message, &field, fault);
            if (next >= 0)
                keep(buf, &field, next, fields, &node);
        }
        if (next < 0)
            break;
        nodes[count] = node;
        at = node.end;
    }
    return count;
}

void read_deps(const uint8_t *buf, const trace_node *nodes, int64_t nodes_len,
               const node_fields *fields, uint64_t *deps)
{
    wire_field field;
    for (int64_t k = 0; k < nodes_len; k++)
        for (int64_t at = nodes[k].body, next; at < nodes[k].end; at = next) {
            next = next_field(buf, at, &field);
            if (field.number == fields->data_deps)
                for (int64_t value = field.content; value < next;)
                    value = read_varint(buf, value, next, deps++, NULL);
        }
}

/* Set what is kept of the last value of an attribute, which `next` ends. */
static void read_attribute(const uint8_t *buf, int64_t at, int64_t end, const node_fields *fields,
                           const uint8_t *name, int64_t name_len, attribute *found)
{
    wire_field field;
    attribute value = {0};
    bool is_named = false;
    for (int64_t next; at < end; at = next) {
        next = next_field(buf, at, &field);
        if (field.number == fields->attr_name)
            is_named = next - field.content == name_len
                       && memcmp(buf + field.content, name, (size_t)name_len) == 0;
        else if (field.number >= fields->attr_value) {
            value = (attribute){field.number, field.content, next - field.content, field.bits};
            if (field.wire == WIRE_FIXED64 || field.wire == WIRE_FIXED32)
                memcpy(&value.bits, buf + field.value, (size_t)(next - field.value));
        }
    }
    if (is_named)
        *found = value;
}

void read_attributes(const uint8_t *buf, const trace_node *nodes, int64_t nodes_len,
                     const node_fields *fields, const uint8_t *name, int64_t name_len,
                     attribute *found)
{
    wire_field field;
    for (int64_t k = 0; k < nodes_len; k++) {
        found[k] = (attribute){0};
        for (int64_t at = nodes[k].body, next; at < nodes[k].end; at = next) {
            next = next_field(buf, at, &field);
            if (field.number == fields->attr)
                read_attribute(buf, field.content, next, fields, name, name_len, &found[k]);
        }
    }
}

static int64_t store_varint(uint8_t *out, uint64_t value)
{
    int64_t bytes = 0;
    for (; value >= 0x80; value >>= 7)
        out[bytes++] = (uint8_t)(value | 0x80);
    out[bytes++] = (uint8_t)value;
    return bytes;
}

static int64_t copy(uint8_t *out, const uint8_t *buf, int64_t from, int64_t to)
{
    memcpy(out, buf + from, (size_t)(to - from));
    return to - from;
}

int64_t write_nodes(const uint8_t *buf, const trace_node *nodes, int64_t nodes_len,
                    const node_fields *fields, const uint64_t *durations, uint8_t *out)
{
    int64_t to = 0;
    for (int64_t k = 0; k < nodes_len; k++) {
        const trace_node *node = &nodes[k];
        if (durations[k] == node->duration_us) {
            to += copy(out + to, buf, node->at, node->end);
            continue;
        }
        uint8_t field[2 * MOST_VARINT_BYTES];
        int64_t after = node->duration_at + node->duration_bytes;
        int64_t bytes = store_varint(field, (uint64_t)fields->duration_micros << 3 | WIRE_VARINT);
        bytes += store_varint(field + bytes, durations[k]);
        int64_t length = node->end - node->body - node->duration_bytes + bytes;
        to += store_varint(out + to, (uint64_t)length);
        to += copy(out + to, buf, node->body, node->duration_at);
        to += copy(out + to, field, 0, bytes);
        to += copy(out + to, buf, after, node->end);
    }
    return to;
}
