// Are the bars as long as they should be, and does the report say what matters?
#include "tools/report/text/costs.hpp"

#include <doctest/doctest.h>

#include "tools/base/provenance.hpp"
#include "tools/report/text/cost_bars.hpp"
#include "traces/traces.hpp"

namespace stageline::costs_tests {
namespace {

CostRow row_of(std::int64_t forward, std::int64_t input_grad, std::int64_t weight_grad,
               std::int64_t update) {
  CostRow row;
  row.forward = Time{forward};
  row.input_grad = Time{input_grad};
  row.weight_grad = Time{weight_grad};
  row.backward = row.input_grad + row.weight_grad;
  row.update = Time{update};
  return row;
}

CostPair pair_of(std::int64_t first, std::int64_t second) {
  return {row_of(first, 0, 0, 0), row_of(second, 0, 0, 0)};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Characters, not bytes.
int width_of(const std::string& text) {
  int width = 0;
  for (const char c : text) width += (static_cast<unsigned char>(c) & 0xc0U) != 0x80U ? 1 : 0;
  return width;
}

// Lines of a report that begin with `name`.
int lines_with(const std::string& text, const std::string& name) {
  int count = 0;
  for (std::size_t at = 0; (at = text.find("\n" + name, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST_CASE("a bar is divided into F, I, W and update, and as long as its share of the longest") {
  CHECK(report::cost_bar(row_of(1, 2, 3, 2), Time{8}, 8) == "█▓▓▒▒▒░░");
  CHECK(report::cost_bar(row_of(1, 2, 3, 2), Time{16}, 8) == "█▓▒░");  // ends at 0.5, 1.5, 3, 4
  CHECK(report::cost_bar(row_of(1, 2, 3, 2), Time{16}, 16) == "█▓▓▒▒▒░░");
  CHECK(report::cost_bar(row_of(4, 0, 4, 0), Time{8}, 4) == "██▒▒");
}

TEST_CASE("the length of a bar is that of F + B + update, however it is divided") {
  for (std::int64_t forward = 0; forward < 40; forward += 3) {
    for (std::int64_t backward = 1; backward < 40; backward += 7) {
      const CostRow row = row_of(forward, backward, 2 * backward, forward / 2);
      const auto cells = static_cast<int>((row.step().count() * 20 + 100) / 200);
      CAPTURE(row.step().count());
      CHECK(width_of(report::cost_bar(row, Time{200}, 20)) == std::max(1, cells));
    }
  }
}

TEST_CASE("a fused backward that differs from I + W is divided in their proportion") {
  CostRow row = row_of(0, 30, 10, 0);
  row.backward = Time{8};
  CHECK(report::cost_bar(row, Time{8}, 8) == "▓▓▓▓▓▓▒▒");
  row.input_grad = row.weight_grad = Time{};
  CHECK(report::cost_bar(row, Time{8}, 8) == "▓▓▓▓▓▓▓▓");
}

TEST_CASE("a layer without time has no bar, one that is too short for a cell a mark") {
  CHECK(report::cost_bar(row_of(0, 0, 0, 0), Time{8}, 8).empty());
  CHECK(report::cost_bar(row_of(0, 0, 0, 0), Time{}, 8).empty());
  CHECK(report::cost_bar(row_of(1, 0, 0, 0), Time{1000}, 8) == "▏");
}

TEST_CASE("a ratio has three digits, and is a fraction below 0.1") {
  CHECK(report::ratio_text(Time{2}, Time{4}) == "0.500×");
  CHECK(report::ratio_text(Time{3}, Time{2}) == "1.50×");
  CHECK(report::ratio_text(Time{25}, Time{2}) == "12.5×");
  CHECK(report::ratio_text(Time{2502}, Time{2}) == "1251×");
  CHECK(report::ratio_text(Time{99995}, Time{100000}) == "1.00×");
  CHECK(report::ratio_text(Time{2}, Time{50}) == "1/25.0×");
  CHECK(report::ratio_text(Time{0}, Time{4}) == "0×");
  CHECK(report::ratio_text(Time{4}, Time{0}) == "∞");
  CHECK(report::ratio_text(Time{0}, Time{0}) == "–");
}

TEST_CASE("a ratio's bar grows with its logarithm, to the left where the first is faster") {
  CHECK(report::ratio_bar(Time{1}, Time{1}, 16, 4) == "    │");
  CHECK(report::ratio_bar(Time{2}, Time{1}, 16, 4) == "    │█");
  CHECK(report::ratio_bar(Time{4}, Time{1}, 16, 4) == "    │██");
  CHECK(report::ratio_bar(Time{16}, Time{1}, 16, 4) == "    │████");
  CHECK(report::ratio_bar(Time{1}, Time{2}, 16, 4) == "   █│");
  CHECK(report::ratio_bar(Time{1}, Time{16}, 16, 4) == "████│");
  CHECK(report::ratio_bar(Time{1}, Time{17}, 16, 4) == "◀███│");
  CHECK(report::ratio_bar(Time{17}, Time{1}, 16, 4) == "    │███▶");
  CHECK(report::ratio_bar(Time{1}, Time{0}, 16, 4) == "    │███▶");
  CHECK(report::ratio_bar(Time{0}, Time{1}, 16, 4) == "◀███│");
  CHECK(report::ratio_bar(Time{0}, Time{0}, 16, 4) == "    │");
}

TEST_CASE("the scale holds the largest ratio, whichever way it goes") {
  CHECK(report::widest_ratio({}) == 1.1);
  CHECK(report::widest_ratio({pair_of(100, 100), pair_of(0, 5), pair_of(5, 0)}) == 1.1);
  CHECK(report::widest_ratio({pair_of(100, 112)}) == 1.25);
  CHECK(report::widest_ratio({pair_of(112, 100), pair_of(100, 190)}) == 2);
  CHECK(report::widest_ratio({pair_of(100, 1000)}) == 10);
  CHECK(report::widest_ratio({pair_of(1001, 100)}) == 20);
  CHECK(report::widest_ratio({pair_of(1, 3000)}) == 5000);
  CHECK(report::ratio_scale(2, 6) == "1/2×  1×   2×");
  for (const double widest : {1.1, 1.25, 3.0, 10.0, 5000.0}) {
    CHECK(width_of(report::ratio_scale(widest, 12)) == 25);
    CHECK(width_of(report::ratio_scale(widest, 12)
                       .substr(0, report::ratio_scale(widest, 12).find(" 1×") + 1)) == 12);
  }
}

TEST_CASE("colours go around runs of the same sign and are always ended") {
  CHECK(report::coloured_bars("a ██▓ b") == "a \x1b[38;5;32m██\x1b[38;5;172m▓\x1b[0m b");
  CHECK(report::coloured_bars("░") == "\x1b[38;5;245m░\x1b[0m");
  CHECK(report::coloured_bars("é│–") == "é│–");
  const Model model = uniform_model("layers=2");
  report::CostsOptions options;
  CHECK(!contains(report::costs_report(model, {1}, options), "\x1b"));
  options.colour = true;
  CHECK(contains(report::costs_report(model, {1}, options), "\x1b[38;5;32m█"));
}

TEST_CASE("shares of the shown rows and of the others make up the whole") {
  Model model = uniform_model("layers=4,forward=1ms,input_grad=0,weight_grad=0");
  model.layers[2].forward = parse_time("5ms");
  report::CostsOptions options;
  options.top = 1;
  const std::string text = report::costs_report(model, {1}, options);
  CHECK(contains(text, "\nlayer2    uniform   62.5 %"));
  CHECK(contains(text, "\n3 others            37.5 %"));
  CHECK(contains(text, "\ntotal              100.0 %"));
  CHECK(!contains(text, "layer0"));
  options.top = 3;
  CHECK(contains(report::costs_report(model, {1}, options), "\n1 other "));
}

TEST_CASE("up to 64 layers are all shown, of more the 32 most expensive, and a note says so") {
  const auto report = [](int layers, int top) {
    report::CostsOptions options;
    options.top = top;
    return report::costs_report(uniform_model("layers=" + std::to_string(layers)), {1}, options);
  };
  CHECK(lines_with(report(64, 0), "layer") == 64 + 1);  // and the titles
  CHECK(!contains(report(64, 0), "note:"));
  CHECK(lines_with(report(65, 0), "layer") == 32 + 1);
  CHECK(contains(report(65, 0), "33 others"));
  CHECK(contains(report(65, 0), "note: of 65 layers the 32 most expensive are shown"));
  CHECK(lines_with(report(65, 65), "layer") == 65 + 1);
  CHECK(!contains(report(65, 5), "note:"));
}

TEST_CASE("a trace without any time is shown without shares and bars") {
  const Model model = uniform_model("layers=1,forward=0,input_grad=0,weight_grad=0");
  const std::string text = report::costs_report(model, {1}, {});
  CHECK(contains(text, "–"));
  CHECK(!contains(text, "full bar"));
  CHECK(!contains(text, "split over fused"));
  CHECK(contains(report::against_report(model, model, {}, {}), "no layer differs"));
}

TEST_CASE("the heading names all batch sizes of a trace that has several") {
  const Model model = uniform_model("layers=2,batch=8");
  CHECK(contains(report::costs_report(model, {8, 16}, {}),
                 "micro-batches of 8 samples (of 8, 16 in"));
  CHECK(!contains(report::costs_report(model, {8}, {}), "(of 8"));
}

TEST_CASE("the check says whether the difference is more than the noise") {
  Model model = uniform_model("layers=1,forward=1ms,input_grad=1ms,weight_grad=1ms");
  CHECK(!contains(report::costs_report(model, {1}, {}), "check"));
  const auto ms = [](int milliseconds) { return Time{milliseconds * 1'000'000'000LL}; };
  model.whole = {21, ms(1), ms(3), Time{}, ms(1), ms(2)};
  const std::string text = report::costs_report(model, {1}, {});
  CHECK(contains(text, "plainly takes 4.000 ms: −25.0 %, within the noise of 50.0 %"));
  CHECK(contains(text,
                 "(F 0.0 %, B −33.3 %, update –; 21 samples; half the interquartile range of "
                 "the whole: 25.0 %)"));
  model.whole.noise = Time{1};
  CHECK(contains(report::costs_report(model, {1}, {}), "more than the noise of 0.0 %"));
}

TEST_CASE("unmatched layers are named, five at most") {
  const Model many = uniform_model("layers=9");
  const Model few = uniform_model("layers=2");
  const std::string text = report::against_report(many, few, {"it was brought"}, {});
  CHECK(contains(text,
                 "note: only in TRACE, and left out: layer2, layer3, layer4, layer5, layer6 "
                 "and 2 more (7 layers)\n"));
  CHECK(contains(text, "note: it was brought\n"));
  CHECK(contains(report::against_report(few, many, {}, {}),
                 "note: only in TRACE2, and left out: layer2"));
}

TEST_CASE("a measurement is described by its device, settings and day, others by their method") {
  Provenance provenance;
  provenance.method = "Medians of 21 samples.";
  CHECK(described(provenance) == "measured: Medians of 21 samples");
  provenance.device = "AMD EPYC";
  provenance.settings = "1 thread";
  provenance.date = "2026-11-20";
  CHECK(described(provenance) == "measured: AMD EPYC, 1 thread, 2026-11-20");
  provenance.settings.clear();
  CHECK(origin_of(provenance) == "measured: AMD EPYC, 2026-11-20");
  provenance.origin = Origin::estimated;
  provenance.method = "estimated: roofline, a lower bound";
  CHECK(described(provenance) == "estimated: roofline, a lower bound");
  CHECK(method_of(provenance) == "roofline, a lower bound");
  CHECK(origin_of({}) == "measured");
}

}  // namespace
}  // namespace stageline::costs_tests
