// The model to train: its layers, with costs on the device they were measured on (or priced for),
// and the edges between them.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "sim/base/units.hpp"

namespace stageline {

/// A collective among the ranks that share a layer, or replicate it.
enum class CollectiveKind : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast,
};
inline constexpr std::array all_collective_kinds{
    CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather,
    CollectiveKind::all_to_all, CollectiveKind::broadcast};
/// "all_reduce", as in traces.
std::string_view name(CollectiveKind kind);

/// A kind of parallelism, with a group of ranks of its own.
enum class Dimension : std::uint8_t { tensor, context, expert, data, pipeline, expert_tensor };
/// Those that nest the ranks on the devices.
inline constexpr std::array nested_dimensions{
    Dimension::tensor, Dimension::context, Dimension::expert, Dimension::data, Dimension::pipeline};
/// Those, and the tensor parallelism of experts alone, whose groups are among the same devices.
inline constexpr std::array all_dimensions{Dimension::tensor,   Dimension::context,
                                           Dimension::expert,   Dimension::data,
                                           Dimension::pipeline, Dimension::expert_tensor};
/// "tp", "cp", "ep", "dp", "pp", "etp".
std::string_view name(Dimension dimension);

/// How the rows of an all-to-all reach the experts of their tokens, and come back. Each row travels
/// by itself, as with NCCL, unless a dispatcher sends a token once to each machine.
struct TokenRouting {
  std::string dispatcher;  // "deepep": of dispatchers(); empty: none, and the rest is unused
  bool combine = false;    // back: rows of a token are summed before they leave a machine
  int chosen = 1;          // experts of a token, which are the rows that it has
  int groups = 1;          // equal ones of experts, of which a token's experts
  int chosen_groups = 1;   // are in so many (DeepSeek's node-limited routing); 1 of 1: in any
  friend bool operator==(const TokenRouting&, const TokenRouting&) = default;
  // libc++ 14, by which the playground is made, cannot compare texts by <=>.
  friend bool operator<(const TokenRouting& one, const TokenRouting& other) {
    const auto key = [](const TokenRouting& of) {
      return std::tie(of.dispatcher, of.combine, of.chosen, of.groups, of.chosen_groups);
    };
    return key(one) < key(other);
  }
};

/// Which ranks of a group a collective is among, and how it moves what they have.
struct GroupUse {
  int part = 0;         // neighbours in the group that are one part of it; 0: the group is one
  bool across = false;  // among the ranks at the same place of all parts; else within each part
  int blocks = 0;       // one a rank, which go round the ranks by messages, a step each; 0: by a
                        // collective of the library's choice
  friend auto operator<=>(const GroupUse&, const GroupUse&) = default;
};

/// A collective of a layer, for one micro-batch: blocking, part of F, I or W.
struct LayerCollective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Dimension group = Dimension::tensor;
  Bytes bytes{};        // of the full tensor a rank: what is reduced, gathered, scattered or sent
  int forward = 0;      // how many of them in F (and in R)
  int input_grad = 0;   // in I
  int weight_grad = 0;  // in W
  TokenRouting routing{};
  double hidden = 0;  // the share of their time that runs under the products beside them, 0 to 1;
  Time forward_beside{};   // no more than these take, in all of F
  Time backward_beside{};  // and of I
  GroupUse use{};
  friend bool operator==(const LayerCollective&, const LayerCollective&) = default;
};

/// A part of a layer's forward that recomputation may repeat alone, for one micro-batch.
struct LayerModule {
  std::string name;                            // as Megatron-Core calls it: "moe_act"
  Time forward{};                              // that R takes for it, without collectives
  Bytes stash{};                               // of the layer's, what R makes again
  std::int64_t flops = 0;                      // of that R, as Layer::forward_flops; 0: unknown
  std::vector<LayerCollective> collectives{};  // those that R repeats: `forward` of each
  friend bool operator==(const LayerModule&, const LayerModule&) = default;
};

/// Times and bytes of one layer for one micro-batch of `Model::batch` samples; weights, gradients
/// and optimizer state do not depend on the batch.
struct Layer {
  std::string name;
  std::string kind;               // "conv", "linear", "norm", ...: free text, for people
  Time forward{};                 // F
  Time input_grad{};              // I: dL/d(input)
  Time weight_grad{};             // W: dL/d(weights)
  Time lone_weight_grad{};        // W where no device runs both it and the whole of I: it makes the
                                  // gradients inside the layer, too; 0: as weight_grad
  Time backward{};                // B: I and W in one op; a reader of both halves sets their sum
  Time update{};                  // the optimizer's step on this layer's weights
  Time recompute{};               // added to F and B where F runs again before B; 0: as long as F
  Time forward_spread{};          // half the interquartile range over the samples; 0: not measured
  Time input_grad_spread{};       // as forward_spread
  Time weight_grad_spread{};      // as forward_spread
  Time backward_spread{};         // as forward_spread
  Time update_spread{};           // as forward_spread
  Bytes weights{};                // one version of the parameters
  Bytes tied_weights{};           // of those: another layer's, of which it holds a copy
  Bytes shared_weights{};         // not in those: another layer's on the same device, read as well
  Bytes gradients{};              // weight gradients, usually as large as the weights
  Bytes optimizer_state{};        // moments and the like
  Bytes output{};                 // read by the next layers; the gradient sent back is as large
  Bytes stash_input_grad{};       // held from F for I alone, freed when I ends
  Bytes stash_weight_grad{};      // held from F for W (or for both), freed when W ends
  Bytes stash_gradient{};         // output gradients that I adds for W, beyond what I frees
  Bytes keys_values{};            // of the stash: what later slices of its sequence attend to, so
                                  // that it is kept even if the rest is recomputed
  Bytes earlier_gradients{};      // of keys and values of earlier slices: what its backward leaves
                                  // for theirs, less what it takes of later ones'; often negative
  Bytes input_kept{};             // the part of its (last) input that its backward reads, and
  Bytes output_kept{};            // of its output: counted above at the first layer that reads the
                                  // tensor, and again if a cut separates the two; 0: unknown
  Bytes forward_workspace{};      // needed only while its F runs
  Bytes backward_workspace{};     // needed only while its B runs
  Bytes input_grad_workspace{};   // needed only while its I runs
  Bytes weight_grad_workspace{};  // needed only while its W runs behind a separate I
  Bytes workspace{};              // needed only while one of the layer's ops runs
  std::int64_t parameters = 0;    // number, as counted in the literature; 0: unknown
  bool memory_bound = false;      // its time follows the memory's rate, not the arithmetic's
  Time selective_forward{};       // the part of `forward` that selective recomputation repeats, and
  Bytes selective_stash{};        // the part of the stash that it rebuilds: attention's scores
  std::vector<LayerCollective> collectives{};  // not in the times above
  std::int64_t forward_flops = 0;    // of F on this rank, as the literature counts them: products,
  std::int64_t backward_flops = 0;   // attention's over all seq² pairs; of I and W together. 0:
  std::int64_t selective_flops = 0;  // unknown. Of what selective recomputation repeats
  std::int64_t expert_parameters = 0;  // of `parameters`: those of experts, which are divided among
                                       // the expert-parallel ranks already
  std::vector<LayerModule> modules{};  // no two of a name; one may be part of another

  /// W where no device runs both it and the whole of I.
  Time weight_grad_alone() const {
    return lone_weight_grad > Time{} ? lone_weight_grad : weight_grad;
  }
  friend bool operator==(const Layer&, const Layer&) = default;
};

/// A tensor that layer `from` produces and layer `to` reads.
struct LayerEdge {
  int from = 0;
  int to = 0;
  friend auto operator<=>(const LayerEdge&, const LayerEdge&) = default;
};

enum class Origin : std::uint8_t { measured, estimated, synthetic };
/// "measured", "estimated", "synthetic": the spelling of traces, tables and JSON.
std::string_view name(Origin origin);

/// The origin of the numbers, so that no table shows an estimate as a measurement.
struct Provenance {
  Origin origin = Origin::measured;
  std::string device;              // "NVIDIA H100 SXM", or empty when unknown
  std::string method;              // one sentence: how the numbers were obtained
  std::string software;            // "LibTorch 2.13.0, MKL 2024.2, oneDNN 3.7", or empty
  std::string settings;            // "fp32, 1 thread on core 0, momentum", or empty
  std::string source;              // a paper, repository or command
  std::string date;                // ISO 8601, or empty
  std::vector<std::string> notes;  // estimates, splits, scalings and fits, one sentence each

  friend bool operator==(const Provenance&, const Provenance&) = default;
};

/// Times of the whole model run without pipeline (forward, autograd's backward, optimizer step),
/// measured alternately with the layers: the reference for the sum of the layers' times.
struct WholeRun {
  int samples = 0;  // per time, also of the layers' times; 0: not measured
  Time forward{};   // medians
  Time backward{};  // median
  Time update{};    // median
  Time spread{};    // half the interquartile range of the three together
  Time noise{};     // difference of the medians of the three together between two halves of the
                    // samples: smaller differences are not significant

  friend bool operator==(const WholeRun&, const WholeRun&) = default;
};

/// The degrees by which the layers of a model are already divided: its times and bytes are those of
/// one rank.
struct Sharding {
  int tensor = 1;
  int context = 1;
  int expert = 1;
  bool sequence = false;  // norms and dropouts divided by the tensor degree, too
  int expert_tensor = 0;  // ranks that share each expert; 0: as many as `tensor`

  int expert_tensor_ranks() const { return expert_tensor > 0 ? expert_tensor : tensor; }
  /// Whether experts are divided by another tensor degree than the rest.
  bool folded() const { return expert_tensor_ranks() != tensor; }
  friend bool operator==(const Sharding&, const Sharding&) = default;
};

/// Layers of an encoder that stand before the model's own, divided by a tensor degree of their own.
struct EncoderLayers {
  int count = 0;  // the first of the layers; 0: there is none
  int tensor = 1;
  bool frozen = false;  // not trained: it has no backward, gradients nor optimizer state
  friend bool operator==(const EncoderLayers&, const EncoderLayers&) = default;
};

/// Layers in topological order. `edges` empty means a chain.
struct Model {
  std::string name;
  int batch = 0;            // samples in one micro-batch; 0: unknown
  std::string sample = "";  // name of a sample: "image", "sequence"; empty: "sample"
  std::vector<Layer> layers;
  std::vector<LayerEdge> edges;
  Bytes input{};            // per micro-batch, held by the first layer for its backward
  bool bytes_known = true;  // false: all bytes are 0 because none were measured
  WholeRun whole;
  Provenance provenance;
  Sharding sharding{};
  std::int64_t tokens = 0;      // of a sample, over all ranks that share it; 0: not of tokens
  std::int64_t parameters = 0;  // of the whole, undivided model; 0: unknown
  double peak_flops = 0;        // per second, of the device that it is priced for or was measured
                                // on, in the number format of its products; 0: unknown
  EncoderLayers encoder{};

  friend bool operator==(const Model&, const Model&) = default;
};

/// The edges of the model, sorted by (from, to); the edges of a chain when none are stated.
std::vector<LayerEdge> edges_of(const Model& model);

/// The same model with its layers renumbered in a topological order that keeps the given order
/// where possible (Boost.Graph). Throws TraceError, which names the layers, on a cycle, and on an
/// edge whose ends are not layers. `file` is used only in the message.
Model in_topological_order(Model model, const std::string& file);

/// Time of one micro-batch through every layer on one device: forward + backward, without updates.
/// Throws UsageError where that is longer than `longest_run`.
Time forward_backward(const Model& model);

}  // namespace stageline
