/* Does to brackets what programs may do: the first argument says what, the second how often. */
#include "tracebigsim.h"

#include <sys/wait.h>

static int going = 1;

static void bracket(double number) {
  startTraceBigSimFor("k", number);
  endTraceBigSim("k", number);
}

static void *work(void *nothing) {
  int i;
  for (i = 0; __atomic_load_n(&going, __ATOMIC_RELAXED); i++) {
    bracket(i);
    pthread_testcancel();
  }
  return nothing;
}

static void pause_us(int count) {
  const struct timespec moment = {0, 1000L * count};
  nanosleep(&moment, NULL);
}

/* Threads are cancelled in their brackets; the main thread's go on. */
static void cancel(int times) {
  int i;
  for (i = 0; i < times; i++) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pause_us(i % 50);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    bracket(-1);
  }
}

/* Children are made while another thread is in a bracket, and end by exit(). */
static int make_children(int times) {
  pthread_t thread;
  int i, status, bad = 0;
  pthread_create(&thread, NULL, work, NULL);
  for (i = 0; i < times; i++) {
    const pid_t child = fork();
    if (child == 0) {
      bracket(-2);
      exit(0);
    }
    waitpid(child, &status, 0);
    bad += status != 0;
  }
  __atomic_store_n(&going, 0, __ATOMIC_RELAXED);
  pthread_join(thread, NULL);
  return bad;
}

static void leave(int number) {
  (void)number;
  exit(0);
}

static void use(int number) {
  const int before = errno;
  (void)number;
  bracket(-3);
  if (errno != before) _exit(3);
}

/* A signal handler calls exit() in the midst of a bracket. */
static int exit_in_handlers(int times) {
  int i, status, bad = 0;
  for (i = 0; i < times; i++) {
    const pid_t child = fork();
    if (child == 0) {
      signal(SIGALRM, leave);
      ualarm((useconds_t)(100 + 7 * i), 0);
      work(NULL);
    }
    waitpid(child, &status, 0);
    bad += status != 0;
  }
  return bad;
}

/* A signal handler has brackets of its own. */
static void bracket_in_handlers(int times) {
  int i;
  signal(SIGALRM, use);
  ualarm(20, 20); /* it meets a bracket at each of its instructions */
  for (i = 0; i < 100 * times; i++) bracket(i);
  ualarm(0, 0);
}

int main(int count, char **words) {
  const char *what = count > 1 ? words[1] : "";
  const int times = count > 2 ? atoi(words[2]) : 100;
  int i;
  if (strcmp(what, "cancel") == 0) cancel(times);
  if (strcmp(what, "fork") == 0) return make_children(times);
  if (strcmp(what, "exit") == 0) return exit_in_handlers(times);
  if (strcmp(what, "handle") == 0) bracket_in_handlers(times);
  if (strcmp(what, "write") == 0) {
    for (i = 0; i < times; i++) bracket(i);
  }
  return 0;
}
