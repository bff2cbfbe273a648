// The colours, as one table: light and dark, and their names in the legend.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/analysis/metrics.hpp"
#include "sim/op.hpp"
#include "tools/report/svg/options.hpp"

namespace stageline::report {

/// The paint of a box. The order is that of the legend, and of the stack in merged cells, from
/// below.
enum class Tone : std::uint8_t {
  forward,
  backward,
  input_grad,
  weight_grad,
  recompute,
  update,
  pale_forward,  // for every other stage of a device
  pale_backward,
  pale_input_grad,
  pale_weight_grad,
  pale_recompute,
  pale_update,
  activation,  // messages
  gradient,
  stash,
  weights,
  reduce,
  offload,
  prefetch,
  fill,  // idle
  drain,
  dependency,
  imbalance,
  link,
  collectives,
  optimizer,
  copies,
  unused,
};
inline constexpr int tones = 28;

Tone tone_of(OpKind kind, bool pale);
Tone tone_of(IdleKind kind);
Tone pale_of(Tone tone);  // defined for compute tones

/// The CSS class ("f"), and the name in the legend ("forward").
std::string_view css_class(Tone tone);
std::string_view words(Tone tone);

/// The class of text on this tone: "k" (dark ink) or "w" (light ink). The same in both themes.
std::string_view ink_on(Tone tone);

/// The groups of memory kinds that the small curves distinguish, from below.
enum class MemoryGroup : std::uint8_t { state, versions, stash, passing };
inline constexpr int memory_groups = 4;
std::string_view css_class(MemoryGroup group);
std::string_view words(MemoryGroup group);

/// The <style> element and the hatches in <defs>.
std::string style_sheet(Theme theme);

/// The <style> element and the hatches of idle time as a timeline shows them, beside
/// style_sheet(): a hue and a form of its own for each cause.
std::string idle_style(Theme theme);

}  // namespace stageline::report
