// What is trained: layers with their costs on the device they were measured on (or priced for), and
// how they feed each other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/units.hpp"

namespace stageline {

/// Times and bytes of one layer for one micro-batch of `Model::batch` samples; weights, gradients
/// and optimizer state do not depend on the batch.
struct Layer {
  std::string name;
  std::string kind;             // "conv", "linear", "norm", ...: free text, for people
  Time forward{};               //
  Time input_grad{};            // dL/d(input)
  Time weight_grad{};           // dL/d(weights)
  Time backward{};              // both at once; a reader that has only the halves gives their sum
  Time update{};                // the optimizer's step on this layer's weights
  Time forward_spread{};        // half the interquartile range over the samples; 0: not measured
  Time input_grad_spread{};     //
  Time weight_grad_spread{};    //
  Time backward_spread{};       //
  Time update_spread{};         //
  Bytes weights{};              //
  Bytes gradients{};            // weight gradients, usually as large as the weights
  Bytes optimizer_state{};      //
  Bytes output{};               // what the next layers read; the gradient sent back is as large
  Bytes stash_input_grad{};     // held from F for I alone, freed when I ends
  Bytes stash_weight_grad{};    // held from F for W (or for both), freed when W ends
  Bytes stash_gradient{};       // what I adds to that for W, beyond what I frees: output gradients
  Bytes input_kept{};           // what of its input (of several, the last) its backward reads, and
  Bytes output_kept{};          // of its output: counted above with the first layer that reads the
                                // tensor, and once more where a cut parts them; 0: not known
  Bytes forward_workspace{};    // needed only while its F runs
  Bytes backward_workspace{};   // while its B, I or W runs
  Bytes workspace{};            // needed only while one of the layer's ops runs
  std::int64_t parameters = 0;  // as the literature counts them; 0: unknown

  friend bool operator==(const Layer&, const Layer&) = default;
};

/// A tensor that layer `from` makes and layer `to` reads.
struct LayerEdge {
  int from = 0;
  int to = 0;
  friend auto operator<=>(const LayerEdge&, const LayerEdge&) = default;
};

enum class Origin : std::uint8_t { measured, estimated, synthetic };
/// "measured", "estimated", "synthetic": as traces, tables and JSON spell it.
std::string_view name(Origin origin);

/// Where the numbers come from, so that no table shows an estimate as a measurement.
struct Provenance {
  Origin origin = Origin::measured;
  std::string device;              // "NVIDIA H100 SXM", or empty when unknown
  std::string method;              // one sentence: how the numbers were obtained
  std::string software;            // "LibTorch 2.13.0, MKL 2024.2, oneDNN 3.7", or empty
  std::string settings;            // "fp32, 1 thread on core 0, momentum", or empty
  std::string source;              // a paper, repository or command
  std::string date;                // ISO 8601, or empty
  std::vector<std::string> notes;  // what was estimated, split, scaled or fitted, one sentence each

  friend bool operator==(const Provenance&, const Provenance&) = default;
};

/// The whole model run plainly (forward, autograd's backward, optimizer step), by turns with the
/// layers: what their times must add up to.
struct WholeRun {
  int samples = 0;  // of each time, the layers' too; 0: not measured
  Time forward{};   // medians
  Time backward{};  //
  Time update{};    //
  Time spread{};    // half the interquartile range of the three together
  Time noise{};     // how far medians of the three together differ from one half of the samples to
                    // the other: what smaller differences mean nothing against

  friend bool operator==(const WholeRun&, const WholeRun&) = default;
};

/// Layers in topological order. `edges` empty means a chain.
struct Model {
  std::string name;
  int batch = 0;            // samples in one micro-batch; 0: unknown
  std::string sample = "";  // what a sample is: "image", "sequence"; empty: "sample"
  std::vector<Layer> layers;
  std::vector<LayerEdge> edges;
  Bytes input{};            // of one micro-batch, held by the first layer for its backward
  bool bytes_known = true;  // false: all bytes are 0 because none were measured
  WholeRun whole;
  Provenance provenance;

  friend bool operator==(const Model&, const Model&) = default;
};

/// The edges of the model, sorted by (from, to); those of the chain when none are stated.
std::vector<LayerEdge> edges_of(const Model& model);

/// The same model with its layers renumbered in a topological order that keeps the given order
/// wherever it can (Boost.Graph). Throws TraceError, which names the layers, on a cycle, and on an
/// edge whose ends are not layers. `file` is for the message only.
Model in_topological_order(Model model, const std::string& file);

/// One micro-batch through every layer on one device: forward + backward, without updates. Throws
/// UsageError where that is longer than `longest_run`.
Time forward_backward(const Model& model);

}  // namespace stageline
