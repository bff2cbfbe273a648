// What the names of ranges mean: the rules of a mapping file, and presets for known frameworks.
// Format of the file: traces/README.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stageline {

/// What a range does. `ignored`: nothing of the pipeline. `interleaved`: it encloses a schedule
/// whose inner ranges name neither their chunk nor their micro-batch, which cannot be read.
/// `layer`: the forward of a layer, where a profile of one device is divided into layers.
enum class RangeMeaning : std::uint8_t {
  forward,
  backward,
  input_grad,
  weight_grad,
  recompute,
  optimizer,
  send_forward,
  receive_forward,
  send_backward,
  receive_backward,
  ignored,
  interleaved,
  layer,
};

/// The meaning of one name. `stage` and `microbatch` where the name tells them, as texts.
struct RangeName {
  std::vector<RangeMeaning> meanings;  // several: one range that does several things, in order
  std::string stage;
  std::string microbatch;
};

struct NamePattern;  // a regular expression

struct NameRule {
  std::shared_ptr<const NamePattern> pattern;
  std::vector<RangeMeaning> meanings;
  std::size_t stage_group = 0;  // number of the capturing group; 0: none
  std::size_t microbatch_group = 0;
};

/// Rules in order; the first whose pattern is found in a name decides.
class RangeNames {
 public:
  RangeNames(std::string title, std::vector<NameRule> rules)
      : title_(std::move(title)), rules_(std::move(rules)) {}

  /// The preset's name, or the mapping file.
  const std::string& title() const { return title_; }
  const std::vector<NameRule>& rules() const { return rules_; }

  /// Empty where no rule matches, and for names of more than 1000 bytes.
  std::optional<RangeName> find(std::string_view name) const;

 private:
  std::string title_;
  std::vector<NameRule> rules_;
};

/// The pattern of an ECMAScript regular expression in which groups may have the names `stage` and
/// `microbatch`: (?<stage>\d+), or as Python spells it (?P<stage>\d+). It has no back-references:
/// the time for a name is polynomial. Throws UsageError with one sentence where it is none.
NameRule name_rule(std::string_view pattern, std::vector<RangeMeaning> meanings);

/// "forward", "send_forward", ...: the words of a mapping file. Empty for another word.
std::optional<RangeMeaning> range_meaning(std::string_view word);
std::vector<std::string> range_meaning_words();

/// Names of the presets: "torch", "megatron", "deepspeed".
std::vector<std::string> name_presets();

/// Throws UsageError where there is no such preset.
const RangeNames& name_preset(std::string_view preset);

/// A mapping file. Throws TraceError: line and column where it is not JSON, else the JSON pointer.
RangeNames read_range_names(const std::string& text, const std::string& file);

}  // namespace stageline
