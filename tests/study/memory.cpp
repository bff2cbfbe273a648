// What answers say about a peak of memory: the op, the categories, the reserve.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/transformers/priced_language.hpp"
#include "sim/analysis/memory_categories.hpp"
#include "sim/base/index.hpp"
#include "tests/study/uniform.hpp"
#include "tests/text.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/report/text/memory_peak.hpp"
#include "tools/study/figures/notes.hpp"
#include "tools/study/figures/reported_memory.hpp"
#include "tools/study/study.hpp"

namespace stageline::memory_tests {
namespace {

using test::contains;
using test::uniform_case;

nlohmann::json devices_json(const Case& asked, const Outcome& outcome) {
  Setting setting;
  setting.model = asked.model;
  return nlohmann::json::parse(report::outcome_json(setting, asked, outcome, false))
      .at("per_device");
}

TEST_CASE("the peak in words: when, at which op, and what is held, the largest first") {
  // Stage 0 of 1F1B: two layers of 4 MB weights and 4 MB gradients, four stashes of 2 MB, and 1 MB
  // of output while F runs.
  const Outcome outcome = study(uniform_case("1f1b", 4, 8));
  const std::string sentence = report::peak_sentence(outcome, 0);
  CHECK(contains(sentence, "gpu0 peaks at 25.00 MB at "));
  CHECK(contains(sentence, " while 0F3 (forward of micro-batch 3 in stage 0) runs: "));
  CHECK(contains(sentence, "8.000 MB stash (4 micro-batches)"));
  CHECK(contains(sentence, "8.000 MB weights"));
  CHECK(contains(sentence, "8.000 MB gradients"));
  CHECK(sentence.ends_with(", 1.000 MB workspace"));
  CHECK(report::peak_lines(outcome, false) == sentence + "\n");
  CHECK(report::peak_lines(outcome, true).find("\ngpu3 peaks at ") != std::string::npos);
}

TEST_CASE("of a device with several stages the sentence counts stashes") {
  CHECK(contains(report::peak_sentence(study(uniform_case("interleaved_1f1b", 2, 4)), 0),
                 " stashes)"));
}

TEST_CASE("near the limit a peak fits to the byte into the memory less the reserve") {
  Case asked = uniform_case("1f1b", 4, 8);
  const Bytes peak = study(asked).memory.device[0].peak;
  const Bytes reserve{3'000'000};
  for (const std::int64_t more : {-1, 0, 1}) {
    for (Device& device : asked.cluster.devices) {
      device.memory = peak + reserve + Bytes{more};
      device.reserve = reserve;
    }
    CHECK(study(asked).fit == (more < 0 ? Fit::no : Fit::yes));
  }
  // A rank of several devices has what training can fill of the fullest of them.
  Cluster cluster = uniform_cluster(8, std::nullopt, Bytes{90'000'000});
  cluster.devices[1].reserve = Bytes{10'000'000};
  cluster.devices[0].memory = Bytes{85'000'000};
  cluster.devices[3].memory = Bytes{70'000'000};
  cluster.devices[2].reserve = Bytes{1'000'000};
  Degrees degrees;
  degrees.tensor = 2;
  degrees.pipeline = 4;
  const RankedCluster ranked(cluster, degrees);
  CHECK(usable_memory(ranked.ranks().devices[0]) == Bytes{80'000'000});
  CHECK(usable_memory(ranked.ranks().devices[1]) == Bytes{70'000'000});
}

TEST_CASE("the reserve of a device is beside its peak, in words and in JSON") {
  Case asked = uniform_case("1f1b", 4, 8);
  const Bytes peak = study(asked).memory.device[0].peak;
  asked.cluster.devices[0].reserve = Bytes{3'000'000};
  const Outcome outcome = study(asked);
  CHECK(outcome.memory.device[0].peak == peak);
  CHECK(report::peak_sentence(outcome, 0).ends_with("; beside it 3.000 MB of reserve"));
  const auto devices = devices_json(asked, outcome);
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const auto& use = devices[d].at("peak_by_category");
    CHECK(use.size() == memory_categories);
    CHECK(use.at("reserve") == (d == 0 ? 3'000'000 : 0));
    std::int64_t sum = 0;
    for (const auto& bytes : use) sum += bytes.get<std::int64_t>();
    CHECK(sum - use.at("reserve").get<std::int64_t>() == devices[d].at("peak_bytes"));
    const std::int64_t stash = use.at("stash_weight_grad").get<std::int64_t>() +
                               use.at("stash_input_grad").get<std::int64_t>() +
                               use.at("stash_gradients").get<std::int64_t>() +
                               use.at("stash_boundary").get<std::int64_t>();
    CHECK(stash == devices[d].at("at_peak_bytes").at("stash"));
  }
  CHECK(devices[0].at("peak_op") ==
        nlohmann::json::parse(R"({"op":"0F3","stage":0,"microbatch":3,"moment":"runs"})"));
}

TEST_CASE("counters of a language model's run read more than its tensors") {
  Case asked = uniform_case("1f1b", 4, 8);
  CHECK(!reported_memory(asked, study(asked), 0));
  CHECK(reported_line(asked, study(asked)).empty());
  CHECK(!devices_json(asked, study(asked))[0].contains("reported_bytes"));
  asked.model.tokens = 2048;
  const Outcome outcome = study(asked);
  const std::optional<ReportedMemory> read = reported_memory(asked, outcome, 0);
  REQUIRE(read);
  CHECK(read->allocated == Bytes{25'000'000});
  CHECK(read->reserved == Bytes{26'325'000});
  CHECK(read->least_reserved == Bytes{25'700'000});
  CHECK(read->most_reserved == Bytes{27'325'000});
  CHECK(!read->driver);
  CHECK(reported_line(asked, outcome) ==
        "torch would report 25.00 MB allocated and 26.32 MB reserved (25.70 MB to 27.32 MB: its "
        "allocator rounds and fragments)\n");
  const nlohmann::json device = devices_json(asked, outcome)[0];
  CHECK(device.at("reported_bytes").at("allocated") == device.at("peak_bytes"));
  CHECK(device.at("reported_bytes").at("reserved") == 26'325'000);
  CHECK(device.at("reported_bytes").at("driver").is_null());
  asked.cluster.devices[0].reserve = Bytes{3'000'000};
  CHECK(reported_memory(asked, study(asked), 0)->driver == Bytes{29'325'000});
  CHECK(contains(reported_line(asked, study(asked)), ", nvidia-smi 29.32 MB with context, NCCL"));
  Outcome without = outcome;
  without.costs.bytes_known = false;
  CHECK(!reported_memory(asked, without, 0));
}

TEST_CASE("pipelines of 2021 reserve more beyond their tensors") {
  Case asked = uniform_case("1f1b", 4, 8);
  asked.model.tokens = 2048;
  const auto reserved = [&](std::string_view software) {
    asked.model.provenance.method = std::string(language_method) + " in bf16";
    asked.model.provenance.notes = {fmt::format("{}{}: fused=no", software_note, software)};
    return reported_memory(asked, study(asked), 0)->reserved;
  };
  CHECK(reserved("megatron-2021") == Bytes{30'750'000});
  CHECK(reserved("deepspeed-2021") == Bytes{30'750'000});
  CHECK(reserved("megatron-core-2024") == Bytes{26'325'000});
  asked = uniform_case("1f1b", 1, 8);
  asked.model.tokens = 2048;
  CHECK(reserved_share(asked).mean == usual_reserved.mean);
  reserved("megatron-2021");
  CHECK(reserved_share(asked).mean == usual_reserved.mean);
}

TEST_CASE("a note says that tensors fit where what is reserved may not") {
  Case asked = uniform_case("1f1b", 4, 8);
  asked.model.tokens = 2048;
  const auto note = [&](std::int64_t memory) {
    for (Device& device : asked.cluster.devices) device.memory = Bytes{memory};
    return reserved_note(asked, study(asked));
  };
  CHECK(note(24'999'999).empty());  // the tensors do not fit
  CHECK(
      note(25'000'000) ==
      "1f1b: tensors of 25.00 MB fit in the 25.00 MB of gpu0, and what torch's allocator reserves "
      "for them (25.70 MB to 27.32 MB) may not");
  CHECK(!note(26'324'999).empty());
  CHECK(note(26'325'000).empty());
  note(25'000'000);
  const std::vector<std::string> notes = stream_notes(asked, study(asked));
  CHECK(std::count_if(notes.begin(), notes.end(), [](const std::string& one) {
          return contains(one, "what torch's allocator reserves");
        }) == 1);
}

TEST_CASE("a measured peak has no composition") {
  const Case asked = uniform_case("1f1b", 2, 4);
  Outcome outcome = study(asked);
  DeviceMemory& memory = outcome.memory.device[0];
  memory.peak += Bytes{1};
  memory.at_peak = {};
  memory.stash_at_peak = {};
  memory.peak_op.reset();
  const auto device = devices_json(asked, outcome).at(0);
  CHECK(device.at("peak_by_category").is_null());
  CHECK(device.at("peak_op").is_null());
  CHECK(!contains(report::peak_sentence(outcome, 0), ": "));
}

}  // namespace
}  // namespace stageline::memory_tests
