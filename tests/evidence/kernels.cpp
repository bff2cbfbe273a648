// Do the rates of a chip follow from timed kernels, each from its own rows, and is a table that
// cannot say them refused?
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <string>
#include <vector>

#include "sim/base/errors.hpp"
#include "tools/published/kernels/kernel_fit.hpp"

namespace stageline::kernels_tests {
namespace {

constexpr double peak = 1000e12;  // bf16
constexpr double peak_8bit = 2000e12;
constexpr double bandwidth = 3e12;
constexpr double share = 0.71;
constexpr double half_rows = 223;
constexpr double half_columns = 150;

DeviceKind chip() {
  DeviceKind kind;
  kind.name = "h100";
  kind.memory_bandwidth = Bandwidth{static_cast<std::int64_t>(bandwidth)};
  kind.peak = {{"bf16", peak}, {"fp8", peak_8bit}};
  return kind;
}

double curve(double m, double n, double k) {
  return (1 + half_rows / m + half_columns * (1 / n + 1 / k)) / share;
}

std::string row(const std::string& what, const std::string& precision, double seconds,
                const std::string& more) {
  static int number = 0;
  return fmt::format(
      R"({{"id": "{} {}", "what": "{}", "precision": "{}", {}, "us": {}, "low_us": {}, "high_us": {}, "samples": 9}})",
      what, ++number, what, precision, more, seconds * 1e6, seconds * 0.99e6, seconds * 1.02e6);
}

constexpr double launch = 3e-6;

// `seconds`: of its work alone.
std::string product(const std::string& precision, double m, double n, double k, double seconds,
                    const std::string& more = "") {
  return row(
      "product", precision, seconds + launch,
      fmt::format(R"("m": {}, "n": {}, "k": {}, "flops": {}{})", m, n, k, 2 * m * n * k, more));
}

std::string launch_row() {
  return row("launch", "fp32", launch, R"("how": "eager", "side": "device", "per": "kernel")");
}

// Products that lie on the curve, four of them too short to tell, and the launch that each has;
// `off`: the last product takes as many times as long.
std::vector<std::string> products(double off = 1) {
  std::vector<std::string> rows;
  for (const double m : {128, 512, 2048, 8192}) {
    for (const auto& [n, k] : {std::pair{4096.0, 4096.0}, {768.0, 768.0}, {14336.0, 4096.0}}) {
      rows.push_back(product("bf16", m, n, k, 2 * m * n * k / peak * curve(m, n, k)));
    }
  }
  const double m = 1024;
  rows.push_back(product("bf16", m, m, m, off * 2 * m * m * m / peak * curve(m, m, m)));
  rows.push_back(launch_row());
  return rows;
}

std::string attention(const std::string& pass, const std::string& how, double flops,
                      double of_peak) {
  return row(
      "attention", "bf16", flops / peak / of_peak,
      fmt::format(
          R"("pass": "{}", "how": "{}", "heads": 16, "width": 128, "sequence": 4096, "flops": {})",
          pass, how, flops));
}

std::vector<std::string> others() {
  const double odd = 2.0 * 4096 * 4095 * 4096;
  const double eight = 2.0 * 4096 * 4096 * 4096;
  const double at = curve(4096, 4096, 4096) * share;
  return {
      product("bf16", 4096, 4095, 4096, 1.3 * odd / peak * curve(4096, 4095, 4096)),
      product("fp8", 4096, 4096, 4096, eight / peak_8bit * at / 0.8),
      product("fp8", 4096, 4096, 4096, eight / peak_8bit * at / 0.6, R"(, "cast": true)"),
      product("fp8", 4096, 4096, 4096, eight / peak_8bit, R"(, "cast": true, "fast_accum": true)"),
      attention("forward", "flash", 1e12, 0.3),
      attention("forward", "cudnn", 1e12, 0.5),  // the fastest
      attention("backward", "flash", 2.5e12, 0.4),
      attention("forward", "math", 1e12, 0.9),  // no fused kernel
      row("elementwise", "bf16", 2e9 / bandwidth / 0.9,
          R"("op": "copy", "size_bytes": 1000000000, "bytes": 2e9)"),
      row("elementwise", "bf16", 1e-6,
          R"("op": "copy", "size_bytes": 1000, "bytes": 2000)"),  // in a cache
      row("optimizer", "fp32", 2e-3, R"("how": "fused", "parameters": 100000000, "bytes": 28e8)"),
      row("optimizer", "fp32", 9e-3, R"("how": "foreach", "parameters": 100000000, "bytes": 28e8)"),
      row("launch", "fp32", 9e-6, R"("how": "eager", "side": "cpu", "per": "kernel")"),
      row("launch", "fp32", 1e-6, R"("how": "graph", "side": "device", "per": "kernel")"),
      row("block_issue", "bf16", 4e-4, R"("how": "eager", "pass": "forward")"),
      row("block_issue", "bf16", 9e-4, R"("how": "eager", "pass": "backward")"),
      row("grouped", "bf16", 1e-3,
          R"("how": "grouped_mm", "pass": "weight", "accumulate": true, "experts": 8, "rows": 512, "n": 2048, "k": 7168, "flops": 217e9)"),
      row("copy", "uint8", 1e-3,
          R"("how": "pinned", "direction": "host_to_device", "size_bytes": 1000000)"),
  };
}

KernelTable table_of(const std::vector<std::string>& rows, const std::string& more = "") {
  return read_kernel_table(
      fmt::format(R"({{"format": "stageline-kernels 1", "device": "NVIDIA H100", "kind": "h100",
                       "torch": "2.11.0", "date": "2026-11-28", "rows": [{}]{}}})",
                  fmt::join(rows, ","), more),
      "k.json");
}

std::vector<std::string> all_rows() {
  std::vector<std::string> rows = products();
  for (std::string& one : others()) rows.push_back(std::move(one));
  return rows;
}

const KernelFitted& of(const KernelsFit& fit, const std::string& name) {
  for (const KernelFitted& one : fit.constants) {
    if (one.constant->name == name) return one;
  }
  FAIL("there is no ", name);
  return fit.constants.front();
}

template <class Work>
std::string refusal(Work&& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("each constant follows from rows of its own") {
  const KernelsFit fit = fit_kernels(table_of(all_rows()), chip());
  const auto is = [&](const std::string& name, double value) {
    CAPTURE(name);
    CHECK(of(fit, name).value == doctest::Approx(value).epsilon(1e-6));
    CHECK_FALSE(of(fit, name).at_bound);
  };
  is("gemm", share);
  is("gemm_rows", half_rows);
  is("gemm_columns", half_columns);
  is("misaligned", 1.3);
  is("gemm_8bit", 0.6);
  is("attention_flash", 3.5 / (1 / 0.5 + 2.5 / 0.4));
  is("memory", 0.9);
  is("kernel", 3e-6);
  is("layer_floor", 4e-4);
  is("optimizer", 2e-11);
  // Plain PyTorch's; a training framework's own stays.
  CHECK_FALSE(of(fit, "layer_floor").taken);
  CHECK(fit.calibration.rates.layer_floor == find_chip_rates("h100")->rates.layer_floor);
  // Nor are casts that no framework does so.
  CHECK_FALSE(of(fit, "gemm_8bit").taken);
  CHECK(fit.calibration.rates.gemm_8bit == find_chip_rates("h100")->rates.gemm_8bit);
  CHECK(fit.calibration.fitted.size() == 8);
  CHECK(fit.untold == std::vector<std::string>{"gemm_4bit", "attention_plain", "attention_kernel",
                                               "expert_floor", "step", "nvlink", "network"});
  CHECK(of(fit, "gemm").built_in == find_chip_rates("h100")->rates.gemm);
  CHECK(fit.mean_error < 1e-6);
  CHECK(fit.calibration.residuals.size() == 9);
  // It is a calibration as any other, and what no row tells is built-in.
  const Calibration again = read_calibration(print_calibration(fit.calibration), "c.json");
  CHECK(again == fit.calibration);
  CHECK(again.rates.step == find_chip_rates("h100")->rates.step);
}

TEST_CASE("a row that is off is told, and widens the error") {
  std::vector<std::string> rows = products(2);
  const KernelsFit fit = fit_kernels(table_of(rows), chip());
  CHECK(fit.worst_error > 0.2);
  CHECK(fit.worst_row.rfind("product", 0) == 0);
  CHECK(of(fit, "gemm").standard_error > 0.005);
  CHECK(fit.untold.size() == 13);
}

TEST_CASE("a constant beyond what it may be is at its bound, and is said to be") {
  std::vector<std::string> rows = products();
  rows.push_back(row("elementwise", "bf16", 2e9 / bandwidth / 1.4,
                     R"("op": "copy", "size_bytes": 1000000000, "bytes": 2e9)"));
  const KernelsFit fit = fit_kernels(table_of(rows), chip());
  CHECK(of(fit, "memory").value == 1);
  CHECK(of(fit, "memory").at_bound);
  CHECK(kernels_text(fit, table_of(rows), 0).find("1 (bound)") != std::string::npos);
}

TEST_CASE("products without a curve have no lengths below zero") {
  std::vector<std::string> rows{launch_row()};
  for (const double m : {128.0, 512.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0}) {
    // The larger, the slower: as a chip does that clocks down.
    rows.push_back(product("bf16", m, 4096, 4096, 2 * m * 4096 * 4096 / peak * (1 + m / 1e5)));
  }
  const KernelsFit fit = fit_kernels(table_of(rows), chip());
  CHECK(of(fit, "gemm_rows").value == 0);
  CHECK(of(fit, "gemm_columns").value == 0);
  CHECK(of(fit, "gemm").value > 0.9);
}

TEST_CASE("the page has constants and curves beside published ones") {
  const KernelTable table = table_of(all_rows(), R"(, "left_out": ["a", "b"], "failed": [])");
  const std::string page = kernels_page(fit_kernels(table, chip()), table);
  for (
      const char* const words :
      {"# Kernels of NVIDIA H100", "2 rows of the table were left out", "gemm_rows (M0)",
       "9 products in bf16", "Grouped products", "weight gradient", "0.217", "0.500", "cudnn",
       "FlashAttention-3",
       "No row tells gemm_4bit, attention_plain, attention_kernel, expert_floor, step, nvlink, network"}) {
    CAPTURE(words);
    CHECK(page.find(words) != std::string::npos);
  }
}

TEST_CASE("tables that cannot say a chip's rates are refused") {
  CHECK(refusal([] { fit_kernels(table_of({products().front()}), chip()); }) ==
        "the table has 1 product in bf16 whose extents fill their tiles; the curve of three "
        "constants needs at least 6");
  DeviceKind bare = chip();
  bare.peak = {{"fp32", 1e12}};
  CHECK(refusal([&] { fit_kernels(table_of(products()), bare); }) ==
        "h100 states no peak in bf16, of which kernels reach a share");
  CHECK(refusal([] {
          read_kernel_table(R"({"format": "stageline-trace 1"})", "k.json");
        }).find("must be \"stageline-kernels 1\", not \"stageline-trace 1\"") != std::string::npos);
  CHECK(
      refusal([] {
        table_of(
            {R"({"id": "a", "what": "product", "precision": "bf16", "us": 1, "low_us": 1, "high_us": 1})"});
      }).find("a product has m, n and k") != std::string::npos);
  CHECK(
      refusal([] {
        table_of(
            {R"({"id": "a", "what": "launch", "precision": "bf16", "us": 1, "low_us": 2, "high_us": 3})"});
      }).find("must be from low_us to high_us") != std::string::npos);
}

}  // namespace
}  // namespace stageline::kernels_tests
