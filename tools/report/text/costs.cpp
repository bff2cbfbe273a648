// Writes cost tables of one trace or two.
#include "tools/report/text/costs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "cost_models/tied_weights.hpp"
#include "sim/base/index.hpp"
#include "sim/text/visible.hpp"
#include "tools/base/provenance.hpp"
#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/report/text/cost_bars.hpp"

namespace stageline::report {
namespace {

constexpr int bar_columns = 20;
constexpr int half_width = 12;
constexpr std::size_t most_rows = 64;  // up to this many are all shown
constexpr int rows_of_more = 32;       // shown if there are more

std::string counted(std::size_t number, const std::string& noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

std::string plain_percent(std::optional<double> fraction) {
  return fraction ? percent(*fraction) : "–";
}

std::string signed_percent(std::optional<double> fraction) {
  std::string text = plain_percent(fraction ? std::optional(std::abs(*fraction)) : fraction);
  if (!fraction || text == "0.0 %") return text;
  return (*fraction < 0 ? "−" : "+") + text;
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t most = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  return names.size() > most ? text + fmt::format(" and {} more", names.size() - most) : text;
}

// The rows that are shown one by one, and those summed up as "N others".
struct Shown {
  std::vector<std::size_t> rows;
  std::vector<std::size_t> rest;
};

Shown shown(const std::vector<Time>& times, const CostsOptions& options) {
  const int all = static_cast<int>(times.size());
  Shown split;
  split.rows = largest(times, options.top > 0             ? options.top
                              : times.size() <= most_rows ? all
                                                          : rows_of_more);
  std::vector<bool> taken(times.size(), false);
  for (const std::size_t i : split.rows) taken[i] = true;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (!taken[i]) split.rest.push_back(i);
  }
  return split;
}

template <class Row>
std::vector<Row> picked(const std::vector<Row>& rows, const std::vector<std::size_t>& which) {
  std::vector<Row> some;
  for (const std::size_t i : which) some.push_back(rows[i]);
  return some;
}

std::string others(std::size_t rows) {
  return fmt::format("{} other{}", rows, rows == 1 ? "" : "s");
}

// Notes that rows were left out although no option asked for it.
void add_cut_note(std::vector<std::string>& notes, const CostsOptions& options, std::size_t all) {
  if (options.top > 0 || options.by == CostsBy::kind || all <= most_rows) return;
  notes.push_back(fmt::format(
      "of {} layers the {} most expensive are shown; --top {} shows all, --by kind groups them",
      all, rows_of_more, all));
}

std::string notes_text(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) {
    text += fmt::format("{}note: {}\n", text.empty() ? "\n" : "", note);
  }
  return text;
}

// "resnet50 · 56 layers · micro-batches of 32 images"
std::string what(const Model& model) {
  const std::string text =
      fmt::format("{} · {}", visible(model.name), counted(model.layers.size(), "layer"));
  if (model.batch == 0) return text + " · batch size unknown";
  const std::string sample = model.sample.empty() ? "sample" : visible(model.sample);
  return text + " · micro-batches of " + counted(as_size(model.batch), sample);
}

// Origin, device, settings, date and software in one line; the method in another.
std::string how(const Provenance& provenance, const std::string& indent) {
  std::string text = indent + origin_of(provenance);
  if (!provenance.software.empty()) text += " · " + provenance.software;
  const std::string method = method_of(provenance);
  return text + "\n" + (method.empty() ? "" : indent + method + "\n");
}

std::string heading_of(const Model& model, const std::vector<int>& sizes, const CostRow& total) {
  return fmt::format(
      "{}{}\n{}{} on one device: F {} + B {} + update {}\n\n", what(model),
      sizes.size() > 1 ? fmt::format(" (of {} in the trace)", fmt::join(sizes, ", ")) : "",
      how(model.provenance, ""), print(total.step()), print(total.forward), print(total.backward),
      print(total.update));
}

// The table with the columns that fit, and a line on the others.
std::string fitted_text(const std::vector<Column>& columns,
                        const std::vector<std::vector<std::string>>& cells,
                        const CostsOptions& options) {
  const FittedTable fitted = fitted_table(columns, cells, options.width);
  if (fitted.left_out.empty()) return fitted.text;
  return fitted.text +
         wrapped(fmt::format("… without {}: COLUMNS=0\n", fmt::join(fitted.left_out, ", ")),
                 options.width);
}

std::string costs_table(const std::vector<CostRow>& rows, const CostRow& total,
                        const CostsOptions& options) {
  const bool by_kind = options.by == CostsBy::kind;
  std::vector<Time> steps;
  Time longest{};
  bool any_spread = false;
  for (const CostRow& row : rows) {
    steps.push_back(row.step());
    longest = std::max(longest, row.step());
    any_spread = any_spread || row.spread > Time{};
  }
  std::vector<Column> columns{{by_kind ? "kind" : "layer", true}};
  columns.push_back(by_kind ? Column{"layers", false, 1} : Column{"kind", true, 1});
  columns.push_back({"share"});
  columns.push_back({"", true});
  columns.insert(columns.end(),
                 {{"F"}, {"I", false, 3}, {"W", false, 2}, {"B"}, {"update", false, 7}});
  if (any_spread) columns.push_back({"spread", false, 6});
  columns.insert(columns.end(), {{"output", false, 8}, {"stash", false, 5}, {"weights", false, 4}});

  std::vector<std::vector<std::string>> cells;
  const auto line = [&](const CostRow& row, const std::string& bar) {
    std::vector<std::string> cell{row.name, by_kind ? fmt::format("{}", row.layers) : row.kind,
                                  plain_percent(ratio(row.step(), total.step())), bar};
    for (const Time time :
         {row.forward, row.input_grad, row.weight_grad, row.backward, row.update}) {
      cell.push_back(print(time));
    }
    if (any_spread) {
      cell.push_back(row.spread > Time{} ? plain_percent(ratio(row.spread, row.step())) : "");
    }
    for (const Bytes bytes : {row.output, row.stash, row.weights}) {
      cell.push_back(bytes_text(bytes, row.bytes_known));
    }
    cells.push_back(std::move(cell));
  };
  const Shown split = shown(steps, options);
  for (const std::size_t i : split.rows) line(rows[i], cost_bar(rows[i], longest, bar_columns));
  if (!split.rest.empty()) line(sum_of(picked(rows, split.rest), others(split.rest.size())), "");
  line(total, "");
  std::string text = fitted_text(columns, cells, options);
  if (longest == Time{}) return text;
  return text + fmt::format("{} (full bar: {} of the total)\n", cost_bar_legend(),
                            plain_percent(ratio(longest, total.step())));
}

std::string check_text(const CostCheck& check) {
  return fmt::format(
      "→ check: the layers add up to {}, the whole model run plainly takes {}: {}, {} the noise of "
      "{}\n  (F {}, B {}, update {}; {}; half the interquartile range of the whole: {})\n",
      print(check.layers), print(check.whole), signed_percent(check.difference),
      check.within_noise ? "within" : "more than", plain_percent(check.noise),
      signed_percent(check.forward), signed_percent(check.backward), signed_percent(check.update),
      counted(as_size(check.samples), "sample"), plain_percent(check.spread));
}

std::string against_table(const CostsAgainst& against, const CostsOptions& options) {
  const bool by_kind = options.by == CostsBy::kind;
  const std::vector<CostPair> pairs = cost_pairs(against, options.by);
  std::vector<Time> times;
  for (const CostPair& pair : pairs) times.push_back(pair.longer());
  const Shown split = shown(times, options);
  const double widest = widest_ratio(picked(pairs, split.rows));
  std::vector<Column> columns{{by_kind ? "kind" : "layer", true}};
  columns.push_back(by_kind ? Column{"layers", false, 1} : Column{"kind", true, 1});
  for (const char* const title : {"TRACE", "TRACE2", "ratio"}) columns.push_back({title});
  columns.push_back({ratio_scale(widest, half_width), true});
  columns.insert(columns.end(),
                 {{"F", false, 2}, {"I", false, 5}, {"W", false, 4}, {"B", false, 3}});
  std::vector<std::vector<std::string>> cells;
  const auto line = [&](const CostPair& pair) {
    const auto& [first, second] = pair;
    cells.push_back(
        {first.name, by_kind ? fmt::format("{}", first.layers) : first.kind, print(first.step()),
         print(second.step()), ratio_text(first.step(), second.step()),
         ratio_bar(first.step(), second.step(), widest, half_width),
         ratio_text(first.forward, second.forward), ratio_text(first.input_grad, second.input_grad),
         ratio_text(first.weight_grad, second.weight_grad),
         ratio_text(first.backward, second.backward)});
  };
  for (const std::size_t i : split.rows) line(pairs[i]);
  if (!split.rest.empty()) line(sum_of(picked(pairs, split.rest), others(split.rest.size())));
  line(against.total);
  return fitted_text(columns, cells, options);
}

std::string differ_text(const CostsAgainst& against) {
  const auto& [first, second] = against.total;
  const DifferMost most = differ_most(against);
  std::string ratios;
  for (const CostPair& pair : most.by_ratio) {
    ratios += fmt::format("{}{} ({})", ratios.empty() ? "" : ", ", pair.first.name,
                          ratio_text(pair.first.step(), pair.second.step()));
  }
  std::string times;
  for (const CostPair& pair : most.by_time) {
    const Time more = pair.first.step() - pair.second.step();
    times += fmt::format("{}{} ({}{})", times.empty() ? "" : ", ", pair.first.name,
                         more < Time{} ? "−" : "+", print(std::chrono::abs(more)));
  }
  if (times.empty()) return "→ no layer differs\n";
  const std::string all = ratio_text(first.step(), second.step());
  if (!ratios.empty()) {
    ratios = fmt::format(
        "furthest from the {} of the total, of the layers over 1 % of the time: {}", all, ratios);
  } else {
    ratios =
        fmt::format("all layers over 1 % of the time are within 1 % of the {} of the total", all);
  }
  return fmt::format("→ {}; most by time: {}\n", ratios, times);
}

std::vector<std::string> unmatched_notes(const CostsAgainst& against) {
  std::vector<std::string> notes;
  const auto add = [&](const std::vector<std::string>& names, const char* trace) {
    if (names.empty()) return;
    notes.push_back(fmt::format("only in {}, and left out: {} ({})", trace, listed(names),
                                counted(names.size(), "layer")));
  };
  add(against.only_first, "TRACE");
  add(against.only_second, "TRACE2");
  if (!against.updates) {
    notes.push_back("only one of the traces knows what updates take, so they are left out");
  }
  return notes;
}

}  // namespace

std::string costs_report(const Model& model, const std::vector<int>& sizes,
                         const CostsOptions& options) {
  const std::vector<CostRow> rows = cost_rows(model, options.by);
  const CostRow total = sum_of(rows, "total");
  std::string text = options.quiet ? "" : heading_of(model, sizes, total);
  text += costs_table(rows, total, options);
  if (const auto split = split_over_fused(total)) {
    text += fmt::format("→ split over fused backward: (I + W) / B = {:.3f} ({} / {})\n", *split,
                        print(total.input_grad + total.weight_grad), print(total.backward));
  }
  if (const auto check = check_of(model)) text += check_text(*check);
  std::string drawn = options.colour ? coloured_bars(text) : text;
  if (options.quiet) return drawn;
  std::vector<std::string> notes = model.provenance.notes;
  if (has_tied_weights(model)) {
    notes.push_back(fmt::format(
        "weights that are those of {} are counted and updated there alone, as on one device",
        model.layers.front().name));
  }
  add_cut_note(notes, options, rows.size());
  return drawn + notes_text(notes);
}

std::string against_report(const Model& first, const Model& second,
                           const std::vector<std::string>& adjustments,
                           const CostsOptions& options) {
  const CostsAgainst against = costs_against(first, second);
  const Time time = against.total.first.step();
  const Time other = against.total.second.step();
  std::string text;
  if (!options.quiet) {
    const std::string indent(8, ' ');
    text = fmt::format("TRACE   {}\n{}TRACE2  {}\n{}", what(first), how(first.provenance, indent),
                       what(second), how(second.provenance, indent));
  }
  text += fmt::format("→ TRACE takes {} the time of TRACE2: {} / {}, {} of {}\n\n",
                      ratio_text(time, other), print(time), print(other),
                      against.updates ? "F + B + update" : "F + B",
                      counted(against.layers.size(), "layer"));
  text += against_table(against, options) + differ_text(against);
  if (options.quiet) return text;
  std::vector<std::string> notes = unmatched_notes(against);
  notes.insert(notes.end(), adjustments.begin(), adjustments.end());
  for (const std::string& note : first.provenance.notes) notes.push_back("TRACE: " + note);
  for (const std::string& note : second.provenance.notes) notes.push_back("TRACE2: " + note);
  add_cut_note(notes, options, against.layers.size());
  return text + notes_text(notes);
}

}  // namespace stageline::report
