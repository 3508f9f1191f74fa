// Brackets for timed runs of C++ programs (C++11, header only): each prints one line such as
//
//     TRACEBIGSIM: event:{ Cell::pairForces }  time:{ 0.000030180 }  params:{ 157 9 }
//
// to standard output. The name and the calls are those of Charm++'s BigSim emulation, so that one
// source serves for both. In an emulation do not put this folder on the include path: Charm++'s
// own traceBigSim.h is used there, which marks the bracket in the log and writes param.P.
//
//     startTraceBigSim();
//     ... the region ...
//     endTraceBigSim("Cell::pairForces", atoms, carbons);   // 0 to 20 numbers
//
// One bracket a thread is open at a time, and a sequential execution block should hold but one.
// A bracket that is opened twice or never was opened is reported on standard error, and prints no
// line. Lines are flushed one by one, so that those of processes with one output do not tear.
#ifndef TRACEBIGSIM_H
#define TRACEBIGSIM_H

#if defined(CMK_BIGSIM_CHARM) && CMK_BIGSIM_CHARM + 0
#error "a BigSim emulation is built with the traceBigSim.h of Charm++: take this folder off the include path"
#endif

#include <chrono>
#include <cstdio>
#include <initializer_list>
#include <string>

namespace tracebigsim {

typedef std::chrono::steady_clock Clock;

struct Bracket {
  bool open = false;
  Clock::time_point began;
};

// The calling thread's bracket.
inline Bracket &bracket() {
  static thread_local Bracket ofThread;
  return ofThread;
}

// A number in printf's format; the decimal sign is a point in every locale.
inline std::string number(const char *format, double value) {
  char digits[512];
  std::snprintf(digits, sizeof digits, format, value);
  std::string text(digits);
  const char *ofNumbers = "0123456789+-einfaEINFA()";
  const std::string::size_type first = text.find_first_not_of(ofNumbers);
  if (first != std::string::npos) {
    text.replace(first, text.find_last_not_of(ofNumbers) - first + 1, ".");
  }
  return text;
}

inline void print(const char *event, double seconds, std::initializer_list<double> params) {
  std::string line = "TRACEBIGSIM: event:{ ";
  line += event;
  line += " }  time:{ " + number("%.9f", seconds) + " }  params:{ ";
  for (double param : params) line += number("%.17g", param) + " ";
  line += "}\n";
  std::fflush(stdout);
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

}  // namespace tracebigsim

// Open the thread's bracket.
inline void startTraceBigSim() {
  tracebigsim::Bracket &bracket = tracebigsim::bracket();
  if (bracket.open) std::fputs("traceBigSim: startTraceBigSim() in an open bracket\n", stderr);
  bracket.open = true;
  bracket.began = tracebigsim::Clock::now();
}

// Close the thread's bracket and print its line.
template <typename... Number>
inline void endTraceBigSim(const char *event, Number... params) {
  static_assert(sizeof...(Number) <= 20, "endTraceBigSim takes at most 20 numbers");
  const tracebigsim::Clock::time_point ended = tracebigsim::Clock::now();
  tracebigsim::Bracket &bracket = tracebigsim::bracket();
  if (!bracket.open) {
    std::fprintf(stderr, "traceBigSim: endTraceBigSim(\"%s\") without a start\n", event);
    return;
  }
  bracket.open = false;
  const double seconds = std::chrono::duration<double>(ended - bracket.began).count();
  tracebigsim::print(event, seconds, {static_cast<double>(params)...});
}

#endif
