// The staleness study, as a table: the loss of accuracy by stale weights, by depth of the pipeline,
// by the share of the weights that are stale, with hybrid training and with corrections.
//
//     net        plain   4-, 6-, 8-, 10-stage   one pair, sliding   hybrid   corrections   gentle
//     optimizers lenet5       x             x                                    x           x x x
//     resnet20     x             x                      x             x                      x
//     large ones   x             x                                    x
//
// A "2(K+1)-stage" pipeline has K register pairs (Zhang and Abdelrahman, arXiv 1912.12675).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stageline::lab {

enum class StudyGroup : std::uint8_t {
  plain,       // non-pipelined, the reference of all others
  depth,       // 4-, 6-, 8-, 10-stage
  sliding,     // one register pair at later and later layers: more and more stale weights
  hybrid,      // the deepest pipeline for a part of the steps
  correction,  // the deepest pipeline with a correction
  gentle,      // plain and the deepest again at a lower rate, and the corrections there
  optimizer,   // other optimizers, plain and late, and what is done about it
};
std::string_view name(StudyGroup group);
/// The group of that name; throws UsageError with the nearest name.
StudyGroup study_group(const std::string& name);

struct StudyCase {
  StudyGroup group = StudyGroup::plain;
  std::string name;                        // "10-stage", "switch at 1/2"
  std::vector<int> ppv;                    // layers with weights before each register pair
  std::int64_t steps = 0;                  // 0: the net's
  std::int64_t pipelined = 0;              // of these
  std::string correction = "none";         // as --correction takes it
  std::string schedule = "stale_weights";  // by name
  int microbatches = 1;  // per update: 1 where the schedule updates after every mini-batch
  double rate = 0;       // learning rate
  int kept_beside = 0;   // tensors that the correction keeps per version of a weight
  std::string optimizer = "momentum";
  double momentum = 0.9;
  std::string title;  // of the group of optimizers: "Nesterov"
};

struct StudyNet {
  std::string name;   // "lenet5"; as in --only
  std::string title;  // "LeNet-5"
  std::string model;  // built-in, without options: the model with figures in the paper
  std::string trace;  // source of the simulated steps' costs
  std::string link;   // of the simulated devices; empty: as the trace's
  std::string data;   // as in --data
  int batch = 1;      // images of an update
  std::int64_t steps = 0;
  std::vector<std::int64_t> milestones;  // steps after which the rate drops to a tenth
  double weight_decay = 0;
  bool augment = false;  // --augment
  bool large = false;    // for a GPU: only where it is named
  std::string reduced;   // how it is smaller than the paper's experiment: one sentence
  std::vector<StudyCase> cases;
};

/// In the order of the report.
const std::vector<StudyNet>& staleness_nets();

/// The net of that name; throws UsageError with the nearest name.
const StudyNet& staleness_net(const std::string& name);

/// How long the case is trained: its own steps, or else the net's.
std::int64_t steps_of(const StudyNet& net, const StudyCase& one);

/// 2(K+1), for K register pairs.
int stages_of(const StudyCase& one);

/// The arguments of stageline-train for this run, in full: the run can be made by hand.
std::vector<std::string> train_arguments(const StudyNet& net, const StudyCase& one,
                                         std::uint64_t seed);
/// The same as a command line.
std::string train_command(const StudyNet& net, const StudyCase& one, std::uint64_t seed);

}  // namespace stageline::lab
