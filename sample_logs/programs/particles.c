/* A particle kernel with brackets (C99): forces between the pairs of particles that lie within a
 * cutoff, and the particles' motion.
 *
 *     gcc -O2 -I "$(tracebigsim --include-dir)" particles.c -o particles -lm && ./particles 300 1
 *
 * prints 300 timing lines of each kernel, drawn with seed 1.
 */
#include "tracebigsim.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 600 };
static const double cutoff = 0.2;

typedef struct {
  int count;
  double x[MOST], y[MOST], vx[MOST], vy[MOST], fx[MOST], fy[MOST];
} Particles;

static uint64_t state;

/* A number in [0, 1), the same on every machine. */
static double uniform(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (double)(state >> 11) / 9007199254740992.0;
}

static void scatter(Particles *all, int count) {
  int i;
  all->count = count;
  for (i = 0; i < count; i++) {
    all->x[i] = uniform();
    all->y[i] = uniform();
    all->vx[i] = all->vy[i] = 0;
  }
}

/* Add the forces between all pairs within the cutoff; give the number of those pairs. */
static int pair_forces(Particles *all) {
  int i, j, close = 0;
  for (i = 0; i < all->count; i++) all->fx[i] = all->fy[i] = 0;
  for (i = 0; i < all->count; i++) {
    for (j = 0; j < i; j++) {
      const double dx = all->x[i] - all->x[j], dy = all->y[i] - all->y[j];
      const double square = dx * dx + dy * dy + 1e-6;
      if (square < cutoff * cutoff) {
        const double force = 1 / (square * sqrt(square));
        all->fx[i] += force * dx;
        all->fy[i] += force * dy;
        all->fx[j] -= force * dx;
        all->fy[j] -= force * dy;
        close++;
      }
    }
  }
  return close;
}

static void move(Particles *all, int steps) {
  const double step = 1e-9;
  int i, number;
  for (number = 0; number < steps; number++) {
    for (i = 0; i < all->count; i++) {
      all->vx[i] += step * all->fx[i];
      all->vy[i] += step * all->fy[i];
      all->x[i] += step * all->vx[i];
      all->y[i] += step * all->vy[i];
    }
  }
}

int main(int argc, char **argv) {
  static Particles all;
  const int boxes = argc > 1 ? atoi(argv[1]) : 100;
  double sum = 0;
  int number;
  state = argc > 2 ? (uint64_t)atoll(argv[2]) : 1;
  for (number = 0; number < boxes; number++) {
    int close, steps;
    scatter(&all, 100 + (int)(uniform() * (MOST - 100)));
    startTraceBigSim();
    close = pair_forces(&all);
    endTraceBigSim("pair_forces", all.count, close);

    steps = 10 + (int)(uniform() * 90);
    startTraceBigSimFor("move", all.count * steps);
    move(&all, steps);
    endTraceBigSim("move", all.count * steps);
    sum += all.vx[0];
  }
  printf("%d boxes, sum %.6f\n", boxes, sum);
  return fflush(stdout) == 0 ? 0 : 1;
}
