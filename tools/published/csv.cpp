// Reads comma-separated values.
#include "tools/published/csv.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "sim/base/errors.hpp"

namespace stageline {
namespace {

class CsvReader {
 public:
  CsvReader(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  CsvTable read() {
    CsvTable table;
    while (at_ < text_.size()) {
      const int line = line_;
      fault_.clear();
      CsvRow row{line, record()};
      if (row.cells.size() == 1 && row.cells.front().empty()) continue;
      if (table.columns.empty()) {
        if (!fault_.empty()) throw TraceError(file_, fmt::format("line {}", line), fault_);
        table.columns = std::move(row.cells);
        continue;
      }
      if (fault_.empty() && row.cells.size() != table.columns.size()) {
        fault_ = fmt::format("the row has {} cells, and the title row has {} columns",
                             row.cells.size(), table.columns.size());
      }
      if (!fault_.empty()) {
        table.unread.push_back({row.line, std::exchange(fault_, {})});
      } else {
        table.rows.push_back(std::move(row));
      }
    }
    if (table.columns.empty()) throw TraceError(file_, "line 1", "there is no title row");
    return table;
  }

 private:
  // The cells up to the end of the line, which is passed.
  std::vector<std::string> record() {
    std::vector<std::string> cells;
    while (true) {
      cells.push_back(at_ < text_.size() && text_[at_] == '"' ? quoted() : plain());
      if (at_ < text_.size() && text_[at_] == ',') {
        ++at_;
        continue;
      }
      pass_line_end();
      return cells;
    }
  }

  std::string plain() {
    const std::size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
    const std::size_t begin = std::exchange(at_, end);
    return text_.substr(begin, end - begin);
  }

  std::string quoted() {
    const int begin = line_;
    std::string cell;
    for (++at_; at_ < text_.size(); ++at_) {
      const char now = text_[at_];
      if (now == '\n') ++line_;
      if (now != '"') {
        cell += now;
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        cell += '"';
        ++at_;
      } else {
        ++at_;
        if (at_ < text_.size() && text_.find_first_of(",\r\n", at_) != at_) {
          fault_ = "a comma or the end of the line must follow a closing quote";
          at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
        }
        return cell;
      }
    }
    throw TraceError(file_, fmt::format("line {}", begin), "a quoted cell does not end");
  }

  void pass_line_end() {
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] == '\n') ++at_;
    ++line_;
  }

  const std::string& text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::string fault_;  // of the present row
};

}  // namespace

std::optional<std::size_t> CsvTable::find(std::string_view column) const {
  const auto found = std::find(columns.begin(), columns.end(), column);
  if (found == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(std::distance(columns.begin(), found));
}

CsvTable read_csv(const std::string& text, const std::string& file) {
  return CsvReader(text, file).read();
}

void refuse_unread(const std::vector<UnreadRow>& unread, const std::string& file) {
  if (unread.empty()) return;
  throw TraceError(file, fmt::format("line {}", unread.front().line), unread.front().why);
}

}  // namespace stageline
