// The rates of a chip that follow from its timed kernels, each from rows of its own.
#pragma once

#include <string>
#include <vector>

#include "cost_models/transformers/kernel_rates.hpp"
#include "sim/cluster.hpp"
#include "tools/published/kernels/kernel_table.hpp"

namespace stageline {

/// A constant and what it follows from.
struct KernelFitted {
  const KernelConstant* constant = nullptr;
  double built_in = 0;  // of that chip, or of a chip without rates of its own
  double value = 0;
  double standard_error = 0;  // of its logarithm
  bool at_bound = false;      // the rows say more or less than the constant may be
  bool taken = true;          // else shown alone: a property of software, of which this is another
  std::string from;           // "33 products in bf16"
};

/// Shares of the peak by an extent, in the order of the rows: no constant of the cost model has
/// them, so they are shown beside published ones.
struct KernelCurve {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  std::string note;  // where published ones come from
};

struct KernelsFit {
  Calibration calibration;              // residuals: of the products in bf16
  std::vector<KernelFitted> constants;  // in the order of kernel_constants()
  std::vector<std::string> untold;      // names of constants that no row tells
  std::vector<KernelCurve> curves;
  double mean_error = 0;   // of the products, |predicted/measured − 1|
  double worst_error = 0;  // likewise, with its row
  std::string worst_row;
};

/// How, by constant (2mnk/(peak·t) is a product's share of the peak, of the data sheet; its t is
/// without `kernel`, which the cost model adds, and products of less than three of it are left
/// out):
///   gemm, gemm_rows, gemm_columns  least squares of the relative errors of t·peak/2mnk =
///                     1/gemm·(1 + gemm_rows/m + gemm_columns·(1/n + 1/k)), bf16, extents that are
///                     multiples of 64; neither length is below 0
///   misaligned        geometric mean of measured over that, of other extents; at least 1
///   gemm_8bit         geometric mean over the same curve, fp8 with eager casts (without casts,
///                     where no row has them); shown, and not taken: frameworks fuse the casts
///   attention_flash   geometric mean over shapes of forward and backward together, the fastest
///                     fused kernel of each
///   memory            median of elementwise kernels on 256 MB or more
///   kernel            time on the device of a kernel that does next to nothing, eager
///   layer_floor       CPU's time to issue a small block's forward, eager; shown, and not taken: it
///                     is a training framework's
///   optimizer         fused AdamW, a parameter
/// Throws UsageError where the kind states no bf16 peak or no memory bandwidth, and where fewer
/// than six products in bf16 are there.
KernelsFit fit_kernels(const KernelTable& table, const DeviceKind& kind);

/// Constants beside the built-in ones, what products leave, curves beside published ones: tables
/// for a terminal. `width`: columns of a line; 0: any.
std::string kernels_text(const KernelsFit& fit, const KernelTable& table, int width);

/// The same as JSON; tools/report/json/README.md lists the keys.
std::string kernels_json(const KernelsFit& fit, const KernelTable& table);

/// The same as a Markdown page.
std::string kernels_page(const KernelsFit& fit, const KernelTable& table);

}  // namespace stageline
