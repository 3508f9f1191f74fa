/* Brackets around the kernels of a C99 or C++11 program; no other file is needed.
 *
 *     startTraceBigSim();
 *     pairForces(atoms, carbons);
 *     endTraceBigSim("Cell::pairForces", atoms, carbons);    // a name, then 0 to 20 numbers
 *
 * If the name and the numbers are known beforehand, they may be passed at the start too (brackets
 * that are not on a list of chosen SEBs are then skipped completely); in C++ a guard may replace
 * both calls:
 *
 *     startTraceBigSimFor("Cell::pairForces", atoms, carbons);
 *     tracebigsim::Bracket bracket("Cell::pairForces", atoms, carbons);
 *
 * Macros choose at compile time what the calls do; one that is 0 counts as not defined:
 *
 *     (nothing defined)     a timing line for each bracket, in seconds of the monotonic clock
 *     TRACEBIGSIM_CYCLES    in cycles: rdtsc, cntvct_el0, 64-bit PowerPC's time base, or what
 *                           TRACEBIGSIM_READ_CYCLES() returns if that is defined
 *     TRACEBIGSIM_SIMULATOR_BEGIN(), TRACEBIGSIM_SIMULATOR_END()
 *                           in cycles, and a simulator's two calls for its cycle-accurate mode
 *     TRACEBIGSIM_PAPI      seconds, and the counters that TRACEBIGSIM_PAPI_EVENTS names
 *     CMK_BIGSIM_CHARM      a BigSim emulation (its compiler wrapper defines it): two marks in the
 *                           log, and a line of param.P, P being the emulated PE, with times or
 *                           counters only if TRACEBIGSIM_CYCLES or TRACEBIGSIM_PAPI is defined.
 *                           C programs link tracebigsim_emulation.cpp, which is beside this file.
 *     TRACEBIGSIM_OFF       nothing at all; the arguments are not evaluated
 *
 * and environment variables choose the rest at run time:
 *
 *     TRACEBIGSIM_OUTPUT          a file to append timing lines to, instead of standard output;
 *                                 %p in its name is the process ID, %h the host name
 *     TRACEBIGSIM_BUFFER_BYTES    buffer lines up to this many bytes (at most 65536), until the
 *                                 buffer is full, exit or flushTraceBigSim(); default: no buffer
 *     TRACEBIGSIM_CHOSEN          a list from `rewritelog sample`: only brackets on it print lines
 *     TRACEBIGSIM_PAPI_EVENTS     up to 8 of PAPI's names, comma-separated; default: PAPI_TOT_INS
 *
 * A thread (in an emulation: an emulated PE) has one bracket open at a time. A bracket opened
 * within another replaces it. That, an end without a start, and numbers or names that no line can
 * hold are reported on standard error, at most twenty times, and print no line.
 */
#ifndef TRACEBIGSIM_TRACEBIGSIM_H_
#define TRACEBIGSIM_TRACEBIGSIM_H_

#if defined(__GNUC__) && !defined(TRACEBIGSIM_WARNINGS) /* defined by this project's tests */
#pragma GCC system_header /* suppresses warnings about this file */
#endif

/* Whether a macro is 0; anything else, as in -DTRACEBIGSIM_OFF=ON, is a name without a value. */
#define TRACEBIGSIM_ZERO_0 1
#define TRACEBIGSIM_PASTED_(a, b) a##b
#define TRACEBIGSIM_IS_ZERO_(x) TRACEBIGSIM_PASTED_(TRACEBIGSIM_ZERO_, x)

#if defined(TRACEBIGSIM_OFF) && TRACEBIGSIM_IS_ZERO_(TRACEBIGSIM_OFF)
#undef TRACEBIGSIM_OFF
#endif
#if defined(TRACEBIGSIM_CYCLES) && TRACEBIGSIM_IS_ZERO_(TRACEBIGSIM_CYCLES)
#undef TRACEBIGSIM_CYCLES
#endif
#if defined(TRACEBIGSIM_PAPI) && TRACEBIGSIM_IS_ZERO_(TRACEBIGSIM_PAPI)
#undef TRACEBIGSIM_PAPI
#endif

#ifdef __cplusplus
/* .ci files of Charm++ programs name this function of the old source file; it does nothing. */
__attribute__((weak)) void initBigSimTrace() {}
#endif

#if defined(TRACEBIGSIM_OFF)

/* Numbers that are passed may have types of these, which are there in the other modes. */
#include <stddef.h>
#include <stdint.h>

#define startTraceBigSim() ((void)0)
#define flushTraceBigSim() ((void)0)
#ifdef __cplusplus
namespace tracebigsim {
template <typename... Argument>
char unevaluated_(Argument...); /* by value: there are no references to bit-fields */
namespace { /* another class than that of sources in which brackets are on */
struct Bracket {
  template <typename... Number>
  explicit Bracket(const char *, const Number &...) {}
  ~Bracket() {}
};
}  // namespace
}  // namespace tracebigsim
#define startTraceBigSimFor(...) ((void)sizeof(tracebigsim::unevaluated_(__VA_ARGS__)))
#define endTraceBigSim(...) ((void)sizeof(tracebigsim::unevaluated_(__VA_ARGS__)))
#else
#define TRACEBIGSIM_NOTHING_(event, ...) \
  ((void)sizeof(event), (void)sizeof((const double[]){__VA_ARGS__}))
#define startTraceBigSimFor(...) TRACEBIGSIM_NOTHING_(__VA_ARGS__, 0)
#define endTraceBigSim(...) TRACEBIGSIM_NOTHING_(__VA_ARGS__, 0)
#endif

#else /* any mode except off */

#if defined(TRACEBIGSIM_SIMULATOR_BEGIN) != defined(TRACEBIGSIM_SIMULATOR_END)
#error "define both TRACEBIGSIM_SIMULATOR_BEGIN() and TRACEBIGSIM_SIMULATOR_END(), or neither"
#endif
#if defined(TRACEBIGSIM_SIMULATOR_BEGIN) || defined(TRACEBIGSIM_READ_CYCLES)
#ifndef TRACEBIGSIM_CYCLES
#define TRACEBIGSIM_CYCLES
#endif
#endif
#ifndef TRACEBIGSIM_SIMULATOR_BEGIN
#define TRACEBIGSIM_SIMULATOR_BEGIN() ((void)0)
#define TRACEBIGSIM_SIMULATOR_END() ((void)0)
#endif

#if !defined(__GNUC__)
#error "tracebigsim.h needs the weak symbols and atomics of GNU C (gcc, clang, icx, nvc, xlc)"
#endif

/* Strict C99 hides POSIX, which declares the clock and write(). */
#if defined(__STRICT_ANSI__) && !defined(_POSIX_C_SOURCE) && !defined(_GNU_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif
#ifdef __CHARMC__
#include "conv-config.h" /* of Charm++, whose wrapper compiles this: whether it emulates */
#endif
#if defined(CMK_BIGSIM_CHARM) && !TRACEBIGSIM_IS_ZERO_(CMK_BIGSIM_CHARM)
#define TRACEBIGSIM_EMULATED_
#endif
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif
#if !defined(CLOCK_MONOTONIC) || !defined(O_CLOEXEC)
#error "include tracebigsim.h before other headers, or compile with -D_POSIX_C_SOURCE=200809L"
#else
#ifdef TRACEBIGSIM_PAPI
#include <papi.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Shared by all sources of a program: weak, so that each may define it ------------------ */

#define TRACEBIGSIM_SHARED_ __attribute__((weak))
#define TRACEBIGSIM_APART_ __attribute__((noinline, unused)) static

enum {
  TRACEBIGSIM_MAX_PARAMS_ = 20,
  TRACEBIGSIM_MAX_COUNTERS_ = 8,
  TRACEBIGSIM_MAX_NAME_ = 2000,
  TRACEBIGSIM_LINE_BYTES_ = 4096, /* a pipe takes these at once; a name and its numbers fit */
  TRACEBIGSIM_BUFFER_BYTES_ = 65536,
  TRACEBIGSIM_MAX_REPORTS_ = 20,
  TRACEBIGSIM_PATIENCE_MS_ = 1000 /* for a pipe that is full, and for other threads at exit */
};

/* Whether an open bracket prints a line: no, yes, or to be looked up once its name is known. */
enum { TRACEBIGSIM_LEFT_OUT_, TRACEBIGSIM_PRINTED_, TRACEBIGSIM_UNDECIDED_ };

typedef struct {
  int open;
  int printing;
  uint64_t began; /* nanoseconds or cycles */
  int counters;   /* the number of PAPI's counters; -1 before the first bracket */
  int event_set;
  long long began_at[TRACEBIGSIM_MAX_COUNTERS_];
} tracebigsim_thread_type_;

/* A line of the list of chosen SEBs. */
typedef struct {
  const char *event;
  size_t length;
  long long pe;
  long long seb;
  size_t count;
  const double *params;
} tracebigsim_chosen_type_;

typedef struct {
  void *holder;     /* of the lock: the address of the thread's tracebigsim_thread_ */
  int cancel_state; /* the holder's previous one */
  int ready;        /* the environment has been read */
  int at_exit;      /* the end of the process has been prepared */
  int ended;        /* buffered lines have been written for the last time */
  int writing;      /* buffered lines are being written */
  int forking;      /* the holder of the lock is forking */
  int output;
  int torn;         /* the last line that was written is incomplete */
  size_t lost;      /* lines */
  int lost_reason;  /* an errno */
  int to_stdout;
  int reports;
  int listed; /* there is a list of chosen SEBs */
  size_t chosen_count;
  tracebigsim_chosen_type_ *chosen;
  size_t buffer_limit;
  size_t buffered;
  char buffer[TRACEBIGSIM_BUFFER_BYTES_];
} tracebigsim_process_type_;

TRACEBIGSIM_SHARED_ __thread tracebigsim_thread_type_ tracebigsim_thread_ = {0, 0, 0, -1, 0, {0}};
TRACEBIGSIM_SHARED_ tracebigsim_process_type_ tracebigsim_process_;

/* Take the lock; return 0 if that would deadlock, since this thread has it (as in a signal handler
 * that interrupts a bracket), or if others keep it for `patience_ms` (-1: wait forever). A thread
 * is not cancelled while it has the lock. */
TRACEBIGSIM_APART_ int tracebigsim_try_lock_(int patience_ms) {
  const int errno_before = errno;
  int state = PTHREAD_CANCEL_ENABLE;
  long long waited_us = 0;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  for (;; errno = errno_before) {
    void *holder = NULL;
    const struct timespec moment = {0, 1000};
    if (__atomic_compare_exchange_n(&tracebigsim_process_.holder, &holder,
                                    (void *)&tracebigsim_thread_, 0, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED)) {
      tracebigsim_process_.cancel_state = state;
      return 1;
    }
    if (holder == (void *)&tracebigsim_thread_ ||
        (patience_ms >= 0 && waited_us > 1000LL * patience_ms)) {
      pthread_setcancelstate(state, NULL);
      return 0;
    }
    nanosleep(&moment, NULL);
    waited_us += 50; /* approximately what such a sleep takes */
  }
}

static inline int tracebigsim_lock_(void) { return tracebigsim_try_lock_(-1); }

static inline void tracebigsim_unlock_(void) {
  const int state = tracebigsim_process_.cancel_state;
  __atomic_store_n(&tracebigsim_process_.holder, NULL, __ATOMIC_RELEASE);
  pthread_setcancelstate(state, NULL);
}

/* ---- Writing: complete lines, one call each ------------------------------------------------ */

/* Wait until a non-blocking descriptor accepts more; return 0 if it does not. */
static inline int tracebigsim_takes_more_(int descriptor) {
  struct pollfd waiting = {descriptor, POLLOUT, 0};
  int ready;
  do ready = poll(&waiting, 1, TRACEBIGSIM_PATIENCE_MS_);
  while (ready < 0 && errno == EINTR);
  return ready > 0;
}

/* Write bytes, in one call if the system can; return how many were not written (errno: why). */
TRACEBIGSIM_APART_ size_t tracebigsim_write_rest_(int descriptor, const char *bytes, size_t count) {
  while (count > 0) {
    const ssize_t written = write(descriptor, bytes, count);
    if (written > 0) {
      bytes += written;
      count -= (size_t)written;
    } else if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (!tracebigsim_takes_more_(descriptor)) {
        errno = EAGAIN;
        return count;
      }
    } else if (written == 0 || errno != EINTR) {
      if (written == 0) errno = EIO;
      return count;
    }
  }
  return 0;
}

/* Write without the signals by which a closed pipe or a file size limit would end the program. */
TRACEBIGSIM_APART_ size_t tracebigsim_write_(int descriptor, const char *bytes, size_t count) {
  sigset_t deadly, before, pending;
  size_t rest;
  int reason, was_pending;
  sigemptyset(&deadly);
  sigaddset(&deadly, SIGPIPE);
  sigaddset(&deadly, SIGXFSZ);
  sigpending(&pending);
  was_pending = sigismember(&pending, SIGPIPE) == 1 || sigismember(&pending, SIGXFSZ) == 1;
  if (pthread_sigmask(SIG_BLOCK, &deadly, &before) != 0) return count;
  rest = tracebigsim_write_rest_(descriptor, bytes, count);
  reason = errno;
  if (rest > 0 && (reason == EPIPE || reason == EFBIG) && !was_pending) {
    int number;
    sigpending(&pending);
    if (sigismember(&pending, SIGPIPE) == 1 || sigismember(&pending, SIGXFSZ) == 1) {
      sigwait(&deadly, &number);
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = reason;
  return rest;
}

/* Report a problem on standard error, and what it is about: bytes that need not end in NUL. */
TRACEBIGSIM_APART_ void tracebigsim_report_on_(const char *problem, const char *about,
                                               size_t length) {
  char text[600];
  const int errno_before = errno;
  const int before = __atomic_fetch_add(&tracebigsim_process_.reports, 1, __ATOMIC_RELAXED);
  const char *last =
      before == TRACEBIGSIM_MAX_REPORTS_ - 1 ? " (further reports are left out)" : "";
  int written, index;
  if (before >= TRACEBIGSIM_MAX_REPORTS_) {
    __atomic_store_n(&tracebigsim_process_.reports, TRACEBIGSIM_MAX_REPORTS_, __ATOMIC_RELAXED);
    return;
  }
  written = snprintf(text, sizeof text, "tracebigsim: %.*s: %.250s%s\n",
                     (int)(length < 200 ? length : 200), about, problem, last);
  for (index = 0; index < written - 1; index++) {
    if ((unsigned char)text[index] < 32 || text[index] == 127) text[index] = '?';
  }
  if (written > 0) (void)tracebigsim_write_(2, text, (size_t)written);
  errno = errno_before;
}

/* Report a problem on standard error, and what it is about. */
static inline void tracebigsim_report_(const char *problem, const char *about) {
  tracebigsim_report_on_(problem, about, strlen(about));
}

/* Fill in %p and %h of an output's name; return 0 if the path is too long. */
TRACEBIGSIM_APART_ int tracebigsim_expand_(const char *pattern, char *path, size_t room) {
  char part[300];
  size_t used = 0;
  for (; *pattern && used < room; pattern++) {
    snprintf(part, sizeof part, "%c", *pattern);
    if (pattern[0] == '%' && pattern[1] == 'p') {
      snprintf(part, sizeof part, "%ld", (long)getpid());
      pattern++;
    } else if (pattern[0] == '%' && pattern[1] == 'h') {
      if (gethostname(part, sizeof part - 1) != 0) strcpy(part, "unknown");
      part[sizeof part - 1] = '\0';
      pattern++;
    }
    used += (size_t)snprintf(path + used, room - used, "%s", part);
  }
  return used < room;
}

/* Open what TRACEBIGSIM_OUTPUT names, or use standard output. */
TRACEBIGSIM_APART_ void tracebigsim_open_output_(void) {
  const char *pattern = getenv("TRACEBIGSIM_OUTPUT");
  char path[TRACEBIGSIM_LINE_BYTES_], problem[200];
  tracebigsim_process_.output = 1;
  tracebigsim_process_.to_stdout = 1;
  if (pattern == NULL || *pattern == '\0') return;
  errno = ENAMETOOLONG;
  if (tracebigsim_expand_(pattern, path, sizeof path)) {
    const int descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (descriptor >= 0) {
      tracebigsim_process_.output = descriptor;
      tracebigsim_process_.to_stdout = 0;
      return;
    }
  }
  snprintf(problem, sizeof problem, "%.160s; lines go to standard output", strerror(errno));
  tracebigsim_report_(problem, pattern);
}

/* Count lines that are lost; their number is reported at the end of the process. */
TRACEBIGSIM_APART_ void tracebigsim_lose_(const char *bytes, size_t count, int reason) {
  size_t lines = 0, index;
  for (index = 0; index < count; index++) lines += bytes[index] == '\n';
  __atomic_fetch_add(&tracebigsim_process_.lost, lines, __ATOMIC_RELAXED);
  __atomic_store_n(&tracebigsim_process_.lost_reason, reason, __ATOMIC_RELAXED);
}

/* Write complete lines; those that cannot be written are counted. */
TRACEBIGSIM_APART_ void tracebigsim_write_out_(const char *bytes, size_t count) {
  tracebigsim_process_type_ *process = &tracebigsim_process_;
  const int errno_before = errno;
  size_t rest;
  if (process->to_stdout) fflush(stdout);
  if (__atomic_load_n(&process->torn, __ATOMIC_RELAXED) &&
      tracebigsim_write_(process->output, "\n", 1) == 0) {
    __atomic_store_n(&process->torn, 0, __ATOMIC_RELAXED);
  }
  rest = tracebigsim_write_(process->output, bytes, count);
  if (rest > 0) tracebigsim_lose_(bytes + (count - rest), rest, errno);
  if (rest > 0 && rest < count && bytes[count - rest - 1] != '\n') {
    __atomic_store_n(&process->torn, 1, __ATOMIC_RELAXED);
  }
  errno = errno_before;
}

/* Write buffered lines; the lock is held. */
static inline void tracebigsim_write_buffered_(void) {
  tracebigsim_process_type_ *process = &tracebigsim_process_;
  if (process->buffered == 0) return;
  process->writing = 1;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  tracebigsim_write_out_(process->buffer, process->buffered);
  process->buffered = 0;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  process->writing = 0;
}

TRACEBIGSIM_APART_ void tracebigsim_flush_(void) {
  if (!tracebigsim_lock_()) return;
  tracebigsim_write_buffered_();
  tracebigsim_unlock_();
}

/* At the end of the process, write buffered lines and report lost ones. Later lines, as of static
 * destructors, are not buffered. Wait for the lock only briefly; go on without it if this thread has
 * it, as after exit() in a signal handler. */
TRACEBIGSIM_APART_ void tracebigsim_finish_(void) {
  tracebigsim_process_type_ *process = &tracebigsim_process_;
  const int locked = tracebigsim_try_lock_(TRACEBIGSIM_PATIENCE_MS_);
  char text[80];
  int copy;
  void *holder = __atomic_load_n(&process->holder, __ATOMIC_RELAXED);
  if (locked || (holder == (void *)&tracebigsim_thread_ && !process->writing)) {
    tracebigsim_write_buffered_();
    process->ended = 1;
    __atomic_store_n(&process->buffer_limit, 0, __ATOMIC_RELAXED);
  } else if (!process->writing) {
    tracebigsim_lose_(process->buffer, process->buffered, EDEADLK);
  }
  if (locked) tracebigsim_unlock_();
  if (process->lost > 0) {
    snprintf(text, sizeof text, "%lu line%s lost", (unsigned long)process->lost,
             process->lost == 1 ? " is" : "s are");
    __atomic_store_n(&process->reports, 0, __ATOMIC_RELAXED); /* however many came before it */
    tracebigsim_report_(strerror(process->lost_reason), text);
  }
  /* NFS and others refuse what was written, as beyond a quota, only when a descriptor is closed. */
  copy = __atomic_load_n(&process->ready, __ATOMIC_ACQUIRE) ? dup(process->output) : -1;
  if (copy >= 0 && close(copy) != 0) tracebigsim_report_(strerror(errno), "lines may be lost");
}

/* Keep other threads from reading the environment during a fork. Otherwise the child might get
 * half of their work: the descriptor of a file that is not open there, since the kernel copies
 * files first. */
TRACEBIGSIM_APART_ void tracebigsim_before_fork_(void) {
  tracebigsim_process_type_ *process = &tracebigsim_process_;
  if (__atomic_load_n(&process->ready, __ATOMIC_ACQUIRE)) return;
  if (tracebigsim_try_lock_(TRACEBIGSIM_PATIENCE_MS_)) process->forking = 1;
}

static inline void tracebigsim_after_fork_(void) {
  tracebigsim_process_type_ *process = &tracebigsim_process_;
  void *holder = __atomic_load_n(&process->holder, __ATOMIC_RELAXED);
  if (holder != (void *)&tracebigsim_thread_ || !process->forking) return;
  process->forking = 0;
  tracebigsim_unlock_();
}

/* A child has only the thread that forked: nobody holds the lock, and the parent writes the
 * buffered lines. */
TRACEBIGSIM_APART_ void tracebigsim_in_child_(void) {
  tracebigsim_process_type_ *process = &tracebigsim_process_;
  tracebigsim_after_fork_();
  process->holder = NULL;
  process->forking = 0;
  process->writing = 0;
  process->buffered = 0;
  process->lost = 0;
  tracebigsim_thread_.counters = -1; /* PAPI's are those of the parent, until they start again */
}

/* Before glibc 2.34, pthread_atfork needs another library. */
#if defined(__GLIBC__) && __GLIBC__ == 2 && __GLIBC_MINOR__ < 34
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *);
extern void *__dso_handle __attribute__((visibility("hidden")));
#define TRACEBIGSIM_AT_FORK_(before, after, child) \
  __register_atfork(before, after, child, __dso_handle)
#else
#define TRACEBIGSIM_AT_FORK_(before, after, child) pthread_atfork(before, after, child)
#endif

/* Prepare for the end of the process and for forks; return 0 if that fails. */
static inline int tracebigsim_open_ends_(void) {
  tracebigsim_process_type_ *process = &tracebigsim_process_;
  if (!process->at_exit) {
    process->at_exit = atexit(tracebigsim_finish_) == 0 &&
                       TRACEBIGSIM_AT_FORK_(tracebigsim_before_fork_, tracebigsim_after_fork_,
                                            tracebigsim_in_child_) == 0;
  }
  return process->at_exit;
}

/* Prepare before there are threads: a child that is forked while another thread prepares would find
 * the lock held by a thread that it lacks. */
__attribute__((constructor)) static void tracebigsim_at_load_(void) {
  (void)tracebigsim_open_ends_();
}

/* Buffer lines, if the environment says so; a pipe takes at most a page in one piece. */
TRACEBIGSIM_APART_ void tracebigsim_open_buffer_(void) {
  const char *text = getenv("TRACEBIGSIM_BUFFER_BYTES");
  const size_t digits = text == NULL ? 0 : strspn(text, "0123456789");
  struct stat status;
  const int is_file = !tracebigsim_process_.to_stdout &&
                      fstat(tracebigsim_process_.output, &status) == 0 && S_ISREG(status.st_mode);
  const long long most = is_file ? TRACEBIGSIM_BUFFER_BYTES_ : TRACEBIGSIM_LINE_BYTES_;
  long long requested;
  if (text == NULL || *text == '\0') return;
  if (text[digits] != '\0' || digits > 18) {
    tracebigsim_report_("TRACEBIGSIM_BUFFER_BYTES is no number of bytes: lines are not buffered",
                        text);
    return;
  }
  requested = atoll(text);
  tracebigsim_process_.buffer_limit = (size_t)(requested < most ? requested : most);
}

TRACEBIGSIM_APART_ void tracebigsim_emit_(const char *line, size_t length) {
  tracebigsim_process_type_ *process = &tracebigsim_process_;
  if (__atomic_load_n(&process->buffer_limit, __ATOMIC_RELAXED) == 0) {
    int state = PTHREAD_CANCEL_ENABLE;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    tracebigsim_write_out_(line, length);
    pthread_setcancelstate(state, NULL);
    return;
  }
  if (!tracebigsim_lock_()) { /* a bracket in a signal handler that interrupts another one's line */
    tracebigsim_lose_(line, length, EDEADLK);
    return;
  }
  if (process->buffered + length > process->buffer_limit) tracebigsim_write_buffered_();
  if (length > process->buffer_limit) {
    tracebigsim_write_out_(line, length);
  } else {
    memcpy(process->buffer + process->buffered, line, length);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    process->buffered += length;
  }
  tracebigsim_unlock_();
}

/* ---- The list of chosen SEBs --------------------------------------------------------------- */

/* Order by PE and SEB, by which an emulation identifies its brackets. */
static inline int tracebigsim_by_place_(const void *left, const void *right) {
  const tracebigsim_chosen_type_ *a = (const tracebigsim_chosen_type_ *)left;
  const tracebigsim_chosen_type_ *b = (const tracebigsim_chosen_type_ *)right;
  if (a->pe != b->pe) return a->pe < b->pe ? -1 : 1;
  return a->seb == b->seb ? 0 : a->seb < b->seb ? -1 : 1;
}

/* Order by event and parameters, by which any other run identifies its brackets. */
static inline int tracebigsim_by_kernel_(const void *left, const void *right) {
  const tracebigsim_chosen_type_ *a = (const tracebigsim_chosen_type_ *)left;
  const tracebigsim_chosen_type_ *b = (const tracebigsim_chosen_type_ *)right;
  size_t index;
  if (a->count != b->count) return a->count < b->count ? -1 : 1;
  for (index = 0; index < a->count; index++) {
    if (a->params[index] < b->params[index]) return -1;
    if (a->params[index] > b->params[index]) return 1;
  }
  if (a->length != b->length) return a->length < b->length ? -1 : 1;
  return memcmp(a->event, b->event, a->length);
}

#ifdef TRACEBIGSIM_EMULATED_
#define TRACEBIGSIM_ORDER_ tracebigsim_by_place_
#else
#define TRACEBIGSIM_ORDER_ tracebigsim_by_kernel_
#endif

static inline const char *tracebigsim_skip_blanks_(const char *at) {
  while (*at == ' ' || *at == '\t') at++;
  return at;
}

/* Return the position after a field's opening brace and blanks, or NULL if it is not here. */
TRACEBIGSIM_APART_ const char *tracebigsim_field_(const char *at, const char *name) {
  at = tracebigsim_skip_blanks_(at);
  if (strncmp(at, name, strlen(name)) != 0) return NULL;
  at = tracebigsim_skip_blanks_(at + strlen(name));
  if (*at++ != ':') return NULL;
  at = tracebigsim_skip_blanks_(at);
  return *at == '{' ? tracebigsim_skip_blanks_(at + 1) : NULL;
}

/* Read an event's name up to the matching brace; return NULL if there is none. */
TRACEBIGSIM_APART_ const char *tracebigsim_read_name_(const char *at,
                                                      tracebigsim_chosen_type_ *chosen) {
  int depth = 0;
  chosen->event = at;
  for (; *at != '\0' && (*at != '}' || depth > 0); at++) depth += (*at == '{') - (*at == '}');
  chosen->length = (size_t)(at - chosen->event);
  while (chosen->length > 0 && strchr(" \t", chosen->event[chosen->length - 1])) chosen->length--;
  return *at == '}' && chosen->length > 0 ? at + 1 : NULL;
}

/* Whether a number is finite, even if the compiler assumes that all numbers are. */
static inline int tracebigsim_finite_(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (bits >> 52 & 0x7ff) != 0x7ff;
}

/* Read a decimal number of a list, in the locale "C"; return the position after it, or NULL. */
static inline const char *tracebigsim_read_number_(const char *at, double *value) {
  char *after;
  *value = strtod(at, &after);
  if (after == at || strspn(at, "+-.0123456789eE") != (size_t)(after - at)) return NULL;
  return tracebigsim_finite_(*value) ? after : NULL;
}

/* Read a line `PE SEB TRACEBIGSIM: event:{..} seqno:{..} params:{..}`; return 0 for any other. */
TRACEBIGSIM_APART_ int tracebigsim_read_chosen_(const char *line, tracebigsim_chosen_type_ *chosen,
                                                double *params) {
  char *after;
  const char *at;
  chosen->pe = strtoll(line, &after, 10);
  if (after == line || chosen->pe < 0) return 0;
  at = after;
  chosen->seb = strtoll(at, &after, 10);
  if (after == at || chosen->seb < 0) return 0;
  at = tracebigsim_skip_blanks_(after);
  if (strncmp(at, "TRACEBIGSIM:", 12) != 0) return 0;
  at = tracebigsim_field_(at + 12, "event");
  if (at == NULL || (at = tracebigsim_read_name_(at, chosen)) == NULL) return 0;
  if ((at = tracebigsim_field_(at, "seqno")) == NULL || (at = strchr(at, '}')) == NULL) return 0;
  if ((at = tracebigsim_field_(at + 1, "params")) == NULL) return 0;
  for (chosen->count = 0; *at != '}'; at = tracebigsim_skip_blanks_(at)) {
    if (chosen->count == TRACEBIGSIM_MAX_PARAMS_) return 0;
    if ((at = tracebigsim_read_number_(at, &params[chosen->count++])) == NULL) return 0;
  }
  at = tracebigsim_skip_blanks_(at + 1);
  return *at == '\0' || strcmp(at, "\r") == 0;
}

/* Read a file into new memory, up to any NUL; return NULL (and errno) if that fails. */
TRACEBIGSIM_APART_ char *tracebigsim_read_file_(const char *path) {
  FILE *stream = fopen(path, "rb");
  char *text = NULL;
  size_t room = 0;
  if (stream == NULL) return NULL;
  if (getdelim(&text, &room, '\0', stream) < 0) {
    free(text);
    text = feof(stream) ? (char *)calloc(1, 1) : NULL;
  }
  fclose(stream);
  return text;
}

/* Read the lines of a list's text into `chosen` and `params`, which have room for all of them. */
TRACEBIGSIM_APART_ void tracebigsim_read_list_(char *text, const char *path,
                                               tracebigsim_chosen_type_ *chosen, double *params) {
  size_t used = 0, number = 1;
  char *line = text;
  for (; line != NULL; number++) {
    char *next = strchr(line, '\n');
    const char *first;
    tracebigsim_chosen_type_ *here = chosen + tracebigsim_process_.chosen_count;
    if (next != NULL) *next++ = '\0';
    first = tracebigsim_skip_blanks_(line);
    if (*first != '\0' && *first != '#' && *first != '\r') {
      here->params = params + used;
      if (tracebigsim_read_chosen_(first, here, params + used)) {
        used += here->count;
        tracebigsim_process_.chosen_count++;
      } else {
        char problem[250];
        snprintf(problem, sizeof problem, "line %lu is no chosen SEB, and left out: %.180s",
                 (unsigned long)number, first);
        tracebigsim_report_(problem, path);
      }
    }
    line = next;
  }
}

/* Read the list that TRACEBIGSIM_CHOSEN names; one that cannot be read counts as empty. */
TRACEBIGSIM_APART_ void tracebigsim_open_list_(void) {
  const char *path = getenv("TRACEBIGSIM_CHOSEN");
  char *text, *at;
  size_t lines = 2;
  locale_t plain, old;
  double *params;
  if (path == NULL || *path == '\0') return;
  tracebigsim_process_.listed = 1;
  text = tracebigsim_read_file_(path);
  for (at = text; at != NULL && *at; at++) lines += *at == '\n';
  tracebigsim_process_.chosen =
      (tracebigsim_chosen_type_ *)malloc(lines * sizeof *tracebigsim_process_.chosen);
  params = (double *)malloc(lines * TRACEBIGSIM_MAX_PARAMS_ * sizeof *params);
  plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (text == NULL || tracebigsim_process_.chosen == NULL || params == NULL ||
      plain == (locale_t)0) {
    tracebigsim_report_("the list of chosen SEBs cannot be read, so no bracket prints a line",
                        path);
    return;
  }
  old = uselocale(plain);
  tracebigsim_read_list_(text, path, tracebigsim_process_.chosen, params);
  uselocale(old);
  freelocale(plain);
  if (tracebigsim_process_.chosen_count == 0) {
    free(text);
    free(params);
  }
  qsort(tracebigsim_process_.chosen, tracebigsim_process_.chosen_count,
        sizeof *tracebigsim_process_.chosen, TRACEBIGSIM_ORDER_);
}

/* Read the environment, once per process; return 0 in a signal handler whose thread has the lock.
 * Signals are blocked meanwhile: atexit() holds a lock of the C library, for which a handler's
 * exit() would wait forever. */
TRACEBIGSIM_APART_ int tracebigsim_prepare_(void) {
  const int errno_before = errno;
  sigset_t all, before;
  int locked;
  if (__atomic_load_n(&tracebigsim_process_.ready, __ATOMIC_ACQUIRE)) return 1;
  sigfillset(&all);
  if (pthread_sigmask(SIG_BLOCK, &all, &before) != 0) return 0;
  locked = tracebigsim_lock_();
  if (locked && !tracebigsim_process_.ready) {
    tracebigsim_process_.chosen_count = 0;
    tracebigsim_open_output_();
    if (tracebigsim_open_ends_() && !tracebigsim_process_.ended) tracebigsim_open_buffer_();
    tracebigsim_open_list_();
    __atomic_store_n(&tracebigsim_process_.ready, 1, __ATOMIC_RELEASE);
  }
  if (locked) tracebigsim_unlock_();
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = errno_before;
  return locked;
}

/* Whether a bracket is on the list, or there is no list. */
TRACEBIGSIM_APART_ int tracebigsim_on_list_(const tracebigsim_chosen_type_ *asked) {
  if (!tracebigsim_prepare_()) return 0;
  if (!tracebigsim_process_.listed) return 1;
  if (tracebigsim_process_.chosen_count == 0) return 0;
  return bsearch(asked, tracebigsim_process_.chosen, tracebigsim_process_.chosen_count,
                 sizeof *asked, TRACEBIGSIM_ORDER_) != NULL;
}

/* ---- Lines --------------------------------------------------------------------------------- */

/* A record to be formatted; `seb` is -1 and `ticks_unit` NULL if the line has none. */
typedef struct {
  const char *event;
  size_t length;
  const double *params;
  size_t count;
  long long seb;
  const char *ticks_unit; /* "time" for nanoseconds, "time_in_cycles" */
  uint64_t ticks;
  const long long *counters;
  int counter_count;
} tracebigsim_record_;

static inline char *tracebigsim_put_text_(char *at, const char *text) {
  const size_t length = strlen(text);
  memcpy(at, text, length);
  return at + length;
}

static inline char *tracebigsim_put_integer_(char *at, uint64_t value) {
  char digits[20];
  int count = 0;
  do digits[count++] = (char)('0' + value % 10);
  while ((value /= 10) > 0);
  while (count > 0) *at++ = digits[--count];
  return at;
}

/* Write a decimal point and the last digits of a number, with leading zeros. */
static inline char *tracebigsim_put_decimals_(char *at, uint64_t value, int digits) {
  int index;
  *at++ = '.';
  for (index = digits - 1; index >= 0; index--) {
    at[index] = (char)('0' + value % 10);
    value /= 10;
  }
  return at + digits;
}

/* Write a number as printf does with 17 digits, with a decimal point in every locale. */
TRACEBIGSIM_APART_ char *tracebigsim_put_long_number_(char *at, double value) {
  size_t before, sign, rest;
  snprintf(at, 40, "%.17g", value);
  before = strspn(at, "+-0123456789e");
  if (at[before] != '\0') {
    sign = strcspn(at + before, "0123456789");
    rest = strlen(at + before + sign) + 1;
    at[before] = '.';
    memmove(at + before + 1, at + before + sign, rest);
  }
  return at + strlen(at);
}

/* Write a finite number so that it reads back as the same double, with six decimals if possible.
 *
 * An integer number of millionths below 2^53, divided by a million, is the double nearest to that
 * decimal number, since division rounds correctly. */
static inline char *tracebigsim_put_number_(char *at, double value) {
  volatile double million = 1e6; /* or a compiler might multiply by its inverse */
  const double size = value < 0 ? -value : value;
  if (value == 0) return tracebigsim_put_text_(at, "0.000000");
  if (size < 9e9) {
    const uint64_t millionths = (uint64_t)(size * 1e6 + 0.5);
    if ((double)millionths / million == size) {
      if (value < 0) *at++ = '-';
      at = tracebigsim_put_integer_(at, millionths / 1000000);
      return tracebigsim_put_decimals_(at, millionths % 1000000, 6);
    }
  }
  return tracebigsim_put_long_number_(at, value);
}

/* Whether a single colon precedes this brace of a name, as in a field, and not `::`. */
TRACEBIGSIM_APART_ int tracebigsim_opens_field_(const char *event, size_t brace) {
  while (brace > 0 && (event[brace - 1] == ' ' || event[brace - 1] == '\t')) brace--;
  return brace > 0 && event[brace - 1] == ':' && (brace == 1 || event[brace - 2] != ':');
}

/* Return why no line can hold an event's name; NULL if one can. */
TRACEBIGSIM_APART_ const char *tracebigsim_name_problem_(const char *event, size_t length) {
  size_t index, depth = 0;
  if (length == 0 || strchr(" \t", event[0]) || strchr(" \t", event[length - 1])) {
    return "the name is empty, or begins or ends with a blank";
  }
  if (length > TRACEBIGSIM_MAX_NAME_) return "the name has more than 2000 bytes";
  for (index = 0; index < length; index++) {
    const unsigned char byte = (unsigned char)event[index];
    if ((byte < 32 && byte != '\t') || byte == 127) return "the name has a control character";
    if (byte == '{' && tracebigsim_opens_field_(event, index)) {
      return "the name contains text that reads as a field";
    }
    if (byte == '{') depth++;
    if (byte == '}' && depth-- == 0) return "the braces in the name do not pair up";
    if (byte == 'T' && length - index >= 11 && memcmp(event + index, "TRACEBIGSIM", 11) == 0) {
      return "the name contains TRACEBIGSIM";
    }
  }
  return depth == 0 ? NULL : "the braces in the name do not pair up";
}

/* Return why no line can hold a record; NULL if one can. */
static inline const char *tracebigsim_problem_(const tracebigsim_record_ *record) {
  size_t index;
  if (record->count > TRACEBIGSIM_MAX_PARAMS_) return "the line has more than 20 parameters";
  for (index = 0; index < record->count; index++) {
    if (!tracebigsim_finite_(record->params[index])) return "a parameter is not finite";
  }
  if (record->ticks >> 63) return "the time is negative: the counter went backwards";
  return tracebigsim_name_problem_(record->event, record->length);
}

static inline char *tracebigsim_put_time_(char *at, const tracebigsim_record_ *record) {
  at = tracebigsim_put_text_(at, " ");
  at = tracebigsim_put_text_(at, record->ticks_unit);
  at = tracebigsim_put_text_(at, ":{ ");
  if (strcmp(record->ticks_unit, "time") == 0) {
    at = tracebigsim_put_integer_(at, record->ticks / 1000000000);
    at = tracebigsim_put_decimals_(at, record->ticks % 1000000000, 9);
  } else {
    at = tracebigsim_put_integer_(at, record->ticks);
  }
  return tracebigsim_put_text_(at, " }  ");
}

static inline char *tracebigsim_put_counters_(char *at, const tracebigsim_record_ *record) {
  int index;
  at = tracebigsim_put_text_(at, "PAPI:{ ");
  for (index = 0; index < record->counter_count; index++) {
    const long long counter = record->counters[index];
    if (counter < 0) *at++ = '-';
    at = tracebigsim_put_integer_(at, counter < 0 ? 0 - (uint64_t)counter : (uint64_t)counter);
    *at++ = ' ';
  }
  return tracebigsim_put_text_(at, "} ");
}

/* Write a record's line into TRACEBIGSIM_LINE_BYTES_; return its length, or report why no line can
 * hold the record, and return 0. */
TRACEBIGSIM_APART_ size_t tracebigsim_format_(const tracebigsim_record_ *record, char *line) {
  const char *problem = tracebigsim_problem_(record);
  char *at = line;
  size_t index;
  if (problem != NULL) {
    tracebigsim_report_on_(problem, record->event, record->length);
    return 0;
  }
  if (record->seb >= 0) {
    at = tracebigsim_put_integer_(at, (uint64_t)record->seb);
    *at++ = ' ';
  }
  at = tracebigsim_put_text_(at, "TRACEBIGSIM: event:{ ");
  memcpy(at, record->event, record->length);
  at = tracebigsim_put_text_(at + record->length, " } ");
  if (record->seb >= 0) {
    at = tracebigsim_put_text_(at, "seqno: { ");
    at = tracebigsim_put_integer_(at, (uint64_t)record->seb);
    at = tracebigsim_put_text_(at, " }    ");
  }
  if (record->ticks_unit != NULL) at = tracebigsim_put_time_(at, record);
  if (record->counter_count > 0) at = tracebigsim_put_counters_(at, record);
  at = tracebigsim_put_text_(at, "params:{ ");
  for (index = 0; index < record->count; index++) {
    at = tracebigsim_put_number_(at, record->params[index]);
    *at++ = ' ';
  }
  return (size_t)(tracebigsim_put_text_(at, "}\n") - line);
}

/* ---- Clocks -------------------------------------------------------------------------------- */

#if defined(TRACEBIGSIM_CYCLES)
#define TRACEBIGSIM_UNIT_ "time_in_cycles"
static inline uint64_t tracebigsim_now_(void) {
#if defined(TRACEBIGSIM_READ_CYCLES)
  return (uint64_t)TRACEBIGSIM_READ_CYCLES();
#elif defined(__x86_64__) || defined(__i386__)
  uint32_t low, high; /* the fences keep earlier work before the reading, and later work after it */
  __asm__ __volatile__("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high) : : "memory");
  return (uint64_t)high << 32 | low;
#elif defined(__aarch64__)
  uint64_t ticks;
  __asm__ __volatile__("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(ticks) : : "memory");
  return ticks;
#elif defined(__powerpc64__)
  uint64_t ticks;
  __asm__ __volatile__("isync\n\tmfspr %0, 268\n\tisync" : "=r"(ticks) : : "memory");
  return ticks;
#else
#error "no cycle counter is known for this processor: define TRACEBIGSIM_READ_CYCLES()"
#endif
}
#else
#define TRACEBIGSIM_UNIT_ "time"
static inline uint64_t tracebigsim_now_(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
#endif

/* ---- PAPI's counters ----------------------------------------------------------------------- */

#ifdef TRACEBIGSIM_PAPI

static inline unsigned long tracebigsim_thread_number_(void) {
  return (unsigned long)(uintptr_t)&tracebigsim_thread_;
}

/* Start the library, which does so once per process; return 0 if it does not work here. */
TRACEBIGSIM_APART_ int tracebigsim_start_library_(void) {
  int is_started, works;
  if (!tracebigsim_lock_()) return 0;
  is_started = PAPI_is_initialized() != PAPI_NOT_INITED; /* as in the child of a fork, too */
  works = PAPI_library_init(PAPI_VER_CURRENT) == PAPI_VER_CURRENT &&
          (is_started || PAPI_thread_init(tracebigsim_thread_number_) == PAPI_OK);
  tracebigsim_unlock_();
  return works;
}

/* Add the counter whose name begins here to the thread's; return the position after the name. */
TRACEBIGSIM_APART_ const char *tracebigsim_add_counter_(const char *at) {
  tracebigsim_thread_type_ *thread = &tracebigsim_thread_;
  char name[200];
  const size_t length = strcspn(at, ",");
  const int fits = length < sizeof name;
  int status = fits ? PAPI_ECOUNT : PAPI_ENOEVNT;
  snprintf(name, sizeof name, "%.*s", (int)length, at);
  if (fits && thread->counters < TRACEBIGSIM_MAX_COUNTERS_) {
    status = PAPI_add_named_event(thread->event_set, name);
  }
  if (status == PAPI_OK) {
    thread->counters++;
  } else {
    tracebigsim_report_(PAPI_strerror(status), name);
  }
  return at + length + (at[length] == ',');
}

/* Close the counters of a thread that ends: each may be an open file. */
TRACEBIGSIM_APART_ void tracebigsim_stop_counters_(void *ended) {
  tracebigsim_thread_type_ *thread = (tracebigsim_thread_type_ *)ended;
  long long values[TRACEBIGSIM_MAX_COUNTERS_];
  if (thread->counters < 0) return; /* those of the parent, in the child of a fork */
  (void)PAPI_stop(thread->event_set, values);
  (void)PAPI_cleanup_eventset(thread->event_set);
  (void)PAPI_destroy_eventset(&thread->event_set);
  (void)PAPI_unregister_thread();
  thread->counters = 0;
}

static pthread_once_t tracebigsim_once_ = PTHREAD_ONCE_INIT;
static pthread_key_t tracebigsim_key_;
static int tracebigsim_has_key_;

TRACEBIGSIM_APART_ void tracebigsim_make_key_(void) {
  tracebigsim_has_key_ = pthread_key_create(&tracebigsim_key_, tracebigsim_stop_counters_) == 0;
}

/* Start the counters of a thread at its first bracket. */
TRACEBIGSIM_APART_ void tracebigsim_start_counters_(void) {
  tracebigsim_thread_type_ *thread = &tracebigsim_thread_;
  const char *names = getenv("TRACEBIGSIM_PAPI_EVENTS");
  if (names == NULL || *names == '\0') names = "PAPI_TOT_INS";
  thread->counters = 0;
  thread->event_set = PAPI_NULL;
  if (tracebigsim_start_library_() && PAPI_create_eventset(&thread->event_set) == PAPI_OK) {
    const char *at = names;
    pthread_once(&tracebigsim_once_, tracebigsim_make_key_);
    if (tracebigsim_has_key_) pthread_setspecific(tracebigsim_key_, thread);
    while (*at != '\0') at = tracebigsim_add_counter_(at);
    if (thread->counters > 0 && PAPI_start(thread->event_set) == PAPI_OK) return;
  }
  thread->counters = 0;
  tracebigsim_report_("PAPI cannot count these, so lines have no counters", names);
}

/* Read the thread's counters. */
static inline void tracebigsim_read_counters_(long long *values) {
  tracebigsim_thread_type_ *thread = &tracebigsim_thread_;
  if (thread->counters < 0) tracebigsim_start_counters_();
  if (thread->counters > 0 && PAPI_read(thread->event_set, values) != PAPI_OK) thread->counters = 0;
}

static inline int tracebigsim_counters_(void) { return tracebigsim_thread_.counters; }

#else

static inline void tracebigsim_read_counters_(long long *values) { (void)values; }

static inline int tracebigsim_counters_(void) { return 0; }

#endif

/* ---- Brackets of a thread, timed ----------------------------------------------------------- */

#ifndef TRACEBIGSIM_EMULATED_

/* Close the thread's bracket, if one is open, without a line. */
static inline void tracebigsim_drop_(void) {
  const int in_mode = tracebigsim_thread_.open && tracebigsim_thread_.printing;
  tracebigsim_thread_.open = 0;
  if (in_mode) TRACEBIGSIM_SIMULATOR_END();
}

static inline void tracebigsim_open_(int printing) {
  tracebigsim_thread_type_ *thread = &tracebigsim_thread_;
  if (thread->open) {
    tracebigsim_report_("within an open bracket, which is dropped", "start");
    tracebigsim_drop_();
  }
  thread->open = 1;
  thread->printing = printing;
  if (printing == TRACEBIGSIM_LEFT_OUT_) return;
  TRACEBIGSIM_SIMULATOR_BEGIN();
  tracebigsim_read_counters_(thread->began_at);
  thread->began = tracebigsim_now_();
}

/* Whether a bracket of this name and these parameters is on the list, or there is no list. */
TRACEBIGSIM_APART_ int tracebigsim_is_chosen_(const char *event, size_t length,
                                              const double *params, size_t count) {
  tracebigsim_chosen_type_ asked = {event, length, 0, 0, count, params};
  return tracebigsim_on_list_(&asked);
}

static inline void tracebigsim_start_for_(const char *event, size_t length, const double *params,
                                          size_t count) {
  tracebigsim_open_(tracebigsim_is_chosen_(event, length, params, count) ? TRACEBIGSIM_PRINTED_
                                                                         : TRACEBIGSIM_LEFT_OUT_);
}

/* Write the line of a bracket that has ended. */
TRACEBIGSIM_APART_ void tracebigsim_print_(const char *event, size_t length, const double *params,
                                           size_t count, const tracebigsim_thread_type_ *bracket,
                                           uint64_t ended, const long long *ended_at) {
  long long counted[TRACEBIGSIM_MAX_COUNTERS_];
  char line[TRACEBIGSIM_LINE_BYTES_];
  tracebigsim_record_ record = {
      event, length, params, count, -1, TRACEBIGSIM_UNIT_, ended - bracket->began, NULL, 0};
  size_t written;
  int index;
  record.counters = counted;
  record.counter_count = bracket->counters > 0 ? tracebigsim_counters_() : 0;
  for (index = 0; index < record.counter_count; index++) {
    counted[index] = ended_at[index] - bracket->began_at[index];
  }
  if (!tracebigsim_prepare_()) return;
  if (bracket->printing == TRACEBIGSIM_UNDECIDED_ &&
      !tracebigsim_is_chosen_(event, length, params, count)) {
    return;
  }
  written = tracebigsim_format_(&record, line);
  if (written > 0) tracebigsim_emit_(line, written);
}

static inline void tracebigsim_end_(const char *event, size_t length, const double *params,
                                    size_t count) {
  /* A copy first: a bracket in a signal handler replaces the thread's, and leaves none open. */
  const tracebigsim_thread_type_ bracket = tracebigsim_thread_;
  int open;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  open = tracebigsim_thread_.open;
  tracebigsim_thread_.open = 0;
  if (!open) {
    tracebigsim_report_on_("an end without a start", event, length);
  } else if (bracket.printing != TRACEBIGSIM_LEFT_OUT_) {
    const uint64_t ended = tracebigsim_now_();
    long long ended_at[TRACEBIGSIM_MAX_COUNTERS_] = {0};
    tracebigsim_read_counters_(ended_at);
    TRACEBIGSIM_SIMULATOR_END();
    tracebigsim_print_(event, length, params, count, &bracket, ended, ended_at);
  }
}

static inline void startTraceBigSim(void) { tracebigsim_open_(TRACEBIGSIM_UNDECIDED_); }

#else

/* ---- Brackets of an emulated PE: marks in its log, lines in its param file ----------------- */

void tracebigsim_emulated_start_(void);
void tracebigsim_emulated_end_(const char *event, size_t length, const double *params,
                               size_t count);
void tracebigsim_emulated_drop_(void);

static inline void startTraceBigSim(void) { tracebigsim_emulated_start_(); }

static inline void tracebigsim_start_for_(const char *event, size_t length, const double *params,
                                          size_t count) {
  (void)event, (void)length, (void)params, (void)count; /* the PE and SEB identify the bracket */
  tracebigsim_emulated_start_();
}

static inline void tracebigsim_end_(const char *event, size_t length, const double *params,
                                    size_t count) {
  tracebigsim_emulated_end_(event, length, params, count);
}

static inline void tracebigsim_drop_(void) { tracebigsim_emulated_drop_(); }

#endif

/* Write the buffered lines; call it before a process ends without exit(). */
static inline void flushTraceBigSim(void) { tracebigsim_flush_(); }

#ifdef __cplusplus
} /* extern "C" */
#endif

#if defined(TRACEBIGSIM_EMULATED_) && defined(__cplusplus)

#include <vector>

#include "charm++.h"
#include "blue.h"
#include "blue_impl.h"

namespace tracebigsim {

/* The state of each emulated PE, whatever thread of the process runs it. */
struct Pe {
  bool open;
  bool chosen;
  bool begun; /* its param file has been created */
  int descriptor;
  long long seb;
  uint64_t began;
  long long beganAt[TRACEBIGSIM_MAX_COUNTERS_];
};

/* The PEs of this process, in a table that is never freed; the lock is held. */
inline std::vector<Pe> &allPes() {
  static std::vector<Pe> *table = new std::vector<Pe>();
  return *table;
}

inline Pe &peNumber(int number) {
  const Pe fresh = {false, false, false, -1, -1, 0, {0}};
  const size_t index = static_cast<size_t>(number);
  if (allPes().size() <= index) allPes().resize(index + 1, fresh);
  return allPes()[index];
}

/* Close all param files: a process may emulate more PEs than it can open files. */
inline void closeFiles() {
  for (Pe &pe : allPes()) {
    if (pe.descriptor >= 0) close(pe.descriptor);
    pe.descriptor = -1;
  }
}

/* Open a PE's param file, the first time as a new one; the lock is held. */
inline bool openFile(int number, Pe &pe) {
  char path[40];
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (pe.begun ? 0 : O_TRUNC);
  if (pe.descriptor >= 0) return true;
  snprintf(path, sizeof path, "param.%d", number);
  pe.descriptor = open(path, flags, 0666);
  if (pe.descriptor < 0 && (errno == EMFILE || errno == ENFILE)) {
    closeFiles();
    pe.descriptor = open(path, flags, 0666);
  }
  if (pe.descriptor < 0) {
    tracebigsim_report_(strerror(errno), path);
    return false;
  }
  pe.begun = true;
  return true;
}

inline long long runningSeb() { return static_cast<long long>(tTIMELINEREC.length()) - 1; }

/* Append a line to the running PE's param file, without a buffer in this process. */
inline void append(int number, const char *line, size_t length) {
  const int errnoBefore = errno;
  if (!tracebigsim_lock_()) return;
  Pe &pe = peNumber(number);
  if (openFile(number, pe) && tracebigsim_write_(pe.descriptor, line, length) > 0) {
    tracebigsim_report_(strerror(errno), "lines of a param file are lost");
  }
  tracebigsim_unlock_();
  errno = errnoBefore;
}

/* Open or close a PE's bracket; return its state before that. */
inline Pe exchangeOpen(int number, bool open, long long seb, bool chosen) {
  const Pe none = {false, false, true, -1, -1, 0, {0}};
  if (!tracebigsim_lock_()) return none;
  Pe &pe = peNumber(number);
  const Pe before = pe;
  pe.open = open;
  if (open) pe.seb = seb;
  if (open) pe.chosen = chosen;
  tracebigsim_unlock_();
  return before;
}

inline void setBegan(int number, uint64_t began, const long long *beganAt) {
  if (!tracebigsim_lock_()) return;
  Pe &pe = peNumber(number);
  pe.began = began;
  memcpy(pe.beganAt, beganAt, sizeof pe.beganAt);
  tracebigsim_unlock_();
}

}  // namespace tracebigsim

extern "C" {

TRACEBIGSIM_SHARED_ void tracebigsim_emulated_drop_(void) {
  const tracebigsim::Pe pe = tracebigsim::exchangeOpen(CkMyPe(), false, 0, false);
  if (pe.open && pe.chosen) TRACEBIGSIM_SIMULATOR_END();
}

TRACEBIGSIM_SHARED_ void tracebigsim_emulated_start_(void) {
  const int number = CkMyPe();
  const long long seb = tracebigsim::runningSeb();
  const tracebigsim_chosen_type_ asked = {NULL, 0, number, seb, 0, NULL};
  const bool chosen = seb >= 0 && tracebigsim_on_list_(&asked);
  if (seb < 0) tracebigsim_report_("no SEB is running, so the bracket is left out", "start");
  const tracebigsim::Pe before = tracebigsim::exchangeOpen(number, true, seb, chosen);
  if (before.open) {
    tracebigsim_report_("within an open bracket, which is dropped", "start");
    if (before.chosen) TRACEBIGSIM_SIMULATOR_END();
  }
  if (!chosen) return;
  long long beganAt[TRACEBIGSIM_MAX_COUNTERS_] = {0};
  if (tracebigsim_counters_() < 0) tracebigsim_read_counters_(beganAt); /* starts them */
  BgMark("startTraceBigSim %f\n");
#if defined(TRACEBIGSIM_CYCLES) || defined(TRACEBIGSIM_PAPI)
  TRACEBIGSIM_SIMULATOR_BEGIN();
  tracebigsim_read_counters_(beganAt);
  tracebigsim::setBegan(number, tracebigsim_now_(), beganAt);
#endif
}

TRACEBIGSIM_SHARED_ void tracebigsim_emulated_end_(const char *event, size_t length,
                                                   const double *params, size_t count) {
#ifdef TRACEBIGSIM_CYCLES
  const uint64_t ended = tracebigsim_now_();
#endif
  long long counted[TRACEBIGSIM_MAX_COUNTERS_] = {0};
  tracebigsim_read_counters_(counted);
  const int number = CkMyPe();
  const long long seb = tracebigsim::runningSeb();
  const tracebigsim::Pe pe = tracebigsim::exchangeOpen(number, false, 0, false);
  tracebigsim_record_ record = {event, length, params, count, seb, NULL, 0, NULL, 0};
  char line[TRACEBIGSIM_LINE_BYTES_];
  size_t written;
  if (!pe.open) {
    tracebigsim_report_on_("an end without a start", event, length);
    return;
  }
  if (!pe.chosen) return;
#ifdef TRACEBIGSIM_CYCLES
  TRACEBIGSIM_SIMULATOR_END();
  record.ticks_unit = TRACEBIGSIM_UNIT_;
  record.ticks = ended - pe.began;
#endif
  record.counters = counted;
  record.counter_count = tracebigsim_counters_();
  for (int index = 0; index < record.counter_count; index++) counted[index] -= pe.beganAt[index];
  if (pe.seb != seb) {
    tracebigsim_report_on_("a bracket begins in one SEB and ends in another", event, length);
    return;
  }
  BgMark("endTraceBigSim %f\n");
  written = tracebigsim_format_(&record, line);
  if (written > 0) tracebigsim::append(number, line, written);
}

} /* extern "C" */

#endif /* emulated, in C++ */

/* ---- The calls ----------------------------------------------------------------------------- */

#ifdef __cplusplus

#include <exception>

/* Sources may have different modes, and each keeps to its own: functions and the guard are its own,
 * or the linker would choose those of one source for all. */

/* Open the thread's (the PE's) bracket, whose name and numbers are known. */
template <typename... Number>
static inline void startTraceBigSimFor(const char *event, Number... params) {
  static_assert(sizeof...(Number) <= TRACEBIGSIM_MAX_PARAMS_, "a bracket has at most 20 numbers");
  const double values[] = {static_cast<double>(params)..., 0.0};
  tracebigsim_start_for_(event, strlen(event), values, sizeof...(Number));
}

/* Close the thread's (the PE's) bracket and write its line. */
template <typename... Number>
static inline void endTraceBigSim(const char *event, Number... params) {
  static_assert(sizeof...(Number) <= TRACEBIGSIM_MAX_PARAMS_, "a bracket has at most 20 numbers");
  const double values[] = {static_cast<double>(params)..., 0.0};
  tracebigsim_end_(event, strlen(event), values, sizeof...(Number));
}

namespace tracebigsim {
namespace {

/* A bracket from here to the end of the block; if an exception leaves the block, it writes no line.
 * The name is copied, since that of a temporary string is gone by then. */
class Bracket {
 public:
  template <typename... Number>
  [[nodiscard]] explicit Bracket(const char *event, Number... params)
      : length_(lengthOf(event)),
        count_(sizeof...(Number)),
        params_{static_cast<double>(params)...},
        exceptions_(exceptions()) {
    static_assert(sizeof...(Number) <= TRACEBIGSIM_MAX_PARAMS_, "a bracket has at most 20 numbers");
    memcpy(event_, event, length_);
    tracebigsim_start_for_(event_, length_, params_, count_);
  }
  Bracket(const Bracket &) = delete;
  Bracket &operator=(const Bracket &) = delete;
  ~Bracket() {
    if (exceptions() > exceptions_) {
      tracebigsim_drop_();
    } else {
      tracebigsim_end_(event_, length_, params_, count_);
    }
  }

 private:
  /* As strnlen() up to the room for a name, of whose bound g++ warns if a literal is shorter. */
  static size_t lengthOf(const char *event) {
    size_t length = 0;
    while (length < sizeof event_ && event[length] != '\0') length++;
    return length;
  }
  static int exceptions() {
#if __cplusplus >= 201703L
    return std::uncaught_exceptions();
#else
    return std::uncaught_exception() ? 1 : 0;
#endif
  }

  char event_[TRACEBIGSIM_MAX_NAME_ + 1]; /* a longer name is reported as one of this length */
  size_t length_;
  size_t count_;
  double params_[TRACEBIGSIM_MAX_PARAMS_];
  int exceptions_;
};

}  // namespace
}  // namespace tracebigsim

#else

/* An array holds the numbers and a final zero, so that it is never empty; a 21st is an error. */
#define TRACEBIGSIM_COUNT_(...) (sizeof((const double[]){__VA_ARGS__}) / sizeof(double) - 1)
#define TRACEBIGSIM_AT_MOST_20_(...) \
  (0 * sizeof(char[TRACEBIGSIM_COUNT_(__VA_ARGS__) <= TRACEBIGSIM_MAX_PARAMS_ ? 1 : -1]))
#define TRACEBIGSIM_CALL_(call, event, ...)                                      \
  __extension__({                                                                \
    _Pragma("GCC diagnostic push")                                               \
    _Pragma("GCC diagnostic ignored \"-Wconversion\"") /* of size_t, as in C++ */  \
    _Pragma("GCC diagnostic ignored \"-Wfloat-conversion\"")                     \
    call((event), (const double[]){__VA_ARGS__},                                 \
         TRACEBIGSIM_COUNT_(__VA_ARGS__) + TRACEBIGSIM_AT_MOST_20_(__VA_ARGS__)); \
    _Pragma("GCC diagnostic pop")                                                \
  })

static inline void tracebigsim_start_named_(const char *event, const double *params, size_t count) {
  tracebigsim_start_for_(event, strlen(event), params, count);
}

static inline void tracebigsim_end_named_(const char *event, const double *params, size_t count) {
  tracebigsim_end_(event, strlen(event), params, count);
}

#define startTraceBigSimFor(...) TRACEBIGSIM_CALL_(tracebigsim_start_named_, __VA_ARGS__, 0)
#define endTraceBigSim(...) TRACEBIGSIM_CALL_(tracebigsim_end_named_, __VA_ARGS__, 0)

#endif

#endif /* POSIX is declared */

#endif /* any mode except off */

#endif
