// Functions of Python that return an object made by calls with keywords, read without running them.
//
//   def llama3_8b() -> Trainer.Config:
//       spec = model_registry("8B")
//       config = Trainer.Config(model_spec=spec, training=TrainingConfig(steps=2 * 500))
//       config.parallelism.tensor_parallel_degree = 8
//       return config
//
// Literals, lists, calls, names that are set before, attributes of what was called, whole numbers
// with + - * //, and calls of functions of the same file without arguments are read. Everything
// else is kept as what was not read.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/launch/python_tokens.hpp"

namespace stageline {

enum class PythonKind { none, text, number, flag, list, call, unread };

struct PythonValue {
  PythonKind kind = PythonKind::none;
  std::string text;  // without quotes; "true", "false"; what is called; what was not read
  std::vector<std::pair<std::string, PythonValue>> items{};  // by keyword; without one: ""
  int line = 0;

  /// Null where there is none of that keyword.
  const PythonValue* find(std::string_view keyword) const;
};

/// A line of a function that may change what it returns.
struct PythonUnread {
  std::string text;  // "enable_fused_swiglu ( config )"
  int line = 0;
  bool may_set = false;  // a branch or a loop, or an object that has another name
};

struct PythonResult {
  PythonValue value;  // `none` where nothing is returned
  std::vector<PythonUnread> unread;
};

class PythonFile {
 public:
  /// Throws TraceError for a text or bracket that does not end.
  PythonFile(const std::string& text, const std::string& file);
  PythonFile(const PythonFile&) = delete;
  PythonFile& operator=(const PythonFile&) = delete;
  ~PythonFile();

  /// Those of the file itself without arguments, in order.
  std::vector<std::string> functions() const;
  /// What one of them returns. Throws TraceError where functions call each other without end.
  PythonResult result_of(const std::string& function) const;

 private:
  friend class PythonFunction;
  PythonResult result_at(const std::string& function, int depth) const;
  std::string file_;
  std::vector<PythonLine> lines_;
  std::map<std::string, std::pair<std::size_t, std::size_t>> bodies_;  // lines, from and to
  std::vector<std::string> order_;
};

}  // namespace stageline
