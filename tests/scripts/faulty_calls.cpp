// Preloaded into the command by faults.py: makes the n-th of the calls that write files fail, or
// kills the process there.
//
//     STAGELINE_FAULT      kill, or the number of an error
//     STAGELINE_FAULT_AT   n, from 1
//     STAGELINE_NO_TMPFILE as on file systems that know no file without a name
//     STAGELINE_CLOCK      the wall clock jumps by a year to and fro, each time it is read
//
// Of stdio only the calls from outside can be met, so a fault within a write is left to
// RLIMIT_FSIZE.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

int number_of(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? 0 : std::atoi(text);
}

// Whether this call fails, with errno set.
bool fails() {
  static std::atomic<int> calls{0};
  const char* const fault = std::getenv("STAGELINE_FAULT");
  if (fault == nullptr || ++calls != number_of("STAGELINE_FAULT_AT")) return false;
  if (std::strcmp(fault, "kill") == 0) ::raise(SIGKILL);
  errno = std::atoi(fault);
  return true;
}

bool is_standard(std::FILE* file) { return file == nullptr || file == stdout || file == stderr; }

using Open = int(const char*, int, ...);

int opened(const char* name, const char* path, int flags, mode_t mode) {
  const bool unnamed = (flags & O_TMPFILE) == O_TMPFILE;
  if (unnamed && std::getenv("STAGELINE_NO_TMPFILE") != nullptr) {
    errno = EOPNOTSUPP;
    return -1;
  }
  if ((unnamed || (flags & O_CREAT) != 0) && fails()) return -1;
  return next<Open>(name)(path, flags, mode);
}

mode_t mode_of(int flags, va_list words) {
  const bool has_one = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return has_one ? static_cast<mode_t>(va_arg(words, int)) : 0;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list words;
  va_start(words, flags);
  const mode_t mode = mode_of(flags, words);
  va_end(words);
  return opened("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list words;
  va_start(words, flags);
  const mode_t mode = mode_of(flags, words);
  va_end(words);
  return opened("open64", path, flags, mode);
}

size_t fwrite(const void* data, size_t size, size_t count, std::FILE* file) {
  if (!is_standard(file) && fails()) return 0;
  return next<decltype(fwrite)>("fwrite")(data, size, count, file);
}

int fflush(std::FILE* file) {
  if (!is_standard(file) && fails()) return EOF;
  return next<decltype(fflush)>("fflush")(file);
}

int fclose(std::FILE* file) {
  const bool failed = !is_standard(file) && fails();
  const int reason = errno;
  const int closed = next<decltype(fclose)>("fclose")(file);
  if (failed) errno = reason;
  return failed ? EOF : closed;
}

int fchmod(int file, mode_t mode) noexcept {
  return fails() ? -1 : next<decltype(fchmod)>("fchmod")(file, mode);
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  if (fails()) return -1;
  return next<decltype(linkat)>("linkat")(from_folder, from, to_folder, to, flags);
}

int rename(const char* from, const char* to) noexcept {
  return fails() ? -1 : next<decltype(rename)>("rename")(from, to);
}

int unlink(const char* path) noexcept {
  return fails() ? -1 : next<decltype(unlink)>("unlink")(path);
}

int mkdir(const char* path, mode_t mode) noexcept {
  return fails() ? -1 : next<decltype(mkdir)>("mkdir")(path, mode);
}

int clock_gettime(clockid_t clock, struct timespec* time) noexcept {
  static std::atomic<int> jumps{0};
  const int done = next<decltype(clock_gettime)>("clock_gettime")(clock, time);
  if (done == 0 && clock == CLOCK_REALTIME && std::getenv("STAGELINE_CLOCK") != nullptr) {
    constexpr time_t year = 365 * 24 * 60 * 60;
    time->tv_sec += ++jumps % 2 == 0 ? year : -year;
  }
  return done;
}

}  // extern "C"
