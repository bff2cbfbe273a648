#include "tools/launch/python_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>

#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "tools/launch/python_tokens.hpp"

namespace stageline {
namespace {

constexpr int deepest_call = 16;  // functions that call each other
constexpr int most_brackets = 64;

using Names = std::map<std::string, PythonValue, std::less<>>;

bool opens(const PythonToken& token) { return token.is("(") || token.is("[") || token.is("{"); }
bool closes(const PythonToken& token) { return token.is(")") || token.is("]") || token.is("}"); }

std::string source_of(const std::vector<PythonToken>& tokens, std::size_t from, std::size_t to) {
  constexpr std::size_t most = 60;
  std::string text;
  for (std::size_t i = from; i < to && text.size() < most; ++i) {
    text += (text.empty() ? "" : " ") + tokens[i].text;
  }
  return text;
}

std::optional<std::int64_t> whole(const PythonValue& value) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  if (value.kind != PythonKind::number) return std::nullopt;
  const auto number = parse_number<std::int64_t>(value.text);
  if (!number || *number > most || *number < -most) return std::nullopt;
  return number;
}

// One expression, up to a comma, a colon, a closing bracket or the end.
class Expression {
 public:
  using Call = std::optional<PythonValue> (*)(void*, const std::string&);
  Expression(const std::vector<PythonToken>& tokens, std::size_t at, const Names& names, Call call,
             void* caller)
      : tokens_(tokens), at_(at), names_(names), call_(call), caller_(caller) {}

  PythonValue value() {
    const std::size_t from = at_;
    PythonValue value = sum();
    if (at_ < tokens_.size() && !stops()) {
      while (at_ < tokens_.size() && !stops()) skip();
      value = unread(from);
    }
    return value;
  }
  std::size_t end() const { return at_; }

 private:
  bool is(const char* sign) const { return at_ < tokens_.size() && tokens_[at_].is(sign); }
  bool stops() const { return is(",") || is(":") || closes(tokens_[at_]); }
  int line() const { return tokens_[std::min(at_, tokens_.size() - 1)].line; }

  // A token, or all of a bracket.
  void skip() {
    int depth = 0;
    do {
      if (opens(tokens_[at_])) ++depth;
      if (closes(tokens_[at_])) --depth;
      ++at_;
    } while (depth > 0 && at_ < tokens_.size());
  }
  PythonValue unread(std::size_t from) const {
    return {PythonKind::unread, source_of(tokens_, from, at_), {}, tokens_[from].line};
  }

  PythonValue computed(const PythonValue& left, const std::string& sign, const PythonValue& right,
                       std::size_t from) const {
    const auto one = whole(left);
    const auto other = whole(right);
    if (!one || !other || (sign == "//" && *other == 0)) return unread(from);
    const std::int64_t number = sign == "*"   ? *one * *other
                                : sign == "+" ? *one + *other
                                : sign == "-" ? *one - *other
                                              : *one / *other;
    const bool floors = sign != "//" || (*one >= 0 && *other > 0);
    if (!floors) return unread(from);
    return {PythonKind::number, fmt::format("{}", number), {}, left.line};
  }

  PythonValue sum() {
    const std::size_t from = at_;
    PythonValue value = product();
    while (is("+") || is("-")) {
      const std::string sign = tokens_[at_++].text;
      value = computed(value, sign, product(), from);
    }
    return value;
  }
  PythonValue product() {
    const std::size_t from = at_;
    PythonValue value = signed_value();
    while (is("*") || is("//")) {
      const std::string sign = tokens_[at_++].text;
      value = computed(value, sign, signed_value(), from);
    }
    return value;
  }
  PythonValue signed_value() {
    if (!is("-")) return atom();
    ++at_;
    PythonValue value = atom();
    if (value.kind == PythonKind::number) value.text = "-" + value.text;
    return value;
  }

  PythonValue atom() {
    if (at_ >= tokens_.size()) return {};
    const std::size_t from = at_;
    const PythonToken& token = tokens_[at_];
    if (++depth_ > most_brackets) return skipped(from);
    PythonValue value;
    if (token.kind == PythonTokenKind::text && !token.formatted) {
      value = {PythonKind::text, token.text, {}, token.line};
      ++at_;
    } else if (token.kind == PythonTokenKind::number) {
      value = {PythonKind::number, token.text, {}, token.line};
      ++at_;
    } else if (token.kind == PythonTokenKind::name) {
      value = named();
    } else if (token.is("[") || token.is("(")) {
      value = listed();
    } else {
      return skipped(from);
    }
    --depth_;
    const bool goes_on = is(".") || is("(") || is("[");
    return goes_on ? skipped(from) : value;
  }
  PythonValue skipped(std::size_t from) {
    while (at_ < tokens_.size() && !stops()) skip();
    return unread(from);
  }

  // (1) is a value in brackets, (1,) and [1] are lists.
  PythonValue listed() {
    const bool round = is("(");
    PythonValue list{PythonKind::list, "", {}, line()};
    const bool commas = take_items(list);
    if (round && !commas && list.items.size() == 1) return list.items[0].second;
    return list;
  }
  // Up to behind the closing bracket; whether there was a comma.
  bool take_items(PythonValue& into) {
    bool commas = false;
    ++at_;
    while (at_ < tokens_.size() && !closes(tokens_[at_])) {
      std::string keyword;
      if (at_ + 1 < tokens_.size() && tokens_[at_].kind == PythonTokenKind::name &&
          tokens_[at_ + 1].is("=")) {
        keyword = tokens_[at_].text;
        at_ += 2;
      }
      into.items.emplace_back(keyword, value());
      if (is(":")) {
        const std::size_t from = at_;
        while (at_ < tokens_.size() && !is(",") && !closes(tokens_[at_])) skip();
        into.items.back().second = unread(from);
      }
      if (is(",")) {
        commas = true;
        ++at_;
      }
    }
    if (at_ < tokens_.size()) ++at_;
    return commas;
  }

  PythonValue named() {
    const std::size_t from = at_;
    std::string path = tokens_[at_++].text;
    if (path == "True" || path == "False") {
      return {PythonKind::flag, path == "True" ? "true" : "false", {}, tokens_[from].line};
    }
    if (path == "None") return {PythonKind::none, "", {}, tokens_[from].line};
    const auto known = names_.find(path);
    const PythonValue* value = known == names_.end() ? nullptr : &known->second;
    while (is(".") && at_ + 1 < tokens_.size()) {
      const std::string& attribute = tokens_[at_ + 1].text;
      if (value != nullptr) value = value->find(attribute);
      path += "." + attribute;
      at_ += 2;
    }
    if (!is("(")) return value == nullptr ? unread(from) : *value;
    PythonValue call{PythonKind::call, path, {}, tokens_[from].line};
    take_items(call);
    if (known != names_.end()) return unread(from);  // a method of what is known
    if (call.items.empty()) {
      if (auto returned = call_(caller_, path)) return *std::move(returned);
    }
    return call;
  }

  const std::vector<PythonToken>& tokens_;
  std::size_t at_;
  const Names& names_;
  Call call_;
  void* caller_;
  int depth_ = 0;
};

// The index of "=" outside of brackets; 0: none.
std::size_t assignment(const std::vector<PythonToken>& tokens) {
  int depth = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (opens(tokens[i])) ++depth;
    if (closes(tokens[i])) --depth;
    if (depth == 0 && tokens[i].is("=")) return i;
  }
  return 0;
}

bool is_one_of(const std::string& word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

const PythonValue* PythonValue::find(std::string_view keyword) const {
  for (const auto& [name, value] : items) {
    if (name == keyword && kind == PythonKind::call) return &value;
  }
  return nullptr;
}

// Reads the lines of one function in order.
class PythonFunction {
 public:
  PythonFunction(const PythonFile& file, int depth) : file_(file), depth_(depth) {}

  PythonResult run(std::size_t from, std::size_t to) {
    const int indent = from < to ? file_.lines_[from].indent : 0;
    for (std::size_t i = from; i < to && !returned_; ++i) {
      const PythonLine& line = file_.lines_[i];
      if (line.indent <= indent) take(line.tokens);  // what is further in belongs to one before
    }
    return std::move(result_);
  }

 private:
  static std::optional<PythonValue> call(void* self, const std::string& name) {
    return static_cast<PythonFunction*>(self)->called(name);
  }
  std::optional<PythonValue> called(const std::string& name) {
    if (!file_.bodies_.contains(name)) return std::nullopt;
    PythonResult inner = file_.result_at(name, depth_ + 1);
    result_.unread.insert(result_.unread.end(), inner.unread.begin(), inner.unread.end());
    return std::move(inner.value);
  }
  PythonValue read(const std::vector<PythonToken>& tokens, std::size_t from) {
    if (from >= tokens.size()) return {};
    Expression expression(tokens, from, names_, &PythonFunction::call, this);
    PythonValue value = expression.value();
    if (expression.end() == tokens.size()) return value;
    return {PythonKind::unread, source_of(tokens, from, tokens.size()), {}, tokens[from].line};
  }
  void leave(const std::vector<PythonToken>& tokens, bool may_set) {
    result_.unread.push_back({source_of(tokens, 0, tokens.size()), tokens[0].line, may_set});
  }

  void take(const std::vector<PythonToken>& tokens) {
    const PythonToken& first = tokens[0];
    const bool word = first.kind == PythonTokenKind::name;
    if (word && is_one_of(first.text, {"assert", "pass", "from", "import", "def", "class"})) return;
    if (first.is("@")) return;
    if (first.kind == PythonTokenKind::text && tokens.size() == 1) return;
    if (word && is_one_of(first.text, {"if", "for", "while", "with", "try", "match", "elif", "else",
                                       "except", "finally", "del", "raise"})) {
      leave(tokens, true);
      return;
    }
    if (word && first.text == "return") {
      result_.value = read(tokens, 1);
      returned_ = true;
      return;
    }
    const std::size_t equals = assignment(tokens);
    if (equals == 0 || !word) {
      leave(tokens, false);
      return;
    }
    set(tokens, equals);
  }

  void set(const std::vector<PythonToken>& tokens, std::size_t equals) {
    std::vector<std::string> path{tokens[0].text};
    std::size_t at = 1;
    while (at + 1 < equals && tokens[at].is(".")) {
      path.push_back(tokens[at + 1].text);
      at += 2;
    }
    if (at != equals && !tokens[at].is(":")) {
      leave(tokens, true);  // a = b = c, a[0] = …, a, b = …
      return;
    }
    PythonValue value = read(tokens, equals + 1);
    if (path.size() == 1) {
      // Another name for an object that is there: what is set by it is set in both.
      const bool shares = value.kind == PythonKind::call && shares_object(tokens, equals + 1);
      shares ? void(shared_.insert(path[0])) : void(shared_.erase(path[0]));
      names_[path[0]] = std::move(value);
      return;
    }
    const auto known = names_.find(path[0]);
    if (known == names_.end() || known->second.kind != PythonKind::call ||
        shared_.contains(path[0])) {
      leave(tokens, true);
      return;
    }
    PythonValue* into = &known->second;
    for (std::size_t i = 1; i < path.size(); ++i) into = &member(*into, path[i]);
    *into = std::move(value);
  }

  bool shares_object(const std::vector<PythonToken>& tokens, std::size_t from) const {
    for (std::size_t i = from; i < tokens.size(); ++i) {
      if (tokens[i].is("(")) return false;
    }
    return true;
  }
  // Where it is not given, its default, of which nothing is known.
  static PythonValue& member(PythonValue& of, const std::string& name) {
    if (of.kind != PythonKind::call) of = {PythonKind::call, "", {}, of.line};
    for (auto& [keyword, value] : of.items) {
      if (keyword == name) return value;
    }
    of.items.emplace_back(name, PythonValue{});
    return of.items.back().second;
  }

  const PythonFile& file_;
  int depth_;
  Names names_;
  std::set<std::string> shared_;
  bool returned_ = false;
  PythonResult result_;
};

PythonFile::PythonFile(const std::string& text, const std::string& file)
    : file_(file), lines_(python_lines(text, file)) {
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const std::vector<PythonToken>& tokens = lines_[i].tokens;
    const bool plain = lines_[i].indent == 0 && tokens.size() > 3 && tokens[0].text == "def" &&
                       tokens[2].is("(") && tokens[3].is(")") && tokens.back().is(":");
    if (!plain) continue;
    std::size_t end = i + 1;
    while (end < lines_.size() && lines_[end].indent > 0) ++end;
    if (!bodies_.contains(tokens[1].text)) order_.push_back(tokens[1].text);
    bodies_[tokens[1].text] = {i + 1, end};
  }
}

PythonFile::~PythonFile() = default;

std::vector<std::string> PythonFile::functions() const { return order_; }

PythonResult PythonFile::result_of(const std::string& function) const {
  return result_at(function, 0);
}

PythonResult PythonFile::result_at(const std::string& function, int depth) const {
  if (depth > deepest_call) {
    throw TraceError(
        file_, "",
        fmt::format("functions call each other more than {} deep: {}", deepest_call, function));
  }
  const auto body = bodies_.find(function);
  if (body == bodies_.end()) return {};
  return PythonFunction(*this, depth).run(body->second.first, body->second.second);
}

}  // namespace stageline
