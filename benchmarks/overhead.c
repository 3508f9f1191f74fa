/* What a bracket costs, in nanoseconds, by parts: printed as JSON. */
#include "tracebigsim.h"

enum { ROUNDS = 9, COUNT = 200000 };

static volatile uint64_t sink;

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void read_clocks(int number) {
  (void)number;
  sink += tracebigsim_now_();
  sink += tracebigsim_now_();
}

static void format(int number) {
  const double params[2] = {number, 0.5 * number};
  char line[TRACEBIGSIM_LINE_BYTES_];
  const tracebigsim_record_ record = {"Cell::pairForces", 16, params, 2, -1, TRACEBIGSIM_UNIT_,
                                      30180, NULL, 0};
  sink += tracebigsim_format_(&record, line);
}

static void bracket(int number) {
  startTraceBigSim();
  endTraceBigSim("Cell::pairForces", number, 0.5 * number);
}

/* The least of some rounds, in nanoseconds a call. */
static double least_ns(void (*measured)(int)) {
  double least = 1e9;
  int round, number;
  for (round = 0; round < ROUNDS; round++) {
    const double began = seconds();
    double each;
    for (number = 0; number < COUNT; number++) measured(number);
    each = 1e9 * (seconds() - began) / COUNT;
    if (each < least) least = each;
  }
  return least;
}

int main(void) {
  fprintf(stderr, "{\"clocks\": %.1f, \"format\": %.1f, \"bracket\": %.1f}\n",
          least_ns(read_clocks), least_ns(format), least_ns(bracket));
  return 0;
}
