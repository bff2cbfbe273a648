// The TRACE that the user names, turned into a model: layers and their times.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/slices.hpp"
#include "cost_models/transformers/kernel_rates.hpp"
#include "cost_models/transformers/kernel_times.hpp"
#include "sim/cluster.hpp"
#include "sim/model.hpp"
#include "sim/program.hpp"

namespace stageline {

/// TRACE is a file, a spelled cost model ("model:NAME@DEVICE,…", "uniform:…"), the name of a
/// bundled trace, or the text of a native trace itself, from its brace on. `batch` is
/// --microbatch-size: 0 keeps the trace's own.
struct TraceRequest {
  std::string text;
  int batch = 0;
  int profile_batch = 0;                     // of a PipeDream profile, which does not state it
  std::vector<DeviceKind> more_kinds;        // beside those of the bundled clusters
  Sharding sharding{};                       // degrees that divide the layers of a spelled model
  std::optional<Calibration> calibration{};  // instead of the built-in rates of a chip
  std::string software{};      // generation, of a language model; empty: as its spelling says
  std::string cuda_graphs{};   // "none", "partial", "full"; empty: as its spelling or software says
  std::string cp_comm_type{};  // "p2p", "a2a+p2p:8"; empty: as its spelling or software says
  SequenceSlice slice{};       // of sequences: a spelled cost model prices this one
  Documents documents{};       // that a sequence of a language model packs; empty: as spelled
  bool all_sizes = false;  // each micro-batch size of the trace is tried: none is taken for another
};

/// A cost model that is spelled, or a file format. A new one is a line of the table in
/// tools/inputs/traces.cpp.
struct TraceSource {
  std::string_view name;
  std::string_view spelling;  // among what a trace may be; empty for a file format
  std::string_view summary;
  bool makes_batches = false;  // prices --microbatch-size itself; else it is interpolated
  bool takes_batch = false;    // the file does not state its batch: --batch does
  /// Whether a trace is of this source: by what the user wrote where there is a `spelling`, else by
  /// the content of the file. The first source that recognises a trace reads it.
  bool (*recognises)(std::string_view text);
  /// All batch sizes, ascending. `text`: what the user wrote, or the content of the file `file`.
  std::vector<Model> (*read)(const std::string& text, const std::string& file,
                             const TraceRequest& request);
};
std::span<const TraceSource> trace_sources();

/// One batch size: that of the request, or the largest. Throws UsageError or TraceError.
Model open_trace(const TraceRequest& request);

/// All batch sizes that a file holds. A spelled cost model has one.
std::vector<Model> open_trace_sizes(const TraceRequest& request);

/// The kernels of a language model, of one micro-batch; empty where the trace is another one.
/// Throws as open_trace().
std::vector<LayerKernelTimes> open_kernels(const TraceRequest& request);

/// The rates in a calibration file, or in the text of one from its brace on; none for an empty
/// name. Throws UsageError and TraceError.
std::optional<Calibration> open_calibration(const std::string& file);

/// Whether a calibration is of that kind of device: one of a100 is of a100-40gb, too.
bool is_calibrated_for(const Calibration& calibration, std::string_view kind);

/// The note that the request's calibration leaves the times of `model` as they are; empty where it
/// has none, or no kernel rates other than the built-in ones.
std::string no_effect_on_kernels(const TraceRequest& request, const Model& model);

/// Whether slices of its sequences can be priced as such: those of a trace that was measured
/// cannot.
bool prices_slices(const TraceRequest& request);
/// Whether its kernels are priced: those of a language model are, a shape's layers are not.
bool has_kernels(const std::string& trace);

/// The device kind that a "model:NAME@DEVICE" trace is priced for, or an empty text.
std::string priced_device(const std::string& trace);

}  // namespace stageline
