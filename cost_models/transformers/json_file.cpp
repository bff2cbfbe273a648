#include "cost_models/transformers/json_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "sim/base/errors.hpp"

namespace stageline {
namespace {

using Json = nlohmann::json;

constexpr int deepest = 64;
constexpr std::size_t longest = std::size_t{16} << 20U;  // bytes

// nlohmann keeps the last of equal keys, and nests as deep as there is memory: what prints or
// copies such a value would leave the stack.
class Limits {
 public:
  Limits(const std::string& file, EqualKeys keys) : file_(file), keys_(keys) {}

  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > deepest) {
      throw TraceError(file_, "",
                       fmt::format("lists and objects are nested more than {} deep", deepest));
    }
    if (event == Json::parse_event_t::object_start) open_.emplace_back();
    if (event == Json::parse_event_t::object_end) open_.pop_back();
    if (event == Json::parse_event_t::key && keys_ == EqualKeys::refused &&
        !open_.back().insert(parsed.get<std::string>()).second) {
      throw TraceError(file_, "", fmt::format("the key {} is there twice", parsed.dump()));
    }
    return true;
  }

 private:
  const std::string& file_;
  EqualKeys keys_;
  std::vector<std::set<std::string>> open_;
};

// `position` counts from 1.
std::string line_and_column(const std::string& text, std::size_t position) {
  const std::string before = text.substr(0, position == 0 ? 0 : position - 1);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  return fmt::format("line {}, column {}", lines + 1, before.size() - (before.rfind('\n') + 1) + 1);
}

}  // namespace

Json json_in_file(const std::string& text, const std::string& file, EqualKeys keys) {
  if (text.size() > longest) {
    throw TraceError(
        file, "", fmt::format("the file has {} bytes; at most {} are read", text.size(), longest));
  }
  try {
    return Json::parse(text, Limits(file, keys));
  } catch (const Json::parse_error& error) {
    throw TraceError(file, line_and_column(text, error.byte), "this is not JSON");
  } catch (const Json::out_of_range&) {
    throw TraceError(file, "", "a number is too large for 64 bits");
  }
}

}  // namespace stageline
