// Reads workload texts of SimAI and ASTRA-sim 1.0 as layers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"
#include "traces/simai/workload.hpp"

namespace stageline {
namespace {

using Words = std::vector<std::string_view>;

constexpr std::array<std::string_view, 3> read_kinds{"HYBRID_TRANSFORMER_FWD_IN_BCKWD",
                                                     "HYBRID_TRANSFORMER", "DATA"};
constexpr std::array<std::string_view, 9> other_kinds{"MODEL",
                                                      "MICRO",
                                                      "HYBRID_DATA_MODEL",
                                                      "HYBRID_MODEL_DATA",
                                                      "HYBRID_DLRM",
                                                      "HYBRID_CUSTOMIZED",
                                                      "HYBRID_DLRM_ENHANCED",
                                                      "DISTRIBUTED_INFERENCE",
                                                      "TRANSFORMER"};

// Rows of AICB before the micro-batches, and behind them.
constexpr std::array<std::string_view, 8> step_rows{
    "grad_norm",       "moe_grad_norm1", "moe_grad_norm2",  "grad_gather",
    "grad_param_comm", "layernorm",      "embedding_grads", "grad_param_compute"};
constexpr std::array<std::string_view, 2> loss_rows{"cross_entropy", "optimizer"};  // and a digit

struct KindOfWord {
  std::string_view word;
  CollectiveKind kind;
};
constexpr std::array collective_words{
    KindOfWord{"ALLREDUCE", CollectiveKind::all_reduce},
    KindOfWord{"ALLGATHER", CollectiveKind::all_gather},
    KindOfWord{"REDUCESCATTER", CollectiveKind::reduce_scatter},
    KindOfWord{"ALLTOALL", CollectiveKind::all_to_all},
    KindOfWord{"BROADCAST", CollectiveKind::broadcast},
};

template <class List>
bool is_among(const List& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

Words words_of(std::string_view line) {
  Words words;
  constexpr std::string_view blanks = " \t\r,";
  for (std::size_t at = line.find_first_not_of(blanks); at != std::string_view::npos;
       at = line.find_first_not_of(blanks, at)) {
    const std::size_t end = std::min(line.find_first_of(blanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

struct WorkloadPass {
  std::int64_t time = 0;  // ns
  std::string_view collective;
  std::int64_t bytes = 0;
  friend bool operator==(const WorkloadPass&, const WorkloadPass&) = default;
};
struct WorkloadRow {
  std::string_view name;
  std::array<WorkloadPass, 3> passes;  // forward, input gradient, weight gradient
  friend bool operator==(const WorkloadRow&, const WorkloadRow&) = default;
};
using Rows = std::vector<WorkloadRow>;

bool is_of_step(const WorkloadRow& row) { return is_among(step_rows, row.name); }
bool is_of_loss(const WorkloadRow& row) {
  return std::any_of(loss_rows.begin(), loss_rows.end(), [&](std::string_view start) {
    return row.name.starts_with(start) && row.name.size() == start.size() + 1;
  });
}

class WorkloadReader {
 public:
  WorkloadReader(const std::string& text, const std::string& file) : file_(file) {
    std::string_view rest = text;
    for (std::size_t line = 1; !rest.empty(); ++line) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      Words words = words_of(rest.substr(0, end));
      if (!words.empty()) lines_.emplace_back(line, std::move(words));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }

  Model read() {
    read_header();
    read_rows();
    check_times();
    Model model;
    model.name = file_.substr(file_.find_last_of('/') + 1);
    model.bytes_known = false;
    model.sharding.tensor = degree("model_parallel_NPU_group:");
    model.sharding.expert = degree("ep:");
    add_layers(first_microbatch(), model);
    model.provenance = provenance();
    return model;
  }

 private:
  [[noreturn]] void refuse(std::size_t line, const std::string& what) const {
    throw TraceError(file_, line == 0 ? "" : fmt::format("line {}", line), what);
  }

  void read_header() {
    const Words& header = lines_[0].second;
    if (!is_among(read_kinds, header[0])) {
      refuse(1, fmt::format("workloads of {} are not read; those of {} are", header[0],
                            fmt::join(read_kinds, ", ")));
    }
    if (lines_.size() < 2 || lines_[1].second.size() != 1 || !number(lines_[1].second[0])) {
      refuse(2, "the second line must be the number of rows");
    }
    const std::int64_t count = *number(lines_[1].second[0]);
    if (count < 1 || count != static_cast<std::int64_t>(lines_.size()) - 2) {
      refuse(lines_[1].first,
             fmt::format("it states {} rows, and {} follow", count, lines_.size() - 2));
    }
  }

  static std::optional<std::int64_t> number(std::string_view word) {
    return parse_number<std::int64_t>(word);
  }

  // 1 where the header does not say; the degrees that matter are small.
  int degree(std::string_view key) const {
    const Words& header = lines_[0].second;
    const auto found = std::find(header.begin(), header.end(), key);
    if (found == header.end() || found + 1 == header.end()) return 1;
    constexpr std::int64_t most = 1 << 20;
    const auto value = number(*(found + 1));
    if (!value || *value < 1 || *value > most) {
      refuse(1,
             fmt::format("\"{}\" must be a number from 1 to {}, not {}", key, most, *(found + 1)));
    }
    return static_cast<int>(*value);
  }

  void read_rows() {
    constexpr std::size_t columns = 12;
    for (std::size_t i = 2; i < lines_.size(); ++i) {
      const auto& [line, words] = lines_[i];
      if (words.size() < columns) {
        refuse(line, fmt::format("a row has {} words (name, -1, and time, collective and bytes of "
                                 "forward, input gradient and weight gradient, update), not {}",
                                 columns, words.size()));
      }
      WorkloadRow& row = rows_.emplace_back();
      row.name = words[0];
      for (std::size_t pass = 0; pass < row.passes.size(); ++pass) {
        const std::size_t at = 2 + 3 * pass;
        row.passes[pass] = {size(line, words[at], longest_input.count() / 1000), words[at + 1],
                            size(line, words[at + 2], most_bytes_held.count)};
        if (row.passes[pass].collective != "NONE") collective_of(line, words[at + 1]);
      }
    }
  }

  std::int64_t size(std::size_t line, std::string_view word, std::int64_t most) const {
    const auto value = number(word);
    if (!value || *value < 0 || *value > most) {
      refuse(line,
             fmt::format("times and sizes are whole numbers from 0 to {}, not {}", most, word));
    }
    return *value;
  }

  // Its kind, and the suffix behind: "", "EP", "DP", "DP_EP".
  std::pair<CollectiveKind, std::string_view> collective_of(std::size_t line,
                                                            std::string_view word) const {
    const std::string_view kind = word.substr(0, word.find('_'));
    const auto* const found = std::find_if(collective_words.begin(), collective_words.end(),
                                           [&](const KindOfWord& one) { return one.word == kind; });
    const std::string_view suffix = kind == word ? "" : word.substr(kind.size() + 1);
    if (found == collective_words.end() ||
        !is_among(std::array<std::string_view, 5>{"", "EP", "DP", "DP_EP", "TP"}, suffix)) {
      refuse(line,
             fmt::format("{} is no collective that is known here (NONE, ALLREDUCE, ALLGATHER, "
                         "REDUCESCATTER, ALLTOALL, BROADCAST, with _EP, _DP or _DP_EP)",
                         word));
    }
    return {found->kind, suffix};
  }

  // AICB writes 1 ns everywhere where it was run without measured times.
  void check_times() const {
    for (const WorkloadRow& row : rows_) {
      for (const WorkloadPass& pass : row.passes) {
        if (pass.time > 1) return;
      }
    }
    refuse(0,
           "no row has a time of compute (all are 0 or 1 ns): AICB writes them with --aiob, from "
           "measured kernels");
  }

  // Rows between those of the step, in `ga` equal parts, of which the first.
  Rows first_microbatch() {
    const auto begin = std::find_if_not(rows_.begin(), rows_.end(), is_of_step);
    const auto end =
        std::find_if_not(rows_.rbegin(), std::make_reverse_iterator(begin), is_of_loss);
    Rows body(begin, end.base());
    left_out_ = rows_.size() - body.size();
    microbatches_ = as_size(degree("ga:"));
    const std::size_t length = body.size() / microbatches_;
    if (body.empty() || length * microbatches_ != body.size()) {
      refuse(0, fmt::format("{} rows are those of micro-batches, and the header has ga: {}, which "
                            "does not divide them",
                            body.size(), microbatches_));
    }
    for (std::size_t i = length; i < body.size(); ++i) {
      if (body[i] == body[i % length]) continue;
      refuse(lines_[i + 2 + as_size(begin - rows_.begin())].first,
             fmt::format("micro-batch {} differs from the first in its row \"{}\"; micro-batches "
                         "of one kind are read",
                         i / length, body[i].name));
    }
    body.resize(length);
    return body;
  }

  void add_layers(const Rows& rows, Model& model) {
    for (const WorkloadRow& row : rows) {
      Layer& layer = model.layers.emplace_back();
      layer.name = fmt::format("{}.{}", row.name, model.layers.size() - 1);
      layer.kind = row.name;
      layer.forward = Time{row.passes[0].time * 1000};
      layer.input_grad = Time{row.passes[1].time * 1000};
      layer.weight_grad = Time{row.passes[2].time * 1000};
      layer.backward = layer.input_grad + layer.weight_grad;
      for (std::size_t pass = 0; pass < row.passes.size(); ++pass) {
        add_collective(row.passes[pass], pass, layer);
      }
    }
  }

  void add_collective(const WorkloadPass& pass, std::size_t number, Layer& layer) {
    if (pass.collective == "NONE" || pass.bytes == 0) return;
    const auto [kind, suffix] = collective_of(0, pass.collective);
    if (number == 2 || suffix.starts_with("DP")) {
      gradients_ += pass.bytes;
      return;
    }
    LayerCollective collective;
    collective.kind = kind;
    collective.group = suffix == "EP" ? Dimension::expert : Dimension::tensor;
    collective.bytes = Bytes{pass.bytes};
    (number == 0 ? collective.forward : collective.input_grad) = 1;
    layer.collectives.push_back(collective);
  }

  Provenance provenance() const {
    Provenance provenance;
    provenance.origin = Origin::estimated;
    provenance.method =
        "Times and collectives of each row for one micro-batch of one rank, as the workload says "
        "them.";
    provenance.source = fmt::format("a workload of SimAI or ASTRA-sim, {}", file_);
    provenance.notes.emplace_back(
        "times are read as nanoseconds (cycles of 1 GHz); the backward is divided into input and "
        "weight gradient as the file divides it");
    if (microbatches_ > 1) {
      provenance.notes.push_back(fmt::format(
          "the file has {} equal micro-batches, of which the first is read: ask for as many",
          microbatches_));
    }
    if (left_out_ > 0) {
      provenance.notes.push_back(
          fmt::format("{} rows before and behind the micro-batches (norms of gradients, their "
                      "reduction, loss, optimizer) are left out",
                      left_out_));
    }
    if (gradients_ > 0) {
      provenance.notes.push_back(fmt::format(
          "data-parallel collectives of {} a micro-batch are left out", print(Bytes{gradients_})));
    }
    if (const int stages = degree("pp:"); stages > 1) {
      provenance.notes.push_back(fmt::format(
          "the file was made for pp {}: its rows are those of a stage, or of all, as its maker "
          "means them",
          stages));
    }
    return provenance;
  }

  const std::string& file_;
  std::vector<std::pair<std::size_t, Words>> lines_;  // number, words
  Rows rows_;
  std::size_t microbatches_ = 1;
  std::size_t left_out_ = 0;
  std::int64_t gradients_ = 0;
};

}  // namespace

bool is_workload(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  const std::size_t end = std::min(text.find_first_of(" \t\r\n", begin), text.size());
  const std::string_view word = text.substr(begin, end - begin);
  return is_among(read_kinds, word) || is_among(other_kinds, word);
}

Model read_workload(const std::string& text, const std::string& file) {
  return WorkloadReader(text, file).read();
}

}  // namespace stageline
