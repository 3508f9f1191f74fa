// What tracebigsim.h needs of BigSim's blue_impl.h, for tests.
#ifndef STUB_BLUE_IMPL_H
#define STUB_BLUE_IMPL_H

#include <string>
#include <vector>

struct StubMark {
  double time;  // since the SEB's start, in seconds
  std::string text;
};

struct StubSeb {
  double start, end;
  std::vector<StubMark> marks;
};

struct StubTimeline {
  std::vector<StubSeb> sebs;
  int length() const { return static_cast<int>(sebs.size()); }
};

StubTimeline &stubTimeline();  // of the PE that this thread is emulating

#define tTIMELINEREC stubTimeline()

#endif
