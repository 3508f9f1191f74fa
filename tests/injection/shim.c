/* Preloaded into a process, this makes the nth call of a function fail, on files under one folder.

   arm() chooses the call, its number, and an errno, or 0 for a call that does half of what it was
   asked for; `seen` counts the calls, also in memory that the caller shares. Calls on other files,
   and all calls before arm(), go through. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static char call_[32], folder_[PATH_MAX];
static int number_, error_;
static int *seen_;

void arm(const char *call, const char *folder, int number, int error, int *seen) {
  snprintf(call_, sizeof call_, "%s", call);
  snprintf(folder_, sizeof folder_, "%s", folder);
  number_ = number;
  error_ = error;
  __atomic_store_n(&seen_, seen, __ATOMIC_SEQ_CST);
}

static int is_under(const char *path) {
  return path != NULL && strncmp(path, folder_, strlen(folder_)) == 0;
}

/* Whether this call is the one that fails; it is told by path, or by descriptor where that is NULL. */
static int fails(const char *call, const char *path, int fd) {
  int kept = errno;
  char link[32], target[PATH_MAX];
  if (seen_ == NULL || strcmp(call, call_) != 0) return 0;
  if (path == NULL) {
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, target, sizeof target - 1);
    errno = kept;
    if (length < 0) return 0;
    target[length] = 0;
    path = target;
  }
  if (!is_under(path)) return 0;
  return __atomic_add_fetch(seen_, 1, __ATOMIC_SEQ_CST) == number_;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAIL(value) do { if (error_ != 0) { errno = error_; return (value); } } while (0)
#define HALF(size) (error_ == 0 && (size) > 1 ? (size) / 2 : (size))

ssize_t write(int fd, const void *data, size_t size) {
  if (fails("write", NULL, fd)) { FAIL(-1); size = HALF(size); }
  return REAL(write)(fd, data, size);
}

#define PWRITE(name, offset_t) \
  ssize_t name(int fd, const void *data, size_t size, offset_t at) { \
    if (fails("pwrite", NULL, fd)) { FAIL(-1); size = HALF(size); } \
    return REAL(name)(fd, data, size, at); \
  }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

static ssize_t half_written(int fd, const struct iovec *parts, off_t at) {
  return REAL(pwrite)(fd, parts[0].iov_base, HALF(parts[0].iov_len), at);
}

#define PWRITEV(name, offset_t) \
  ssize_t name(int fd, const struct iovec *parts, int count, offset_t at, int flags) { \
    if (fails("pwritev", NULL, fd)) { FAIL(-1); return half_written(fd, parts, at); } \
    return REAL(name)(fd, parts, count, at, flags); \
  }
PWRITEV(pwritev2, off_t)
PWRITEV(pwritev64v2, off64_t)

ssize_t read(int fd, void *data, size_t size) {
  if (fails("read", NULL, fd)) { FAIL(-1); size = HALF(size); }
  return REAL(read)(fd, data, size);
}

static ssize_t half_read(int fd, const struct iovec *parts, off_t at) {
  return pread(fd, parts[0].iov_base, HALF(parts[0].iov_len), at);
}

#define PREADV(name, offset_t) \
  ssize_t name(int fd, const struct iovec *parts, int count, offset_t at, int flags) { \
    if (fails("preadv", NULL, fd)) { FAIL(-1); return half_read(fd, parts, at); } \
    return REAL(name)(fd, parts, count, at, flags); \
  }
PREADV(preadv2, off_t)
PREADV(preadv64v2, off64_t)

int fsync(int fd) {
  if (fails("fsync", NULL, fd)) FAIL(-1);
  return REAL(fsync)(fd);
}

#define FTRUNCATE(name, offset_t) \
  int name(int fd, offset_t size) { \
    if (fails("ftruncate", NULL, fd)) FAIL(-1); \
    return REAL(name)(fd, size); \
  }
FTRUNCATE(ftruncate, off_t)
FTRUNCATE(ftruncate64, off64_t)

#define FSTAT(name, buffer) \
  int name(int fd, struct buffer *found) { \
    if (fails("fstat", NULL, fd)) FAIL(-1); \
    return REAL(name)(fd, found); \
  }
FSTAT(fstat, stat)
FSTAT(fstat64, stat64)

int close(int fd) {
  if (fails("close", NULL, fd)) { REAL(close)(fd); FAIL(-1); return 0; }
  return REAL(close)(fd);
}

int rename(const char *from, const char *to) {
  if (fails("rename", from, -1)) FAIL(-1);
  return REAL(rename)(from, to);
}

int renameat2(int there, const char *from, int here, const char *to, unsigned flags) {
  if (fails("renameat2", from, -1)) FAIL(-1);
  return REAL(renameat2)(there, from, here, to, flags);
}

int unlink(const char *path) {
  if (fails("unlink", path, -1)) FAIL(-1);
  return REAL(unlink)(path);
}

int mkdir(const char *path, mode_t mode) {
  if (fails("mkdir", path, -1)) FAIL(-1);
  return REAL(mkdir)(path, mode);
}

#define MMAP(name, offset_t) \
  void *name(void *at, size_t size, int mode, int flags, int fd, offset_t offset) { \
    if (fd >= 0 && fails("mmap", NULL, fd)) FAIL(MAP_FAILED); \
    return REAL(name)(at, size, mode, flags, fd, offset); \
  }
MMAP(mmap, off_t)
MMAP(mmap64, off64_t)

#define OPEN(name) \
  int name(const char *path, int flags, ...) { \
    va_list rest; \
    va_start(rest, flags); \
    int mode = va_arg(rest, int); \
    va_end(rest); \
    if (fails("open", path, -1)) FAIL(-1); \
    return REAL(name)(path, flags, mode); \
  }
OPEN(open)
OPEN(open64)
