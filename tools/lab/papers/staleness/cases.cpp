// The nets and cases, as values. The settings were chosen so that plain training does well and
// staleness has an effect: a momentum of 0.9 and small batches. All cases of a net share them.
#include "tools/lab/papers/staleness/cases.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "sim/base/errors.hpp"

namespace stageline::lab {
namespace {

struct GroupName {
  StudyGroup group;
  std::string_view name;
};
constexpr std::array<GroupName, 7> group_names = {{{StudyGroup::plain, "plain"},
                                                   {StudyGroup::depth, "depth"},
                                                   {StudyGroup::sliding, "sliding"},
                                                   {StudyGroup::hybrid, "hybrid"},
                                                   {StudyGroup::correction, "correction"},
                                                   {StudyGroup::gentle, "gentle"},
                                                   {StudyGroup::optimizer, "optimizer"}}};

constexpr std::int64_t optimizer_steps = 500;  // of each run of the group

// Builds the cases of one net in sequence.
class Cases {
 public:
  Cases(std::int64_t steps, double rate) : steps_(steps), rate_(rate) {}

  void plain(int pair) { add(StudyGroup::plain, "non-pipelined", {pair}).pipelined = 0; }
  void depth(const std::vector<int>& ppv) {
    StudyCase& one = add(StudyGroup::depth, "", ppv);
    one.name = fmt::format("{}-stage", stages_of(one));
    deepest_ = ppv;
  }
  void sliding(int pair) { add(StudyGroup::sliding, fmt::format("pair behind {}", pair), {pair}); }
  void hybrid(std::int64_t part, std::int64_t of) {
    add(StudyGroup::hybrid, fmt::format("switch at {}/{}", part, of), deepest_).pipelined =
        steps_ * part / of;
  }
  void correction(const std::string& name, int kept_beside = 0) {
    StudyCase& one = add(StudyGroup::correction, name, deepest_);
    one.correction = name;
    one.kept_beside = kept_beside;
  }
  // Another schedule over the same stages.
  StudyCase& schedule(const std::string& name, const std::string& title) {
    StudyCase& one = add(StudyGroup::correction, title, deepest_);
    one.schedule = name;
    return one;
  }
  void gentle(double rate) {
    StudyCase& plain = add(StudyGroup::gentle, "non-pipelined", {deepest_.front()});
    plain.pipelined = 0;
    plain.rate = rate;
    StudyCase& deep = add(StudyGroup::gentle, "", deepest_);
    deep.name = fmt::format("{}-stage", stages_of(deep));
    deep.rate = rate;
  }
  void gentle_correction(double rate, const std::string& name, int kept_beside) {
    StudyCase& one = add(StudyGroup::gentle, name, deepest_);
    one.correction = name;
    one.kept_beside = kept_beside;
    one.rate = rate;
  }

  // An optimizer without delay, and under that of schedules over the stages of the deepest
  // pipeline.
  void optimizer(const StudyCase& with, const std::vector<std::string>& schedules) {
    late(with, "non-pipelined", "stale_weights").pipelined = 0;
    for (const std::string& schedule : schedules) late(with, schedule, schedule);
  }
  void feedback(const StudyCase& with, const std::vector<std::string>& schedules) {
    for (const std::string& schedule : schedules) {
      late(with, schedule + ", error_feedback", schedule).correction = "error_feedback";
    }
  }

  std::vector<StudyCase> take() { return std::move(cases_); }

 private:
  StudyCase& late(const StudyCase& with, const std::string& name, const std::string& schedule) {
    StudyCase one = with;
    one.group = StudyGroup::optimizer;
    one.name = fmt::format("{}: {}", with.title, name);
    one.ppv = deepest_;
    one.steps = one.pipelined = optimizer_steps;
    one.schedule = schedule;
    one.microbatches = schedule == "pipedream_2bw" ? 8 : 1;
    cases_.push_back(std::move(one));
    return cases_.back();
  }

  StudyCase& add(StudyGroup group, const std::string& name, const std::vector<int>& ppv) {
    StudyCase one;
    one.group = group;
    one.name = name;
    one.ppv = ppv;
    one.pipelined = steps_;
    one.rate = rate_;
    cases_.push_back(std::move(one));
    return cases_.back();
  }

  std::int64_t steps_;
  double rate_;
  std::vector<int> deepest_;
  std::vector<StudyCase> cases_;
};

// Each rate is the better of two in plain training of seed 1: 0.05 and 0.1 for Nesterov, 0.001 and
// 0.003 for Adam and Muon. That of momentum is the study's.
StudyCase with_optimizer(const std::string& title, const std::string& optimizer, double rate,
                         double momentum, const std::string& correction = "none") {
  StudyCase one;
  one.title = title;
  one.optimizer = optimizer;
  one.rate = rate;
  one.momentum = momentum;
  one.correction = correction;
  return one;
}

StudyNet lenet5() {
  StudyNet net;
  net.name = net.model = "lenet5";
  net.title = "LeNet-5";
  net.trace = "lenet5-cpu";
  net.data = "digits,train=6000,test=2000";
  net.batch = 32;
  net.steps = 1500;
  net.reduced =
      "8 passes over 6000 drawn digits instead of MNIST's 60 000, a batch of 32, a constant rate";
  Cases cases(net.steps, 0.005);
  cases.plain(1);
  cases.depth({1});
  cases.depth({1, 2});
  cases.depth({1, 2, 3});
  cases.depth({1, 2, 3, 4});
  cases.hybrid(1, 4);
  cases.hybrid(1, 2);
  cases.hybrid(3, 4);
  // With a free clock, no stage that need not wait for its weights to be read is held back, and the
  // delays differ; in lockstep they are equal.
  cases.schedule("stale_weights:clock=lockstep", "stash, in lockstep").correction = "stash";
  cases.correction("moving_average", 1);
  cases.correction("weight_prediction", 1);
  cases.correction("spike_compensation");
  cases.correction("weight_prediction+spike_compensation", 1);
  cases.correction("rate_by_delay");
  cases.schedule("pipedream", "schedule pipedream: stash");
  cases.schedule("pipedream", "schedule pipedream: vertical_sync").correction = "vertical_sync";
  cases.schedule("pipedream_2bw", "schedule pipedream_2bw: double_buffer, 8 × 4 images")
      .microbatches = 8;
  cases.gentle(0.001);
  cases.gentle_correction(0.001, "spike_compensation", 0);
  cases.gentle_correction(0.001, "weight_prediction+spike_compensation", 1);
  cases.gentle_correction(0.001, "rate_by_delay", 0);
  for (const StudyCase& one : {with_optimizer("momentum", "momentum", 0.005, 0.9),
                               with_optimizer("Nesterov", "momentum", 0.1, 0.99, "nesterov")}) {
    cases.optimizer(one, {"stale_weights", "pipedream"});
  }
  for (const StudyCase& one :
       {with_optimizer("Adam", "adam", 0.003, 0.9), with_optimizer("Muon", "muon", 0.003, 0.95)}) {
    cases.optimizer(one, {"stale_weights", "pipedream_2bw"});
    cases.feedback(one, {"pipedream_2bw"});
  }
  net.cases = cases.take();
  return net;
}

StudyNet resnet20() {
  StudyNet net;
  net.name = net.model = "resnet20";
  net.title = "ResNet-20";
  net.trace = "model:resnet20@gtx1060,width=4";
  net.link = "12GB/s,5us";
  net.data = "textures,train=4000,test=1000,noise=5,mix=0,warp=50";
  net.batch = 32;
  net.steps = 1000;
  net.milestones = {800};
  net.reduced =
      "4, 8 and 16 channels instead of 16, 32 and 64; 8 passes over 4000 drawn textures instead of "
      "CIFAR-10's 50 000 photographs, a batch of 32, the rate a tenth in the last fifth";
  Cases cases(net.steps, 0.03);
  cases.plain(7);
  cases.depth({7});
  cases.depth({7, 13});
  cases.depth({7, 13, 19});
  cases.depth({5, 9, 13, 17});
  for (const int pair : {3, 11, 15, 19}) cases.sliding(pair);
  cases.hybrid(1, 4);
  cases.hybrid(1, 2);
  cases.gentle(0.006);
  net.cases = cases.take();
  return net;
}

// A net of full width, trained for 51 passes over CIFAR-10 or as many drawn textures. `pairs`: the
// register pairs of the deepest pipeline, whose first ones those of the others are; empty
// `deepest`: it is one of these.
StudyNet full(const std::string& model, const std::string& title, const std::string& data,
              double rate, const std::vector<int>& pairs, const std::vector<int>& deepest) {
  const bool drawn = data == "textures";
  StudyNet net;
  net.name = model + "-" + data;
  net.title = title + (drawn ? ", full width" : ", CIFAR-10");
  net.model = model;
  net.trace = fmt::format("model:{}@gtx1060", model);
  net.link = "12GB/s,5us";
  net.data = drawn ? "textures,train=50000,test=10000" : "cifar10:cifar-10-batches-bin";
  net.batch = 128;
  net.steps = 20'000;
  net.milestones = {10'000, 15'000};
  net.weight_decay = 1e-4;
  net.augment = true;
  net.large = true;
  net.reduced = drawn ? "drawn textures instead of CIFAR-10" : "51 passes over the images";
  Cases cases(net.steps, rate);
  cases.plain(pairs.front());
  for (std::size_t some = 1; some <= pairs.size(); ++some) {
    cases.depth({pairs.begin(), pairs.begin() + static_cast<std::ptrdiff_t>(some)});
  }
  if (!deepest.empty()) cases.depth(deepest);
  cases.hybrid(1, 2);
  net.cases = cases.take();
  return net;
}

std::string number(double value) { return fmt::format("{}", value); }

}  // namespace

std::string_view name(StudyGroup group) {
  for (const GroupName& one : group_names) {
    if (one.group == group) return one.name;
  }
  return "";
}

StudyGroup study_group(const std::string& name) {
  std::vector<std::string> known;
  for (const GroupName& one : group_names) {
    if (one.name == name) return one.group;
    known.emplace_back(one.name);
  }
  throw UsageError(
      fmt::format("there is no group \"{}\" of cases{}", name, did_you_mean(name, known)));
}

const std::vector<StudyNet>& staleness_nets() {
  // The first register pair of each is at its position in the paper's table 9, or table 5.
  static const std::vector<StudyNet> nets = {
      lenet5(),
      resnet20(),
      full("resnet20", "ResNet-20", "textures", 0.1, {7, 13, 19}, {5, 9, 13, 17}),
      full("resnet20", "ResNet-20", "cifar10", 0.1, {7, 13, 19}, {5, 9, 13, 17}),
      full("resnet56", "ResNet-56", "cifar10", 0.1, {19, 37, 55}, {11, 23, 35, 47}),
      full("vgg16_cifar", "VGG-16", "cifar10", 0.01, {2, 4, 7, 10}, {}),
      full("alexnet_cifar", "AlexNet", "cifar10", 0.01, {3, 4, 5, 6}, {})};
  return nets;
}

const StudyNet& staleness_net(const std::string& name) {
  std::vector<std::string> known;
  for (const StudyNet& net : staleness_nets()) {
    if (net.name == name) return net;
    known.push_back(net.name);
  }
  throw UsageError(fmt::format("the staleness study has no net \"{}\"{}; it has {}", name,
                               did_you_mean(name, known), fmt::join(known, ", ")));
}

std::int64_t steps_of(const StudyNet& net, const StudyCase& one) {
  return one.steps > 0 ? one.steps : net.steps;
}

int stages_of(const StudyCase& one) { return 2 * (static_cast<int>(one.ppv.size()) + 1); }

std::vector<std::string> train_arguments(const StudyNet& net, const StudyCase& one,
                                         std::uint64_t seed) {
  // Every forward and every backward stage on its own device, except the last pair; other schedules
  // put both passes of a stage on one device.
  const std::size_t pairs = one.ppv.size();
  const std::size_t devices =
      one.schedule.rfind("stale_weights", 0) == 0 ? 2 * pairs + 1 : pairs + 1;
  std::vector<std::string> all = {net.trace};
  const auto add = [&](const std::string& flag, const std::string& value) {
    all.push_back(flag);
    all.push_back(value);
  };
  if (!net.link.empty()) add("--link", net.link);
  add("--schedule", one.schedule);
  add("--partition", fmt::format("ppv:{}", fmt::join(one.ppv, ",")));
  add("--devices", fmt::format("{}", devices));
  add("--microbatch-size", fmt::format("{}", net.batch / one.microbatches));
  if (one.microbatches > 1) add("--microbatches", fmt::format("{}", one.microbatches));
  add("--data", net.data);
  const std::int64_t steps = steps_of(net, one);
  add("--steps", fmt::format("{}", steps));
  if (one.pipelined < steps) {
    add("--pipelined-steps", fmt::format("{}", one.pipelined));
  }
  if (one.correction != "none") add("--correction", one.correction);
  add("--optimizer", one.optimizer);
  add("--rate", number(one.rate));
  add("--momentum", number(one.momentum));
  if (net.weight_decay > 0) add("--weight-decay", number(net.weight_decay));
  if (net.augment) all.emplace_back("--augment");
  if (!net.milestones.empty()) {
    add("--milestones", fmt::format("{}", fmt::join(net.milestones, ",")));
  }
  add("--evaluate-every", fmt::format("{}", steps / 4));
  add("--seed", fmt::format("{}", seed));
  return all;
}

std::string train_command(const StudyNet& net, const StudyCase& one, std::uint64_t seed) {
  return fmt::format("stageline-train {}", fmt::join(train_arguments(net, one, seed), " "));
}

}  // namespace stageline::lab
