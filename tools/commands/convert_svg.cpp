// Runs rsvg-convert with temporary files as its standard input and output.
#include "tools/commands/convert_svg.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "sim/base/errors.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration): not in every <unistd.h>

namespace stageline::cli {
namespace {

constexpr const char* program = "rsvg-convert";

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using TemporaryFile = std::unique_ptr<std::FILE, CloseFile>;

// Without a name: it is gone when it is closed.
TemporaryFile temporary_file() {
  TemporaryFile file(std::tmpfile());
  if (!file) {
    throw UsageError(fmt::format("cannot write a temporary file: {}", std::strerror(errno)));
  }
  return file;
}

TemporaryFile file_of(const std::string& text) {
  TemporaryFile file = temporary_file();
  if (std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() ||
      std::fflush(file.get()) != 0) {
    throw UsageError(fmt::format("cannot write a temporary file: {}", std::strerror(errno)));
  }
  std::rewind(file.get());
  return file;
}

std::string content_of(std::FILE* file) {
  std::string text;
  std::array<char, 1 << 16> part{};
  std::rewind(file);
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), file)) {
    text.append(part.data(), count);
  }
  return text;
}

[[noreturn]] void refuse_start(int error) {
  if (error != ENOENT) {
    throw UsageError(fmt::format("cannot run {}: {}", program, std::strerror(error)));
  }
  throw UsageError(fmt::format(
      "--pdf and --png need librsvg's {}, which is not installed; on Debian: apt install "
      "librsvg2-bin",
      program));
}

class Actions {
 public:
  Actions() { posix_spawn_file_actions_init(&actions_); }
  ~Actions() { posix_spawn_file_actions_destroy(&actions_); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;

  void redirect(std::FILE* file, int descriptor) {
    posix_spawn_file_actions_adddup2(&actions_, fileno(file), descriptor);
  }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

// The exit status as waitpid() gives it.
int run(std::vector<std::string> arguments, std::FILE* in, std::FILE* out, std::FILE* errors) {
  Actions actions;
  actions.redirect(in, STDIN_FILENO);
  actions.redirect(out, STDOUT_FILENO);
  actions.redirect(errors, STDERR_FILENO);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, arguments[0].c_str(), actions.get(), nullptr, argv.data(), environ);
  if (error != 0) refuse_start(error);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      throw UsageError(fmt::format("cannot wait for {}: {}", program, std::strerror(errno)));
    }
  }
  return status;
}

}  // namespace

std::string converted(const std::string& svg, PictureFormat format) {
  std::vector<std::string> arguments{program};
  switch (format) {
    case PictureFormat::pdf:
      arguments.emplace_back("--format=pdf");
      break;
    case PictureFormat::png:
      arguments.insert(arguments.end(), {"--format=png", "--zoom=2"});
      break;
  }
  const TemporaryFile in = file_of(svg);
  const TemporaryFile out = temporary_file();
  const TemporaryFile errors = temporary_file();
  const int status = run(std::move(arguments), in.get(), out.get(), errors.get());
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    const std::string words = content_of(errors.get());
    throw UsageError(
        fmt::format("{} failed: {}", program,
                    words.empty() ? "it says nothing" : words.substr(0, words.find('\n'))));
  }
  return content_of(out.get());
}

}  // namespace stageline::cli
