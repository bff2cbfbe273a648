// Reads the program text. Grammar: traces/README.md; writing it: sim/text/print.cpp.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/names.hpp"
#include "sim/base/numbers.hpp"
#include "sim/program.hpp"
#include "sim/text/visible.hpp"
#include "sim/text/words.hpp"

namespace stageline {
namespace {

// A stage line, kept until the device names, which come with the lists, are known.
struct StageLine {
  int stage = 0;
  TextPlace place;
  std::vector<Word> words;
};

TextPlace place_of(const Word& word) { return {word.line, word.column}; }

class Parser {
 public:
  explicit Parser(TextPlaces* places) : places_(places) {}

  Program parse(std::string_view text) {
    const std::vector<Line> lines = lines_of(text);
    for (const Line& line : lines) {
      if (!is_utf8(line.text)) refuse(line.number, 1, "this is not in UTF-8; save the file so");
    }
    std::size_t i = 0;
    while (i < lines.size() && words_of(lines[i], 0).empty()) ++i;
    read_first_line(i < lines.size() ? lines[i] : Line{"", 1});
    for (++i; i < lines.size(); ++i) read_line(lines[i]);
    return finish(static_cast<int>(lines.size()));
  }

 private:
  void read_first_line(const Line& line) {
    const std::vector<Word> words = words_of(line, 0);
    if (words.size() == 2 && words[0].text == "stageline-program" && words[1].text == "1") return;
    refuse(line.number, 1, "a program begins with the line \"stageline-program 1\"");
  }

  void read_line(const Line& line) {
    const std::vector<Word> words = words_of(line, 0);
    if (words.empty()) return;
    const std::size_t colon = line.text.find(':');
    if (colon == std::string_view::npos) {
      if (program_.devices.empty()) {
        refuse(words[0], fmt::format("\"{}\" is neither a \"key: "
                                     "value\" nor belongs to a device's list",
                                     words[0].text));
      }
      return read_ops(words);
    }
    const std::vector<Word> key = words_of({line.text.substr(0, colon), line.number}, 0);
    const std::vector<Word> values = words_of(line, colon + 1);
    if (key.size() == 2 && key[0].text == "stage") {
      stages_.push_back(
          {whole_number(key[1], "a stage", 0, max_stages - 1), place_of(key[0]), values});
      if (values.empty()) refuse(key[0], "a stage line names the stage's device");
      return;
    }
    if (key.size() != 1) refuse(line.number, 1, "expected \"key: value\" or \"device: ops\"");
    read_key(key[0], values, line, colon);
  }

  void read_key(const Word& key, const std::vector<Word>& values, const Line& line,
                std::size_t colon) {
    const auto once = [&] {
      if (!seen_.emplace(std::string(key.text), true).second) {
        refuse(key, fmt::format("\"{}:\" appears a second time", key.text));
      }
    };
    const auto one = [&]() -> const Word& {
      once();
      if (values.size() != 1) {
        refuse(key, fmt::format("\"{}:\" takes one value (there are {})", key.text, values.size()));
      }
      return values[0];
    };
    if (key.text == "schedule") {
      once();
      std::string_view rest = line.text.substr(colon + 1);
      const std::size_t first = rest.find_first_not_of(" \t\r");
      rest = first == std::string_view::npos ? "" : rest.substr(first);
      program_.schedule = std::string(rest.substr(0, rest.find_last_not_of(" \t\r") + 1));
    } else if (key.text == "microbatches") {
      program_.microbatches = whole_number(one(), "microbatches", 1, 1 << 26);
    } else if (key.text == "steps") {
      program_.steps = whole_number(one(), "steps", 1, 1 << 26);
    } else if (key.text == "weights") {
      read_weights(one());
    } else if (key.text == "correction") {
      program_.settings.correction = std::string(one().text);
    } else if (key.text == "independent_w") {
      once();
      independent_ = values;
    } else if (key.text == "delays") {
      once();
      delays_ = values;
    } else if (key.text == "windows") {
      once();
      windows_ = values;
    } else if (key.text == "sequence_chunks") {
      program_.settings.sequence_chunks = whole_number(one(), "sequence_chunks", 1, 1 << 20);
    } else if (key.text == "costs") {
      once();
      for (const Word& word : values) program_.settings.costs.push_back(factor(word));
    } else if (key.text == "slices") {
      once();
      for (const Word& word : values) program_.settings.slices.push_back(tokens(word));
    } else if (key.text == "lengths") {
      once();
      for (const Word& word : values) program_.settings.lengths.push_back(documents(word));
    } else if (key.text == "data_ranks") {
      program_.settings.data_ranks = whole_number(one(), "data_ranks", 1, 1 << 20);
    } else if (key.text == "clock") {
      program_.settings.clock = named(one(), all_clocks);
    } else if (key.text == "copies") {
      program_.settings.copies = named(one(), all_copies);
    } else if (key.text == "recompute") {
      program_.settings.recompute = named(one(), all_recompute_starts);
    } else if (key.text == "messages") {
      program_.settings.messages = named(one(), all_messages);
    } else if (key.text == "weights_transfer") {
      const Word& value = one();
      if (value.text != "on" && value.text != "off") {
        refuse(value, fmt::format("weights_transfer is on or off (not \"{}\")", value.text));
      }
      program_.settings.weights_transfer = value.text == "on";
    } else if (key.text == "edges") {
      once();
      edges_ = values;
      has_edges_ = true;
    } else {
      once();
      check_device(key, values);
      program_.devices.emplace_back(key.text);
      program_.ops.emplace_back();
      if (places_ != nullptr) {
        places_->device.push_back(place_of(key));
        places_->op.emplace_back();
      }
      read_ops(values);
    }
  }

  // A misspelt setting stands where a device and its ops may; only those are ops.
  void check_device(const Word& key, const std::vector<Word>& values) const {
    if (values.empty() || values[0].text.front() == '(' || parse_op(values[0].text)) return;
    for (const StageLine& line : stages_) {
      for (const Word& word : line.words) {
        if (word.text.find(key.text) != std::string_view::npos) return;
      }
    }
    const std::string hint = did_you_mean(
        std::string(key.text),
        {"schedule", "microbatches", "steps", "weights", "correction", "independent_w", "delays",
         "windows", "sequence_chunks", "costs", "slices", "lengths", "data_ranks", "clock",
         "copies", "recompute", "messages", "weights_transfer", "edges"});
    if (stages_.empty() && hint.empty()) return;
    refuse(key,
           fmt::format("\"{}\" is neither a setting nor a device of a stage{}", key.text, hint));
  }

  void read_weights(const Word& word) {
    if (const auto rule = find_named(all_weight_rules, word.text)) {
      program_.settings.weights = *rule;
      return;
    }
    const std::vector<std::string> known = names_of(all_weight_rules);
    refuse(word, fmt::format("weights are one of {} (not \"{}\"{})", fmt::join(known, ", "),
                             word.text, did_you_mean(std::string(word.text), known)));
  }

  template <class Enum, std::size_t n>
  static Enum named(const Word& word, const std::array<Enum, n>& all) {
    if (const auto value = find_named(all, word.text)) return *value;
    refuse(word, fmt::format("\"{}\" is not one of {}", word.text, fmt::join(names_of(all), ", ")));
  }

  // One number per stage; a dash is `none`. Empty where there is no such line.
  std::vector<int> by_stage(const std::vector<Word>& words, std::string_view what, int none,
                            int least) const {
    std::vector<int> values;
    for (const Word& word : words) {
      values.push_back(word.text == "-" ? none : whole_number(word, what, least, 1 << 26));
    }
    if (!values.empty() && static_cast<int>(values.size()) != program_.stages()) {
      refuse(words[0], fmt::format("there are {} stages, but {} numbers (a dash for none)",
                                   program_.stages(), values.size()));
    }
    return values;
  }

  Op read_op(const Word& word) {
    const std::optional<Op> op = parse_op(word.text);
    if (!op) {
      refuse(word, fmt::format("\"{}\" is not an op; write <stage><kind><micro-batch>[.part] with "
                               "kind F, I, W, B, R, U, SEND_F, RECV_F, SEND_B, RECV_B, OFFLOAD, "
                               "PREFETCH, SEND_STASH, RECV_STASH, SEND_WEIGHTS, RECV_WEIGHTS or "
                               "REDUCE_GRAD, such as 0F3",
                               word.text));
    }
    return *op;
  }

  void read_ops(const std::vector<Word>& words) {
    std::vector<Op>& list = program_.ops.back();
    for (const Word& word : words) {
      if (word.text.front() != '(') {
        list.push_back(read_op(word));
        stands(word);
        continue;
      }
      const std::size_t close = word.text.find(')');
      if (close == std::string_view::npos || word.text.substr(close + 1) != overlap_mark) {
        refuse(word, "an overlapped pair is written (7F3;0B2)OVERLAP_F_B, without blanks");
      }
      const std::vector<Word> both =
          split({word.text.substr(1, close - 1), word.line, word.column + 1}, ';');
      if (both.size() != 2) refuse(word, "an overlapped pair has two ops");
      Op first = read_op(both[0]);
      const Op second = read_op(both[1]);
      for (const Op op : {first, second}) {
        if (lane_of(op.kind) != LaneKind::compute || op.kind == OpKind::update) {
          refuse(word,
                 fmt::format("{} cannot be overlapped; only F, I, W, B and R can", print(op)));
        }
      }
      first.overlapped = 1;
      list.push_back(first);
      list.push_back(second);
      for (const Word& one : both) stands(one);
    }
  }

  void stands(const Word& word) {
    if (places_ != nullptr) places_->op.back().push_back(place_of(word));
  }

  int device_named(const Word& word) {
    const auto found = std::find(program_.devices.begin(), program_.devices.end(), word.text);
    if (found == program_.devices.end()) {
      refuse(word, fmt::format("there is no device \"{}\"{}; give it a list, "
                               "even an empty one (\"{}:\")",
                               word.text, did_you_mean(std::string(word.text), program_.devices),
                               word.text));
    }
    return static_cast<int>(found - program_.devices.begin());
  }

  std::vector<int> devices_named(const Word& word) {
    std::vector<int> devices;
    for (const Word& part : split(word, '+')) devices.push_back(device_named(part));
    return devices;
  }

  void place_stage(const StageLine& line) {
    const auto stage = as_size(line.stage);
    if (stage >= program_.placement.stage.size()) program_.placement.stage.resize(stage + 1);
    StagePlace& place = program_.placement.stage[stage];
    if (!place.replicas.empty()) {
      refuse(line.words[0], fmt::format("stage {} is placed a second time", stage));
    }
    if (places_ != nullptr) {
      places_->stage.resize(program_.placement.stage.size());
      places_->stage[stage] = line.place;
    }
    const auto forward_on = [&](const Word& all, const Word& devices) {
      if (!place.replicas.empty()) {
        refuse(all, fmt::format("the forward of stage {} is placed a second time; replicas are "
                                "written gpu0+gpu1, split roles F=gpu0 I=gpu1 W=gpu1",
                                stage));
      }
      place.replicas = devices_named(devices);
    };
    for (const Word& word : line.words) {
      const std::size_t equals = word.text.find('=');
      if (equals == std::string_view::npos) {
        forward_on(word, word);
        continue;
      }
      const std::string_view role = word.text.substr(0, equals);
      const Word value{word.text.substr(equals + 1), word.line,
                       word.column + static_cast<int>(equals) + 1};
      if (role == "F") {
        forward_on(word, value);
      } else if (role == "I") {
        place.input_grad = devices_named(value);
      } else if (role == "W") {
        place.weight_grad = devices_named(value);
      } else if (role == "share") {
        read_shares(value, place);
      } else if (role == "stash") {
        place.stash_homes = devices_named(value);
      } else {
        refuse(word, fmt::format("\"{}\" is not a role; a stage has F=, I=, W=, share= and stash=",
                                 role));
      }
    }
    if (place.replicas.empty()) refuse(line.words[0], "the stage's forward has no device");
  }

  static double factor(const Word& word) {
    const double factor = parse_number<double>(word.text).value_or(-1);
    if (factor >= 0 && std::isfinite(factor)) return factor;
    refuse(word, fmt::format("costs are numbers of at least 0, how many times the costs of a "
                             "micro-batch each one takes (not \"{}\")",
                             word.text));
  }

  static std::int64_t tokens(const Word& word) {
    return whole_number(word, "tokens of a sequence", 1, 1 << 30);
  }

  static Documents documents(const Word& word) {
    Documents all;
    for (const Word& part : split(word, '+')) all.push_back(tokens(part));
    return all;
  }

  void read_shares(const Word& value, StagePlace& place) {
    for (const Word& part : split(value, '+')) {
      const double share = parse_number<double>(part.text).value_or(0);
      if (!(share > 0 && share <= 1)) {
        refuse(part,
               fmt::format("a share is a number above 0 and at most 1 (not \"{}\")", part.text));
      }
      place.share.push_back(share);
    }
  }

  Program finish(int lines) {
    if (program_.microbatches == 0) refuse(lines, 1, "the line \"microbatches: N\" is missing");
    if (static_cast<std::int64_t>(program_.microbatches) * program_.steps > (1 << 26)) {
      refuse(lines, 1,
             fmt::format("{} micro-batches × {} steps are more than 2^26", program_.microbatches,
                         program_.steps));
    }
    if (stages_.empty()) refuse(lines, 1, "no stage is placed (\"stage 0: gpu0\")");
    for (const StageLine& line : stages_) place_stage(line);
    for (std::size_t s = 0; s < program_.placement.stage.size(); ++s) {
      if (program_.placement.stage[s].replicas.empty()) {
        refuse(lines, 1,
               fmt::format("stage {} is not placed, but stage {} is", s,
                           program_.placement.stage.size() - 1));
      }
    }
    program_.independent_w.assign(program_.placement.stage.size(), false);
    for (const Word& word : independent_) {
      program_.independent_w[static_cast<std::size_t>(
          whole_number(word, "a stage", 0, program_.stages() - 1))] = true;
    }
    program_.settings.delay = by_stage(delays_, "a delay", no_delay, 0);
    program_.settings.window = by_stage(windows_, "a window", no_window, 1);
    program_.edges = chain_edges(program_.stages());
    if (has_edges_) read_edges();
    return std::move(program_);
  }

  void read_edges() {
    program_.edges.clear();
    for (const Word& word : edges_) {
      const std::vector<Word> ends = split(word, '>');
      if (ends.size() != 2) refuse(word, "an edge is written 0>1");
      const int from = whole_number(ends[0], "a stage", 0, program_.stages() - 1);
      const int to = whole_number(ends[1], "a stage", 0, program_.stages() - 1);
      if (from >= to) refuse(word, "a stage feeds later stages only");
      program_.edges.push_back({static_cast<std::uint16_t>(from), static_cast<std::uint16_t>(to)});
    }
    std::sort(program_.edges.begin(), program_.edges.end());
    if (std::adjacent_find(program_.edges.begin(), program_.edges.end()) != program_.edges.end()) {
      refuse(edges_[0], "an edge appears twice");
    }
  }

  TextPlaces* places_;  // null unless requested
  Program program_;
  std::vector<StageLine> stages_;
  std::vector<Word> independent_;
  std::vector<Word> delays_;
  std::vector<Word> windows_;
  std::vector<Word> edges_;
  bool has_edges_ = false;
  std::map<std::string, bool> seen_;
};

}  // namespace

Program parse_program(std::string_view text) { return Parser(nullptr).parse(text); }

Program parse_program(std::string_view text, TextPlaces& places) {
  places = {};
  return Parser(&places).parse(text);
}

}  // namespace stageline
