// The table of figures: what a row is said to have, once, for every output that shows it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/units.hpp"
#include "tools/compare/comparison.hpp"
#include "tools/compare/rank_by.hpp"
#include "tools/compare/uncertainty.hpp"
#include "tools/study/evidence/evidence.hpp"
#include "tools/study/figures/training_rates.hpp"
#include "tools/study/verdict.hpp"

namespace stageline::report {

/// What the figures of a row are read off.
struct FigureFacts {
  const Outcome* outcome;
  const BudgetFigures* budget;
  const Model* model;
  const Cluster* cluster;
  std::string_view cut;                    // as it was asked for
  int devices = 0;                         // of the run
  bool ranked = false;                     // with degrees
  RankBy by{};                             // the order of the rows
  const Uncertainty* uncertain = nullptr;  // null: no scenarios
  Intervals intervals{};                   // of the step and of the fullest device

  bool has_tokens() const { return model->tokens > 0; }
  /// Whether the trace counts tokens or FLOPs.
  bool is_language() const { return has_tokens() || budget->rates.model_flops; }
};
FigureFacts facts_of(const Case& asked, const Outcome& outcome, const BudgetFigures& budget);
/// The row has an outcome.
FigureFacts facts_of(const Row& row);

/// Nothing where it is unknown.
using FigureValue =
    std::variant<std::monostate, bool, std::int64_t, double, Time, Bytes, std::string>;
/// Numbers are shares, or have a unit.
enum class FigureKind : std::uint8_t { yes, count, share, number, time, bytes, name };

inline constexpr const char* unknown_cell = "–";

/// A column of the table of a comparison.
struct FigureColumn {
  const char* title = "";  // empty: it has none
  int place = 0;           // columns with a lower one are to the left
  int drop = 0;            // as Column::drop: what follows from others or seldom differs goes first
  bool left = false;
  bool key = false;
  std::string (*words)(double) = nullptr;             // spells a number; of shares null
  std::string (*cell)(const FigureFacts&) = nullptr;  // spells what its value does not say
  const char* unknown = unknown_cell;
  /// Shown unasked where this holds of any row; null: always.
  bool (*matters)(const FigureFacts&) = nullptr;
  bool language = false;  // known of language models alone
  bool seldom = false;    // known of some rows, or with some flags, alone
};

/// A row of the table.
struct FigureRow {
  const char* key = "";       // in the JSON of a row; a time is KEY_s and KEY_ps. Empty: not there
  const char* sweep = "";     // the column of a sweep's table; empty: none
  const char* property = "";  // of Python's Result, a time also PROPERTY_ps; empty: none
  FigureKind kind = FigureKind::share;
  const char* unit = "";        // of a number; "throughput_unit": as Outcome says
  const char* definition = "";  // a sentence without its full stop
  const char* more = "";        // what a reader of the JSON must know beside it
  const char* null = "";        // where its key is null; empty: an unknown value has no key
  const char* absent = "";      // where there is no such key; empty: it is always there
  FigureValue (*value)(const FigureFacts&) = nullptr;
  FigureValue (*of_verdict)(const Verdict&) = nullptr;  // the same in a sweep; null: no column
  bool (*in_json)(const FigureFacts&) =
      nullptr;  // of known values those that have a key; null: all
  FigureColumn column{};
};

/// In the order of JSON, of a sweep's table and of the page of keys.
std::span<const FigureRow> all_figures();
/// Those that have a column, from left to right.
const std::vector<const FigureRow*>& figures_of_columns();
/// The figure of a property; throws std::logic_error where there is none.
const FigureRow& figure_of_property(std::string_view property);

std::string unit_of(const FigureRow& figure, const FigureFacts& row);

/// The table as Markdown, a row a figure: keys, definitions, and the names in other outputs.
std::string figures_page();

}  // namespace stageline::report
