#include "emulator.h"

#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "charm++.h"
#include "blue_impl.h"

static std::vector<StubTimeline> timelines;
static thread_local int runningPe;

static double now() {
  static const std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

StubTimeline &stubTimeline() { return timelines[static_cast<size_t>(runningPe)]; }

int CkMyPe() { return runningPe; }

extern "C" void BgMark(const char *text) {
  StubSeb &seb = stubTimeline().sebs.back();
  seb.marks.push_back({now() - seb.start, text});
}

static void runSeb(int pe, int seb, void (*run)(int pe, int seb)) {
  runningPe = pe;
  stubTimeline().sebs.push_back({now(), 0, {}});
  run(pe, seb);
  stubTimeline().sebs.back().end = now();
}

static void print() {
  for (size_t pe = 0; pe < timelines.size(); pe++) {
    for (const StubSeb &seb : timelines[pe].sebs) {
      std::printf("seb %zu %.17g %.17g\n", pe, seb.start, seb.end);
      for (const StubMark &mark : seb.marks) {
        std::printf("mark %.17g %s", mark.time, mark.text.c_str());
      }
    }
  }
}

extern "C" void emulate(int pes, int sebs, int threads, void (*run)(int pe, int seb)) {
  now();
  timelines.resize(static_cast<size_t>(pes));
  run(0, -1);  // before any SEB
  std::vector<std::thread> running;
  for (int thread = 0; thread < threads; thread++) {
    running.emplace_back([=] {
      for (int seb = 0; seb < sebs; seb++) {
        for (int pe = thread; pe < pes; pe += threads) runSeb(pe, seb, run);
      }
    });
  }
  for (std::thread &thread : running) thread.join();
  print();
}
