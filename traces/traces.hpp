// Readers and writers of traces and clusters. Formats: traces/README.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster.hpp"
#include "sim/model.hpp"

namespace stageline {

/// A native trace: the same layers at one or more batch sizes, ascending. Throws TraceError with
/// the JSON pointer of the offending value, or line and column where it is not JSON.
std::vector<Model> read_trace(const std::string& json_text, const std::string& file);

/// The same as text; read_trace restores identical models. The models must be in topological order
/// and ascend in batch size. Throws UsageError when they differ in a field that a trace holds once
/// (names, kinds, weights, edges, provenance), or when only some of them have a whole run.
std::string write_trace(const std::vector<Model>& models);

/// A PipeDream (or DAPPLE) profile, graph.txt. `batch` is the number of samples per minibatch, 0
/// when unknown: the file does not record it. Throws TraceError with the line.
Model read_pipedream_profile(const std::string& text, const std::string& file, int batch);

/// "uniform:layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms,output=1MB,weights=4MB,stash=1MB,
/// update=0,batch=1" (these are the defaults; the prefix may be left out): a chain of equal layers,
/// for closed forms. The stash is as large as the output unless given, and all of it is kept until
/// W. Throws UsageError.
Model uniform_model(const std::string& options);

/// How the machines of a cluster file are used.
struct ClusterUse {
  int times = 1;  // as many of them, joined by the file's "network"; the name then is "h100x8*4"
  bool groups = false;   // ranks of several devices run on them: the overlap of "network" applies,
                         // and kinds have the memory of "driver", as for several machines
  bool driver = false;   // kinds have the memory of "driver"
  bool overlap = false;  // the overlap of "network" applies
};

/// A cluster file, its machines one by one. Throws TraceError with the JSON pointer.
Cluster read_cluster(const std::string& json_text, const std::string& file,
                     const ClusterUse& use = {});

/// The same as text; read_cluster restores an identical cluster. Throws UsageError for a cluster
/// that the format cannot express, and TraceError for an invalid name.
std::string write_cluster(const Cluster& cluster);

/// A file bundled in the binary, by name, from traces/data/.
struct Bundled {
  std::string_view name;  // "h100x8", "resnet50-h100"
  std::string_view text;  // JSON
};
const std::vector<Bundled>& bundled_clusters();
const std::vector<Bundled>& bundled_traces();
/// {"format": "stageline-kinds 1", "kinds": […]}: kinds of devices that no bundled cluster has.
const std::vector<Bundled>& bundled_kind_lists();

/// The device kinds of a bundled file, and of all of them, each once; with the memory that the
/// driver reports, and its reserve, or with that of the data sheet. Throw TraceError.
std::vector<DeviceKind> kinds_of(const Bundled& bundled, bool driver = false);
std::vector<DeviceKind> bundled_kinds(bool driver = false);

}  // namespace stageline
