// A run of another framework as the facts of the table of flags, with what they leave out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/launch/arguments.hpp"

namespace stageline {

class RunFacts {
 public:
  /// Throws TraceError where a fact has two values, or one that is not known.
  RunFacts(Framework framework, const LaunchArguments& arguments, const LaunchAdditions& additions);

  Framework framework() const { return framework_; }
  bool has(std::string_view fact) const { return find(fact) != nullptr; }
  /// Whether an `on` or `off` flag is there and says so.
  bool yes(std::string_view fact) const;
  /// As it is written; empty where there is none.
  std::string text(std::string_view fact) const;
  /// In lower case.
  std::string word(std::string_view fact) const;
  /// A whole number from 1; `otherwise` where there is none, or where it is 0 or null. Throws
  /// TraceError for anything else.
  std::int64_t count(std::string_view fact, std::int64_t otherwise) const;
  double number(std::string_view fact, double otherwise) const;
  /// "--num-layers (line 3)"
  std::string place(std::string_view fact) const;
  [[noreturn]] void refuse(std::string_view fact, const std::string& why) const;

  const std::string& file() const { return file_; }
  /// Names of arguments with an effect that is not modelled, and of those that are not known.
  const std::vector<std::string>& left_out() const { return left_out_; }
  const std::vector<std::string>& unknown() const { return unknown_; }
  int without_effect() const { return without_effect_; }
  void leave_out(std::string_view fact) const;

 private:
  struct Fact {
    std::string value;
    std::string name;
    std::string where;
  };
  const Fact* find(std::string_view fact) const;
  void take(const LaunchArgument& argument, bool replaces);
  void pass_by(const LaunchArgument& argument);

  Framework framework_;
  std::string file_;
  std::map<std::string, Fact, std::less<>> facts_;
  mutable std::vector<std::string> left_out_;
  std::vector<std::string> unknown_;
  int without_effect_ = 0;
};

}  // namespace stageline
