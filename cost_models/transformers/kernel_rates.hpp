// What the kernels of a language model reach on a chip: the few constants of the cost model, built
// in by chip and fitted to measured steps.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster.hpp"

namespace stageline {

/// Shares are of the data sheet's rates.
struct KernelRates {
  double gemm = 0.8;              // share of the peak that a large product reaches
  double gemm_8bit = 0.6;         // the same of 8-bit products, casts and transposes included
  double gemm_4bit = 1.4;         // speed of 4-bit products over 8-bit ones, casts included
  double gemm_rows = 250;         // rows at which a product reaches half of that
  double gemm_columns = 60;       // the same of the other two extents, as harmonic mean
  double attention_plain = 0.35;  // share of the peak of attention's products, scores in memory
  double attention_flash = 0.33;  // of a fused kernel, of the FLOPs below the diagonal
  double attention_kernel = 1;    // of the rates that were measured of an attention kernel by name
  double memory = 0.75;           // share of the memory's bandwidth that elementwise kernels reach
  double kernel = 10e-6;          // seconds a kernel beyond its work
  double layer_floor = 2.2e-3;    // seconds of the CPU to issue the forward of a block
  double expert_floor = 0;        // seconds of the CPU to cast and issue the forward of one expert
                                  // of a rank, 8-bit products: the GPU waits for it
  double optimizer = 0;           // seconds a parameter; 0: 30 bytes at the memory's bandwidth
  double step = 0.05;             // seconds a step: data, clipping, logging
  double misaligned = 1.27;       // factor on a product with an extent that is no multiple of 64
  double nvlink = 1;              // of the rate that collectives reach over NVLink in nccl-tests
  double network = 1;             // of the rate that transfers reach over the network
  friend bool operator==(const KernelRates&, const KernelRates&) = default;
};

/// A constant by name, with its prior: calibration and its file go through this table.
struct KernelConstant {
  std::string_view name;    // "gemm"
  std::string_view symbol;  // "e_g"
  std::string_view unit;    // "", "s", "rows"
  double KernelRates::*member;
  double spread;  // of the logarithm: standard deviation of the prior
  double least;
  double most;
  std::string_view meaning;
};
std::span<const KernelConstant> kernel_constants();

/// Rates with their origin.
struct ChipRates {
  std::string_view kind;  // of device, "a100"; also of "a100-40gb" and the like
  KernelRates rates;
  std::string_view source;
};
/// a100, h100, h200, b200, gb200: the chips to whose runs rates were fitted.
std::span<const ChipRates> chip_rates();
/// Null where the kind is none of them.
const ChipRates* find_chip_rates(std::string_view kind);

/// The rates of a kind: its own, those of the chip whose architecture it shares (a gb300 has those
/// of gb200, an h20 those of h100), or those of KernelRates, which are near an A100's.
struct TakenRates {
  KernelRates rates;
  std::string source;
  std::string note;  // that nobody fitted them, and whose they are; empty: they are its own
};
TakenRates rates_of(std::string_view kind);

/// What NVIDIA's kinds share their kernels by: "gh200" and "h100-pcie" are of Hopper.
enum class Architecture : std::uint8_t { other, hopper, blackwell };
Architecture architecture_of(std::string_view kind);
/// "h100" of "h100-pcie".
std::string_view family_of_kind(std::string_view kind);

/// The runs of one class that a calibration on few runs rests on, and the spread that remains.
struct CalibratedRuns {
  std::string software;  // generation, "megatron-core-2024"
  std::string kind;      // dense, experts
  std::string products;  // 16, quantized, 32
  int rows = 0;
  double low = 0;   // 80 % of other runs of the class lie within these factors of the prediction;
  double high = 0;  // both 0: what the class had before stays
  friend bool operator==(const CalibratedRuns&, const CalibratedRuns&) = default;
};

/// Rates fitted to measured steps, as a file states them.
struct Calibration {
  std::string kind;  // of device that they are for
  KernelRates rates;
  struct Fitted {
    std::string name;  // of a constant
    double value = 0;
    double standard_error = 0;  // of its logarithm
    friend bool operator==(const Fitted&, const Fitted&) = default;
  };
  std::vector<Fitted> fitted;  // the free ones
  struct Residual {
    std::string point;     // id of the row
    double measured = 0;   // seconds
    double predicted = 0;  // seconds
    friend bool operator==(const Residual&, const Residual&) = default;
  };
  std::vector<Residual> residuals;
  std::string source;                      // the points' file and sources
  std::string date;                        // ISO 8601
  std::vector<CalibratedRuns> rests_on{};  // few runs of one software; empty: many, or kernels
  friend bool operator==(const Calibration&, const Calibration&) = default;
};

/// {"format": "stageline-calibration 1", …}. Throws TraceError, which begins with `file`, with the
/// JSON pointer of what is wrong, and for a constant out of its range.
Calibration read_calibration(const std::string& text, const std::string& file);
std::string print_calibration(const Calibration& calibration);

/// The links of the cluster with the rates that transfers reach by the calibration.
Cluster calibrated(Cluster cluster, const KernelRates& rates);

}  // namespace stageline
