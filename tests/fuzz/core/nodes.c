/* walk_nodes and what follows it: a walk in two pieces finds what one walk finds, all lies in the
   buffer, and a trace written with its own durations is the same. */
#include "rewritelog/core/core.h"
#include "target.h"

enum { MOST_NODES = 64, ROOM_BYTES = 20 };

/* Check that a node lies in the buffer, and that its columns can be read. */
static void check_node(const uint8_t *buf, int64_t len, const trace_node *node)
{
    HOLDS(0 <= node->at && node->at < node->body && node->body <= node->end && node->end <= len);
    HOLDS(node->name_at + node->name_bytes <= len);
    HOLDS(node->shapes_at + node->shapes_bytes <= len);
    HOLDS(node->body <= node->duration_at);
    HOLDS(node->duration_at + node->duration_bytes <= node->end);
    uint64_t *deps = array_of(node->deps, sizeof *deps);
    read_deps(buf, node, 1, deps);
    free(deps);
    attribute found[2];
    int64_t ends[] = {3, 10};
    read_attributes(buf, node, 1, (const uint8_t *)"tidpg_name", ends, 2, found);
    for (int64_t k = 0; k < 2; k++)
        HOLDS(found[k].at + found[k].bytes <= len);
}

/* Write nodes with the durations that they have, and with others; read the latter back. */
static void check_writing(const uint8_t *buf, const trace_node *nodes, int64_t count)
{
    uint64_t durations[MOST_NODES];
    int64_t size = nodes[count - 1].end - nodes[0].at, fault[FAULT_SIZE] = {0};
    uint8_t *out = array_of(size + ROOM_BYTES * count, 1);
    for (int64_t k = 0; k < count; k++)
        durations[k] = nodes[k].duration_us;
    HOLDS(write_nodes(buf, nodes, count, durations, out) == size);
    HOLDS(memcmp(out, buf + nodes[0].at, (size_t)size) == 0);
    for (int64_t k = 0; k < count; k++)
        durations[k] = (durations[k] << 7) + 300;
    size = write_nodes(buf, nodes, count, durations, out);
    trace_node again[MOST_NODES];
    HOLDS(walk_nodes(out, size, 0, false, again, count, fault) == count);
    for (int64_t k = 0; k < count; k++)
        HOLDS(again[k].duration_us == durations[k] && again[k].id == nodes[k].id
              && again[k].deps == nodes[k].deps && again[k].data_deps == nodes[k].data_deps);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trace_node nodes[MOST_NODES], again[MOST_NODES];
    int64_t fault[FAULT_SIZE] = {0}, fault_again[FAULT_SIZE] = {0}, len = (int64_t)size;
    uint8_t *buf = array_of(len, 1);
    memcpy(buf, data, size);
    int64_t count =
        walk_nodes(buf, len, 0, false, nodes, MOST_NODES, fault);
    for (int64_t k = 0; k < count; k++)
        check_node(buf, len, &nodes[k]);
    if (count)
        check_writing(buf, nodes, count);
    int64_t half =
        walk_nodes(buf, len / 2, 0, false, again, MOST_NODES, fault_again);
    HOLDS(half <= count && memcmp(nodes, again, (size_t)half * sizeof *nodes) == 0);
    free(buf);
    return 0;
}
