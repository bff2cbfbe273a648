// Is SimAI's workload text read as the layers of one micro-batch, and written so that it is read
// again?
#include "traces/simai/workload.hpp"

#include <doctest/doctest.h>

#include <string>

#include "sim/base/errors.hpp"
#include "tests/text.hpp"

namespace stageline::simai_tests {
namespace {

constexpr const char* block =
    "embedding_layer\t-1\t50000\tALLREDUCE\t1024\t1\tNONE\t1024\t60000\tNONE\t0\t100\n"
    "attention_column\t-1\t1200000\tALLGATHER\t4096\t2400000\tREDUCESCATTER\t4096\t0\tNONE\t0\t100\n"
    "mlp_moelayer -1 0 ALLTOALL_EP 2048 0 ALLTOALL_EP 2048 0 ALLREDUCE_DP 4000000 100\n";

// As AICB writes it: rows of the step, micro-batches, rows of the loss and the optimizer.
std::string workload(int microbatches, const std::string& body, int rows) {
  return "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 2 pp: 1 vpp: 2 ga: " +
         std::to_string(microbatches) +
         " all_gpus: 16 checkpoints: 0 checkpoint_initiates: 0 pp_comm: 0\n" +
         std::to_string(rows) +
         "\ngrad_norm\t-1\t1\tALLGATHER\t5\t1\tNONE\t0\t1\tREDUCESCATTER\t7\t100\n" + body +
         "cross_entropy1\t-1\t0\tALLREDUCE\t8\t0\tNONE\t0\t0\tNONE\t0\t100\n"
         "optimizer4\t-1\t0\tALLREDUCE\t4\t0\tNONE\t0\t0\tNONE\t0\t100\n";
}

std::string refusal(const std::string& text) {
  return test::complaint<TraceError>([&] { read_workload(text, "w.txt"); });
}

TEST_CASE("a workload is the layers of one of its micro-batches") {
  const std::string text = workload(2, std::string(block) + block, 9);
  REQUIRE(is_workload(text));
  const Model model = read_workload(text, "some/w.txt");
  CHECK(model.name == "w.txt");
  CHECK(model.sharding.tensor == 8);
  CHECK(model.sharding.expert == 2);
  CHECK(!model.bytes_known);
  REQUIRE(model.layers.size() == 3);
  CHECK(model.layers[0].name == "embedding_layer.0");
  CHECK(model.layers[0].kind == "embedding_layer");
  CHECK(model.layers[0].forward == Time{50'000'000});
  CHECK(model.layers[0].input_grad == Time{1000});
  CHECK(model.layers[0].weight_grad == Time{60'000'000});
  CHECK(model.layers[0].backward == Time{60'001'000});
  REQUIRE(model.layers[0].collectives.size() == 1);
  CHECK(model.layers[0].collectives[0].kind == CollectiveKind::all_reduce);
  CHECK(model.layers[0].collectives[0].group == Dimension::tensor);
  REQUIRE(model.layers[1].collectives.size() == 2);
  CHECK(model.layers[1].collectives[0].forward == 1);
  CHECK(model.layers[1].collectives[1].kind == CollectiveKind::reduce_scatter);
  CHECK(model.layers[1].collectives[1].input_grad == 1);
  CHECK(model.layers[1].collectives[1].bytes == Bytes{4096});
  REQUIRE(model.layers[2].collectives.size() == 2);  // that of its gradients is left out
  CHECK(model.layers[2].collectives[0].group == Dimension::expert);
  const auto& notes = model.provenance.notes;
  REQUIRE(notes.size() == 4);
  CHECK(test::contains(notes[1], "2 equal micro-batches"));
  CHECK(test::contains(notes[2], "3 rows before and behind"));
  CHECK(test::contains(notes[3], "collectives of 4.000 MB a micro-batch are left out"));
}

TEST_CASE("what is written is read again") {
  Model model = read_workload(workload(1, block, 6), "w.txt");
  const Model again = read_workload(write_workload(model), "w.txt");
  REQUIRE(again.layers.size() == model.layers.size());
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    CHECK(again.layers[i].forward == model.layers[i].forward);
    CHECK(again.layers[i].backward == model.layers[i].backward);
    CHECK(again.layers[i].collectives == model.layers[i].collectives);
  }
  CHECK(again.sharding == model.sharding);
  model.layers[0].collectives[0].forward = 2;  // one after the other: a row more
  CHECK(read_workload(write_workload(model), "w.txt").layers.size() == 4);
  CHECK(lost_in_workload(model).size() == 1);
  model.layers[0].collectives[0].group = Dimension::context;
  CHECK(test::complaint<UsageError>([&] { write_workload(model); }) ==
        "layer \"embedding_layer.0\" has a collective among its cp ranks, and a workload of SimAI "
        "has those of tensor and expert parallelism alone");
}

TEST_CASE("what is no workload that is understood is refused with its line") {
  CHECK(!is_workload("{\"format\": \"stageline-trace 1\"}"));
  CHECK(!is_workload(""));
  CHECK(test::contains(refusal("MICRO\n1\nx\n"), "workloads of MICRO are not read"));
  CHECK(refusal("DATA\n2\na -1 5 NONE 0 5 NONE 0 5 NONE 0 1\n") ==
        "w.txt at line 2: it states 2 rows, and 1 follow");
  CHECK(test::contains(refusal("DATA\n1\na -1 5 NONE 0\n"), "w.txt at line 3: a row has 12 words"));
  CHECK(test::contains(refusal("DATA\n1\na -1 -5 NONE 0 5 NONE 0 5 NONE 0 1\n"),
                       "line 3: times and sizes are whole numbers"));
  CHECK(test::contains(refusal("DATA\n1\na -1 5 SUM 8 5 NONE 0 5 NONE 0 1\n"),
                       "line 3: SUM is no collective"));
  CHECK(test::contains(refusal("DATA\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n"), "--aiob"));
  CHECK(test::contains(refusal(workload(2, block, 6)), "which does not divide them"));
  std::string other = std::string(block) + block;
  other.replace(other.rfind("50000"), 5, "50001");
  CHECK(test::contains(refusal(workload(2, other, 9)),
                       "line 7: micro-batch 1 differs from the first in its row "
                       "\"embedding_layer\""));
}

}  // namespace
}  // namespace stageline::simai_tests
