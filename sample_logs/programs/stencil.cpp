// A 2D stencil with bracketed kernels (C++11): grids of many shapes are relaxed and their edges
// exchanged, as the cells of a parallel program do.
//
//     g++ -O2 -I "$(tracebigsim --include-dir)" stencil.cpp -o stencil && ./stencil 300 1
//
// prints 300 timing lines of each kernel, drawn with seed 1.
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "tracebigsim.h"

class Grid {
 public:
  Grid(int width, int height)
      : width_(width), height_(height), now_(size(), 1.0), next_(size(), 0.0) {}

  // Replace each inner point by the mean of its four neighbours, `sweeps` times.
  void relax(int sweeps) {
    tracebigsim::Bracket bracket("Grid::relax", points() * sweeps);
    for (int sweep = 0; sweep < sweeps; sweep++) {
      for (int y = 1; y <= height_; y++) relaxRow(&now_[at(0, y)], &next_[at(0, y)]);
      now_.swap(next_);
    }
  }

  // Copy each edge to the other side, as messages from neighbours would.
  void exchangeEdges(int rounds) {
    startTraceBigSim();
    for (int round = 0; round < rounds; round++) {
      for (int x = 1; x <= width_; x++) {
        now_[at(x, 0)] = now_[at(x, height_)];
        now_[at(x, height_ + 1)] = now_[at(x, 1)];
      }
      for (int y = 1; y <= height_; y++) {
        now_[at(0, y)] = now_[at(width_, y)];
        now_[at(width_ + 1, y)] = now_[at(1, y)];
      }
    }
    endTraceBigSim("Grid::exchangeEdges", width_ * rounds, height_ * rounds);
  }

  double sum() const {
    double sum = 0;
    for (double value : now_) sum += value;
    return sum;
  }

 private:
  double points() const { return static_cast<double>(width_) * height_; }
  size_t size() const { return static_cast<size_t>(width_ + 2) * (height_ + 2); }
  size_t at(int x, int y) const { return static_cast<size_t>(y) * (width_ + 2) + x; }

  void relaxRow(const double *from, double *to) const {
    const int row = width_ + 2;
    for (int x = 1; x <= width_; x++) {
      to[x] = 0.25 * (from[x - 1] + from[x + 1] + from[x - row] + from[x + row]);
    }
  }

  int width_, height_;
  std::vector<double> now_, next_;
};

int main(int argc, char **argv) {
  const int grids = argc > 1 ? std::atoi(argv[1]) : 100;
  std::mt19937 random(argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 1);
  std::uniform_int_distribution<int> size(20, 120), sweeps(2, 20);
  double sum = 0;
  for (int number = 0; number < grids; number++) {
    Grid grid(size(random), size(random));
    grid.relax(1 + sweeps(random));
    grid.exchangeEdges(20 * sweeps(random));
    sum += grid.sum();
  }
  std::printf("%d grids, sum %.6f\n", grids, sum);
  return std::fflush(stdout) == 0 ? 0 : 1;
}
