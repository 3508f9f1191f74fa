/* Messages in protobuf's wire format, one after the other, as in a file of a Chakra trace. Only
   here are their lengths checked against the bytes. A table says what each field may hold. */
#include <math.h>
#include <string.h>

#include "walk.h"

enum {
    WIRE_VARINT, WIRE_FIXED64, WIRE_BYTES, WIRE_GROUP, WIRE_GROUP_END, WIRE_FIXED32,
    MOST_VARINT_BYTES = 10, MOST_GROUPS = 100 /* within each other, as in protobuf */
};

/* What a field may hold: with REPEATED added, packed numbers too; EMBEDDED + k is a message of kind
   k. */
enum { ANYTHING, VARINT, FIXED64, FIXED32, TEXT, REPEATED = 8, EMBEDDED = 16 };
enum { METADATA, NODE, TENSORS, ATTRIBUTE, VARINTS, FIXED64S, FIXED32S, TEXTS, MESSAGE_KINDS };

/* The numbers of fields. An attribute's value has an odd number, a list of such values the next. */
enum { ID = 1, NAME, TYPE, CTRL_DEPS, DATA_DEPS, START, DURATION, INPUTS, OUTPUTS, ATTRIBUTES };
enum { SHAPES = 2 };
enum {
    ATTRIBUTE_NAME = 1, DOUBLE = 3, FLOAT = 5, INT32 = 7, INT64 = 9, UINT32 = 11, UINT64 = 13,
    SINT32 = 15, SINT64 = 17, UFIXED32 = 19, UFIXED64 = 21, SFIXED32 = 23, SFIXED64 = 25, BOOL = 27,
    STRING = 29, BYTES = 31, FIELDS = 33
};

/* The fields of each message of a Chakra trace, schema 1.0; unknown fields hold anything. */
static const uint8_t SCHEMA[MESSAGE_KINDS][FIELDS] = {
    [METADATA] = {[1] = TEXT, [2] = EMBEDDED + ATTRIBUTE},
    [NODE] = {
        [ID] = VARINT, [NAME] = TEXT, [TYPE] = VARINT, [CTRL_DEPS] = VARINT + REPEATED,
        [DATA_DEPS] = VARINT + REPEATED, [START] = VARINT, [DURATION] = VARINT,
        [INPUTS] = EMBEDDED + TENSORS, [OUTPUTS] = EMBEDDED + TENSORS,
        [ATTRIBUTES] = EMBEDDED + ATTRIBUTE,
    },
    [TENSORS] = {[1] = TEXT, [SHAPES] = TEXT, [3] = TEXT},
    [ATTRIBUTE] = {
        [ATTRIBUTE_NAME] = TEXT, [2] = TEXT, [DOUBLE] = FIXED64, EMBEDDED + FIXED64S,
        [FLOAT] = FIXED32, EMBEDDED + FIXED32S, [INT32] = VARINT, EMBEDDED + VARINTS,
        [INT64] = VARINT, EMBEDDED + VARINTS, [UINT32] = VARINT, EMBEDDED + VARINTS,
        [UINT64] = VARINT, EMBEDDED + VARINTS, [SINT32] = VARINT, EMBEDDED + VARINTS,
        [SINT64] = VARINT, EMBEDDED + VARINTS, [UFIXED32] = FIXED32, EMBEDDED + FIXED32S,
        [UFIXED64] = FIXED64, EMBEDDED + FIXED64S, [SFIXED32] = FIXED32, EMBEDDED + FIXED32S,
        [SFIXED64] = FIXED64, EMBEDDED + FIXED64S, [BOOL] = VARINT, EMBEDDED + VARINTS,
        [STRING] = TEXT, EMBEDDED + TEXTS, [BYTES] = TEXT, EMBEDDED + TEXTS,
    },
    [VARINTS] = {[1] = VARINT + REPEATED},
    [FIXED64S] = {[1] = FIXED64 + REPEATED},
    [FIXED32S] = {[1] = FIXED32 + REPEATED},
    [TEXTS] = {[1] = TEXT},
};

/* A field of a message: the offsets of its tag, of its value without any length before it, and of
   the next field; `bits` is the value of a varint, or that length. */
typedef struct {
    int64_t number, at, content, end;
    uint64_t bits;
    int wire;
} wire_field;

/* Read the varint at `at`, which has to end before `end`; return the offset after it, or -1. */
static inline int64_t read_varint(const uint8_t *buf, int64_t at, int64_t end, uint64_t *value)
{
    if (at < end && buf[at] < 0x80) {
        *value = buf[at];
        return at + 1;
    }
    *value = 0;
    for (int shift = 0; at < end && shift < 64; shift += 7) {
        *value |= (uint64_t)(buf[at] & 0x7f) << shift;
        if (buf[at++] < 0x80)
            return shift == 63 && buf[at - 1] > 1 ? -1 : at;
    }
    return -1;
}

static int64_t skip_group(const uint8_t *buf, int64_t at, int64_t end, int64_t number, int depth);

/* Read the tag at `at` and skip the field's value, in `depth` groups; return the offset after it, or
   -1. The end of a group is a field without a value. */
static inline int64_t read_field(const uint8_t *buf, int64_t at, int64_t end, wire_field *field,
                                 int depth)
{
    uint64_t tag;
    int64_t content = read_varint(buf, at, end, &tag);
    if (content < 0 || tag >> 32 || !(tag >> 3))
        return -1;
    *field = (wire_field){
        .number = (int64_t)(tag >> 3), .at = at, .content = content, .wire = (int)(tag & 7)
    };
    switch (field->wire) {
    case WIRE_VARINT: return field->end = read_varint(buf, content, end, &field->bits);
    case WIRE_FIXED64: return field->end = end - content < 8 ? -1 : content + 8;
    case WIRE_FIXED32: return field->end = end - content < 4 ? -1 : content + 4;
    case WIRE_GROUP: return field->end = skip_group(buf, content, end, field->number, depth);
    case WIRE_GROUP_END: return field->end = content;
    case WIRE_BYTES:
        content = read_varint(buf, content, end, &field->bits);
        if (content < 0 || field->bits > (uint64_t)(end - content))
            return -1;
        field->content = content;
        return field->end = content + (int64_t)field->bits;
    default: return -1;
    }
}

/* Skip the fields of a group from `at` on; return the offset after its end, or -1. */
static int64_t skip_group(const uint8_t *buf, int64_t at, int64_t end, int64_t number, int depth)
{
    wire_field field;
    while (depth < MOST_GROUPS && (at = read_field(buf, at, end, &field, depth + 1)) >= 0)
        if (field.wire == WIRE_GROUP_END)
            return field.number == number ? at : -1;
    return -1;
}

/* Read the next field of a message that the walk has checked; return false if there is none. */
static inline bool next_field(const uint8_t *buf, int64_t end, wire_field *field)
{
    return field->end < end && read_field(buf, field->end, end, field, 0) >= 0;
}

/* Whether the value of a field is what `kind`, which is no message, allows. */
static bool is_valid(const uint8_t *buf, const wire_field *field, int kind)
{
    static const int WIRES[] = {[VARINT] = WIRE_VARINT, [FIXED64] = WIRE_FIXED64,
                                [FIXED32] = WIRE_FIXED32, [TEXT] = WIRE_BYTES};
    int each = kind % REPEATED;
    if (kind == ANYTHING || field->wire == WIRES[each])
        return true;
    if (kind < REPEATED || field->wire != WIRE_BYTES)
        return false;
    int64_t at = field->content;
    if (each != VARINT)
        return (field->end - at) % (each == FIXED64 ? 8 : 4) == 0;
    for (uint64_t value; at >= 0 && at < field->end;)
        at = read_varint(buf, at, field->end, &value);
    return at >= 0;
}

/* Copy what a `trace_node` holds of a field. */
static void store_field(const uint8_t *buf, const wire_field *field, trace_node *node)
{
    switch (field->number) {
    case ID: node->id = field->bits; break;
    case NAME:
        node->name_at = field->content;
        node->name_bytes = field->end - field->content;
        break;
    case TYPE: node->type = (int32_t)field->bits; break;
    case CTRL_DEPS: case DATA_DEPS: {
        int64_t count = 0;
        for (int64_t k = field->content; k < field->end; k++)
            count += buf[k] < 0x80;
        node->deps += count;
        node->data_deps += field->number == DATA_DEPS ? count : 0;
        break;
    }
    case START: node->start_us = field->bits; break;
    case DURATION:
        node->duration_us = field->bits;
        node->duration_at = field->at;
        node->duration_bytes = field->end - field->at;
        break;
    case INPUTS:
        for (wire_field part = {.end = field->content}; next_field(buf, field->end, &part);)
            if (part.number == SHAPES) {
                node->shapes_at = part.content;
                node->shapes_bytes = part.end - part.content;
            }
    }
    if (field->number < DURATION && !node->duration_bytes)
        node->duration_at = field->end;
}

/* Return `end` if a message from `at` on is what the schema says, or -1; fill in `node` unless it
   is NULL. A message holds none of its own kind, so that the depth is that of the schema. */
static int64_t check_message(const uint8_t *buf, int64_t at, int64_t end, int message,
                             trace_node *node, int64_t *fault)
{
    for (wire_field field; at < end; at = field.end) {
        if (read_field(buf, at, end, &field, 0) < 0 || field.wire == WIRE_GROUP_END)
            return set_fault(fault, FIELD_DAMAGED, at, 0);
        int kind = field.number < FIELDS ? SCHEMA[message][field.number] : ANYTHING;
        if (kind < EMBEDDED ? !is_valid(buf, &field, kind) : field.wire != WIRE_BYTES)
            return set_fault(fault, FIELD_TYPE, at, field.number);
        if (kind >= EMBEDDED
            && check_message(buf, field.content, field.end, kind - EMBEDDED, NULL, fault) < 0)
            return -1;
        if (node)
            store_field(buf, &field, node);
    }
    return end;
}

/* Walk the message at `at`, a node or the metadata; return where it ends, or -1. */
static int64_t walk_message(const uint8_t *buf, int64_t buf_len, int64_t at, int message,
                            trace_node *node, int64_t *fault)
{
    uint64_t length;
    int64_t body = read_varint(buf, at, buf_len, &length);
    if (body < 0 || length > (uint64_t)(buf_len - body)) {
        bool is_cut = body < 0 ? buf_len - at < MOST_VARINT_BYTES : length < MOST_MESSAGE_BYTES;
        return set_fault(fault, is_cut ? MESSAGE_CUT : MESSAGE_TOO_LONG, at, 0);
    }
    if (!length && message == NODE)
        return set_fault(fault, MESSAGE_EMPTY, at, 0);
    *node = (trace_node){.at = at, .body = body, .end = body + (int64_t)length};
    node->duration_at = body;
    return check_message(buf, body, node->end, message, message == NODE ? node : NULL, fault);
}

int64_t walk_nodes(const uint8_t *buf, int64_t buf_len, int64_t at, bool has_metadata,
                   trace_node *nodes, int64_t nodes_len, int64_t *fault)
{
    int64_t count = 0;
    for (; count < nodes_len && at < buf_len; count++) {
        int message = has_metadata && count == 0 ? METADATA : NODE;
        at = walk_message(buf, buf_len, at, message, &nodes[count], fault);
        if (at < 0)
            break;
    }
    return count;
}

void read_deps(const uint8_t *buf, const trace_node *nodes, int64_t nodes_len, uint64_t *deps)
{
    for (int64_t k = 0; k < nodes_len; deps += nodes[k++].deps) {
        uint64_t *data = deps, *control = deps + nodes[k].data_deps;
        for (wire_field field = {.end = nodes[k].body}; next_field(buf, nodes[k].end, &field);) {
            uint64_t **to = field.number == DATA_DEPS ? &data : &control;
            if (field.number == DATA_DEPS || field.number == CTRL_DEPS)
                for (int64_t value = field.content; value < field.end;)
                    value = read_varint(buf, value, field.end, (*to)++);
        }
    }
}

void hash_nodes(const uint8_t *buf, const trace_node *nodes, int64_t nodes_len, uint64_t *hashes)
{
    for (int64_t k = 0; k < nodes_len; k++) {
        hashes[k] = 0xcbf29ce484222325u; /* FNV-1a */
        for (wire_field field = {.end = nodes[k].body}; next_field(buf, nodes[k].end, &field);)
            if (field.number != START && field.number != DURATION)
                for (int64_t byte = field.at; byte < field.end; byte++)
                    hashes[k] = (hashes[k] ^ buf[byte]) * 0x100000001b3u;
    }
}

/* Return the value of a field of an attribute as a number, NaN for a list or text. In a 32-bit
   field the low 32 bits of a longer varint count, as protobuf says. */
static double number_of(const uint8_t *buf, const wire_field *field)
{
    uint64_t bits = field->bits, sign = -(bits & 1);
    double as_double;
    float as_float;
    if (field->wire == WIRE_FIXED64 || field->wire == WIRE_FIXED32)
        for (int64_t at = field->end; at > field->content;) /* the low byte is the first */
            bits = bits << 8 | buf[--at];
    uint32_t low = (uint32_t)bits;
    switch (field->number) {
    case DOUBLE: memcpy(&as_double, &bits, sizeof as_double); return as_double;
    case FLOAT: memcpy(&as_float, &low, sizeof as_float); return as_float;
    case INT32: case SFIXED32: return (double)(int32_t)low;
    case SINT32: return (double)(int32_t)(low >> 1 ^ sign);
    case UINT32: case UFIXED32: return (double)low;
    case INT64: case SFIXED64: return (double)(int64_t)bits;
    case SINT64: return (double)(int64_t)(bits >> 1 ^ sign);
    case UINT64: case UFIXED64: return (double)bits;
    case BOOL: return bits != 0;
    default: return NAN;
    }
}

/* Return the index of a text among the names, or `ends_len` if it is none of them. */
static int64_t place_of(const uint8_t *text, int64_t bytes, const uint8_t *names,
                        const int64_t *ends, int64_t ends_len)
{
    int64_t begin = 0, place = 0;
    for (; place < ends_len; begin = ends[place++])
        if (ends[place] - begin == bytes && !memcmp(names + begin, text, (size_t)bytes))
            break;
    return place;
}

/* Set the one of `attributes` whose name an attribute has, if it is asked for, to its last value. */
static void read_attribute(const uint8_t *buf, const wire_field *whole, const uint8_t *names,
                           const int64_t *ends, int64_t ends_len, attribute *attributes)
{
    attribute value = {.number = NAN};
    int64_t place = ends_len;
    for (wire_field field = {.end = whole->content}; next_field(buf, whole->end, &field);) {
        int64_t bytes = field.end - field.content;
        if (field.number == ATTRIBUTE_NAME)
            place = place_of(buf + field.content, bytes, names, ends, ends_len);
        else if (field.number == STRING)
            value = (attribute){NAN, field.content, bytes};
        else if (field.number >= DOUBLE && field.number < FIELDS)
            value = (attribute){.number = number_of(buf, &field)};
    }
    if (place < ends_len)
        attributes[place] = value;
}

void read_attributes(const uint8_t *buf, const trace_node *nodes, int64_t nodes_len,
                     const uint8_t *names, const int64_t *ends, int64_t ends_len,
                     attribute *attributes)
{
    for (int64_t k = 0; k < nodes_len * ends_len; k++)
        attributes[k] = (attribute){.number = NAN};
    for (int64_t k = 0; k < nodes_len; k++, attributes += ends_len)
        for (wire_field field = {.end = nodes[k].body}; next_field(buf, nodes[k].end, &field);)
            if (field.number == ATTRIBUTES)
                read_attribute(buf, &field, names, ends, ends_len, attributes);
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
                    const uint64_t *durations, uint8_t *out)
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
        int64_t bytes = store_varint(field, DURATION << 3 | WIRE_VARINT);
        bytes += store_varint(field + bytes, durations[k]);
        int64_t length = node->end - node->body - node->duration_bytes + bytes;
        to += store_varint(out + to, (uint64_t)length);
        to += copy(out + to, buf, node->body, node->duration_at);
        to += copy(out + to, field, 0, bytes);
        to += copy(out + to, buf, after, node->end);
    }
    return to;
}
