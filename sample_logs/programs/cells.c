/* The kernels of the log set `cells` with brackets (C99): forces between all pairs of atoms of a
 * cell, and those of its bonds. Run it where the emulated program is to run one day.
 *
 *     gcc -O2 -I "$(tracebigsim --include-dir)" cells.c -o cells -lm && ./cells 300 1
 *
 * prints 300 timing lines of each kernel, drawn with seed 1.
 */
#include "tracebigsim.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state;
static volatile double sink;

/* A whole number from `least` to `most`, the same on every machine. */
static int drawn(int least, int most) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return least + (int)((state >> 33) % (uint64_t)(most - least + 1));
}

static void pair_forces(int atoms, int carbons) {
  double sum = 0;
  int i, j;
  for (i = 0; i < atoms; i++) {
    for (j = 0; j < atoms; j++) sum += 1 / (1.0 + (i - j) * (i - j));
  }
  for (i = 0; i < 40 * carbons; i++) sum += sqrt((double)i);
  sink = sum;
}

static void bonded(int atoms) {
  double sum = 0;
  int i;
  for (i = 0; i < 60 * atoms; i++) sum += sin((double)i);
  sink = sum;
}

int main(int argc, char **argv) {
  const int cells = argc > 1 ? atoi(argv[1]) : 100;
  int number;
  state = argc > 2 ? (uint64_t)atoll(argv[2]) : 1;
  pair_forces(100, 10); /* the first calls of a process are slow */
  bonded(100);
  for (number = 0; number < cells; number++) {
    const int atoms = drawn(40, 160), carbons = drawn(5, 21);
    startTraceBigSim();
    pair_forces(atoms, carbons);
    pair_forces(atoms / 2, carbons);
    endTraceBigSim("Cell::pairForces", atoms, carbons);

    startTraceBigSim();
    bonded(atoms);
    endTraceBigSim("Cell::bonded", atoms);
  }
  printf("%d cells\n", cells);
  return fflush(stdout) == 0 ? 0 : 1;
}
