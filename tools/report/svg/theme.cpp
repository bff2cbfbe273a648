// The tables of colours, and the style sheet.
#include "tools/report/svg/theme.hpp"

#include <fmt/core.h>

#include <array>

#include "sim/base/index.hpp"

namespace stageline::report {
namespace {

struct Paint {
  const char* name;   // CSS class
  const char* words;  // in the legend
  const char* light;  // fill in the light theme
  const char* dark;   // fill in the dark theme
  char ink;           // class of text on it: k or w
};

// Hues after Okabe and Ito (Color Universal Design, 2008), which people with any common form of
// colour blindness can distinguish; moved in lightness so that the kinds differ in a grey print as
// well. L* in the light theme: update 24, weight gradient 40, backward 52, forward 67, input
// gradient 79, recompute 91.
// clang-format off
constexpr std::array<Paint, tones> paints{{
    {"f",  "forward",            "#56a8de", "#5cb0e6", 'k'},
    {"b",  "backward",           "#cd5a0a", "#d9651a", 'w'},
    {"i",  "input gradient",     "#f0ba3c", "#f0bc46", 'k'},
    {"g",  "weight gradient",    "#046a50", "#117e62", 'w'},
    {"r",  "recompute",          "url(#stageline-hatch-r)", "url(#stageline-hatch-r)", 'k'},
    {"u",  "update",             "#4b2e63", "#9a7bb5", 'w'},
    {"pf", "forward",            "#a9d4f0", "#a3cfee", 'k'},
    {"pb", "backward",           "#eea271", "#f0ac80", 'k'},
    {"pi", "input gradient",     "#f8dd9a", "#f7dfa3", 'k'},
    {"pg", "weight gradient",    "#62b297", "#67b79d", 'k'},
    {"pr", "recompute",          "url(#stageline-hatch-p)", "url(#stageline-hatch-p)", 'k'},
    {"pu", "update",             "#8a72a3", "#b9a3cd", 'w'},
    {"sa", "activation message", "#2f7fb8", "#7cc3f0", 'w'},
    {"sg", "gradient message",   "#d9792f", "#ee935a", 'w'},
    {"st", "stash message",      "#6f8f2f", "#b5cf6b", 'w'},
    {"sw", "weights message",    "#4b2e63", "#9a7bb5", 'w'},
    {"sr", "gradient reduction", "#046a50", "#2fa284", 'w'},
    {"co", "offload",            "#8b5a86", "#c79ac2", 'w'},
    {"ci", "prefetch",           "#c79ac2", "#8b5a86", 'k'},
    {"di", "idle: filling",      "#f1f2f4", "#23272e", 'k'},
    {"dd", "idle: draining",     "url(#stageline-hatch-d)", "url(#stageline-hatch-d)", 'k'},
    {"dw", "idle: dependencies", "url(#stageline-hatch-w)", "url(#stageline-hatch-w)", 'k'},
    {"dm", "idle: unequal work", "url(#stageline-hatch-m)", "url(#stageline-hatch-m)", 'k'},
    {"dl", "idle: a link",       "url(#stageline-hatch-l)", "url(#stageline-hatch-l)", 'k'},
    {"dc", "idle: gradient reduction", "url(#stageline-hatch-c)", "url(#stageline-hatch-c)", 'k'},
    {"dp", "idle: an update",    "url(#stageline-hatch-x)", "url(#stageline-hatch-x)", 'k'},
    {"do", "idle: host copies",  "url(#stageline-hatch-o)", "url(#stageline-hatch-o)", 'k'},
    {"dn", "unused device",      "#cbd0d7", "#404854", 'k'},
}};

struct Rule {
  const char* selector;
  const char* property;
  const char* light;
  const char* dark;
};
constexpr std::array<Rule, 25> rules{{
    {".bg", "fill", "#ffffff", "#14171c"},
    {".row", "fill", "#f1f2f4", "#23272e"},
    {".t", "fill", "#1b1e23", "#eceef1"},       // text
    {".d", "fill", "#5d646e", "#a2a9b4"},       // secondary text
    {".bad", "fill", "#b3261e", "#ff8a80"},     // over the limit
    {".k", "fill", "#14171c", "#14171c"},       // ink on light boxes
    {".w", "fill", "#ffffff", "#ffffff"},       // ink on dark boxes
    {".grid", "stroke", "#d3d7dd", "#39404a"},  // lines at the ticks
    {".axis", "stroke", "#5d646e", "#a2a9b4"},  // axis lines
    {".e", "stroke", "#ffffff", "#14171c"},     // edge between neighbours
    {".limit", "stroke", "#b3261e", "#ff8a80"},
    {".total", "stroke", "#1b1e23", "#eceef1"},
    {".dot", "fill", "#1b1e23", "#eceef1"},
    {".h0", "fill", "#f1f2f4", "#23272e"},    // background of hatches
    {".h1", "stroke", "#c3c8d0", "#4a525e"},  // lines of hatches
    {".h2", "fill", "#b3b9c3", "#5b6471"},    // dots of hatches
    {".r0", "fill", "#d3e9f8", "#bcdcf3"},    // background of recompute's hatch, in pale
    {".r1", "stroke", "#a3cfec", "#93c4e6"},
    {".p0", "fill", "#e9f4fb", "#d9ebf7"},
    {".p1", "stroke", "#b9dcf2", "#a9d1ec"},
    {".ms", "fill", "#8d95a3", "#616a78"},    // memory groups
    {".mv", "fill", "#b59ac6", "#8a72a3"},
    {".mt", "fill", "#a9d4f0", "#3f7fac"},
    {".mp", "fill", "#f8dd9a", "#b98f3a"},
    {".swatch", "stroke", "#d3d7dd", "#39404a"},
}};
// clang-format on

std::string colours(bool dark) {
  std::string out;
  for (const Paint& paint : paints) {
    out += fmt::format(".stageline .{}{{fill:{}}}", paint.name, dark ? paint.dark : paint.light);
  }
  for (const Rule& rule : rules) {
    out += fmt::format(".stageline {}{{{}:{}}}", rule.selector, rule.property,
                       dark ? rule.dark : rule.light);
  }
  return out;
}

const Paint& paint_of(Tone tone) { return nth(paints, tone); }

}  // namespace

Tone pale_of(Tone tone) {
  return static_cast<Tone>(static_cast<int>(tone) + static_cast<int>(Tone::pale_forward));
}

Tone tone_of(OpKind kind, bool pale) {
  const auto compute = [&](Tone tone) { return pale ? pale_of(tone) : tone; };
  switch (kind) {
    case OpKind::forward:
      return compute(Tone::forward);
    case OpKind::input_grad:
      return compute(Tone::input_grad);
    case OpKind::weight_grad:
      return compute(Tone::weight_grad);
    case OpKind::backward:
      return compute(Tone::backward);
    case OpKind::recompute:
      return compute(Tone::recompute);
    case OpKind::update:
      return compute(Tone::update);
    case OpKind::reduce_grad:
      return Tone::reduce;
    case OpKind::send_forward:
    case OpKind::receive_forward:
      return Tone::activation;
    case OpKind::send_backward:
    case OpKind::receive_backward:
      return Tone::gradient;
    case OpKind::send_stash:
    case OpKind::receive_stash:
      return Tone::stash;
    case OpKind::send_weights:
    case OpKind::receive_weights:
      return Tone::weights;
    case OpKind::offload:
      return Tone::offload;
    case OpKind::prefetch:
      return Tone::prefetch;
  }
  return Tone::forward;  // unreachable; g++ requires it
}

Tone tone_of(IdleKind kind) {
  switch (kind) {
    case IdleKind::fill:
      return Tone::fill;
    case IdleKind::drain:
      return Tone::drain;
    case IdleKind::dependency:
      return Tone::dependency;
    case IdleKind::imbalance:
      return Tone::imbalance;
    case IdleKind::link:
      return Tone::link;
    case IdleKind::collectives:
      return Tone::collectives;
    case IdleKind::optimizer:
      return Tone::optimizer;
    case IdleKind::copies:
      return Tone::copies;
    case IdleKind::unused:
      return Tone::unused;
  }
  return Tone::fill;  // unreachable; g++ requires it
}

std::string_view css_class(Tone tone) { return paint_of(tone).name; }
std::string_view words(Tone tone) { return paint_of(tone).words; }
std::string_view ink_on(Tone tone) { return paint_of(tone).ink == 'k' ? "k" : "w"; }

std::string_view css_class(MemoryGroup group) {
  constexpr std::array<std::string_view, memory_groups> names{"ms", "mv", "mt", "mp"};
  return nth(names, group);
}
std::string_view words(MemoryGroup group) {
  constexpr std::array<std::string_view, memory_groups> names{
      "weights, gradients, optimizer", "older weights", "stash", "messages, workspace"};
  return nth(names, group);
}

std::string style_sheet(Theme theme) {
  // Classes, not custom properties: librsvg and most PDF converters do not support those, and they
  // ignore @media, so that they draw the light theme.
  std::string css =
      ".stageline text{font-family:sans-serif}.stageline .h{font-weight:bold}"
      ".stageline .n{text-anchor:middle}.stageline .r{text-anchor:end}"
      ".stageline .c{fill:none}.stageline .total{fill:none;stroke-width:1}"
      ".stageline .limit{fill:none;stroke-width:1.2;stroke-dasharray:5 3}"
      ".stageline .e{stroke-width:.7}";
  css += colours(theme == Theme::dark);
  if (theme == Theme::automatic) {
    css += "@media (prefers-color-scheme:dark){" + colours(true) + "}";
  }
  // `ground` and `mark` are CSS classes.
  const auto hatch = [](const char* name, const char* ground, const char* mark,
                        const char* element) {
    return fmt::format(
        "<pattern id=\"stageline-hatch-{}\" width=\"5\" height=\"5\" "
        "patternUnits=\"userSpaceOnUse\"><rect class=\"{}\" width=\"5\" height=\"5\"/>"
        "<{} class=\"{}\"/></pattern>",
        name, ground, element, mark);
  };
  constexpr const char* rising = "path d=\"M-1 6L6-1M-1 1L1-1M4 6L6 4\"";
  constexpr const char* falling = "path d=\"M-1-1L6 6M-1 4L1 6M4-1L6 1\"";
  return "<style>" + css + "</style>\n<defs>" + hatch("m", "h0", "h1", rising) +
         hatch("d", "h0", "h1", falling) + hatch("w", "h0", "h1", "path d=\"M2.5 0V5\"") +
         hatch("l", "h0", "h1", "path d=\"M0 2.5H5\"") +
         hatch("c", "h0", "h1", "path d=\"M0 2.5H5M2.5 0V5\"") +
         hatch("x", "h0", "h1", "path d=\"M0 0L5 5M5 0L0 5\"") +
         hatch("o", "h0", "h2", "circle cx=\"2.5\" cy=\"2.5\" r=\"1\"") +
         hatch("r", "r0", "r1", falling) + hatch("p", "p0", "p1", falling) + "</defs>\n";
}

namespace {

// Ground and mark of a hatch, of which no two causes have the same form, width or hue; hues as in
// page/web/palette.js.
struct IdleHatch {
  const char* name;  // CSS class of the tone
  const char* ground_light;
  const char* ground_dark;
  const char* mark_light;
  const char* mark_dark;
  double width;  // px, of the pattern
  double height;
  const char* element;  // stroked unless it is a circle
};
// clang-format off
constexpr std::array<IdleHatch, 7> idle_hatches{{
    {"dd", "#eceef1", "#2a2f37", "#8b919c", "#9aa1ad", 6, 6, "path d=\"M-1-1L7 7M-1 5L1 7M5-1L7 1\""},
    {"dw", "#fdf3d8", "#37301a", "#c98f00", "#e0c220", 7, 7, "path d=\"M3.5 0V7\""},
    {"dm", "#fae6da", "#3a261b", "#b84a0c", "#d96a1c", 4, 4, "path d=\"M-1 5L5-1M-1 1L1-1M3 5L5 3\""},
    {"dl", "#e2e9fc", "#1d2740", "#2a5be0", "#4f8df5", 5, 4, "path d=\"M0 2H5\""},
    {"dc", "#dcf2e8", "#18332a", "#12a06a", "#3cc08a", 8, 8, "path d=\"M0 4H8M4 0V8\""},
    {"dp", "#eadfee", "#30223a", "#4b1a5c", "#8a4fc0", 9, 9, "path d=\"M1.5 1.5L7.5 7.5M7.5 1.5L1.5 7.5\""},
    {"do", "#f4e6f9", "#382338", "#b566d0", "#f0a1cb", 6, 6, "circle cx=\"3\" cy=\"3\" r=\"1.3\""},
}};
// clang-format on

std::string idle_rules(bool dark) {
  std::string css;
  for (const IdleHatch& hatch : idle_hatches) {
    const char* const mark = dark ? hatch.mark_dark : hatch.mark_light;
    const bool filled = hatch.element[0] == 'c';
    css += fmt::format(
        ".stageline .{0}{{fill:url(#stageline-idle-{0})}}.stageline .{0}0{{fill:{1}}}"
        ".stageline .{0}1{{{2}:{3}}}",
        hatch.name, dark ? hatch.ground_dark : hatch.ground_light, filled ? "fill" : "stroke",
        mark);
  }
  return css;
}

}  // namespace

std::string idle_style(Theme theme) {
  std::string css = idle_rules(theme == Theme::dark);
  if (theme == Theme::automatic) {
    css += "@media (prefers-color-scheme:dark){" + idle_rules(true) + "}";
  }
  std::string patterns;
  for (const IdleHatch& hatch : idle_hatches) {
    patterns += fmt::format(
        "<pattern id=\"stageline-idle-{0}\" width=\"{1}\" height=\"{2}\" "
        "patternUnits=\"userSpaceOnUse\"><rect class=\"{0}0\" width=\"{1}\" height=\"{2}\"/>"
        "<{3} class=\"{0}1\"/></pattern>",
        hatch.name, hatch.width, hatch.height, hatch.element);
  }
  return "<style>" + css + "</style>\n<defs>" + patterns + "</defs>\n";
}

}  // namespace stageline::report
