// Words of Python, by logical lines: for python_values.cpp.
#pragma once

#include <string>
#include <vector>

namespace stageline {

enum class PythonTokenKind { name, number, text, sign };
struct PythonToken {
  PythonTokenKind kind = PythonTokenKind::sign;
  std::string text;  // of a text without quotes
  int line = 0;
  bool formatted = false;  // f"…", which is computed

  bool is(const char* sign) const { return kind == PythonTokenKind::sign && text == sign; }
};

/// What stands between two line breaks outside of brackets.
struct PythonLine {
  int indent = 0;
  std::vector<PythonToken> tokens;
};

/// Comments are left out. Throws TraceError for a text or bracket that does not end.
std::vector<PythonLine> python_lines(const std::string& text, const std::string& file);

}  // namespace stageline
