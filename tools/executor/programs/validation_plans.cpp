// The grids that ship.
#include <array>

#include "sim/base/index.hpp"
#include "tools/executor/programs/validation.hpp"

namespace stageline::executor {

ValidationPlan usual_plan() {
  ValidationPlan plan;
  plan.models = {{"resnet20", {4, 8, 16}},
                 {"gpt,layers=4,hidden=256,heads=4,seq=32,vocab=1000", {2, 4, 8}},
                 {"lenet5", {64, 128, 256}}};
  const std::string slow = "200MB/s,500us";
  plan.variants = {{"naive", slow},
                   {"gpipe", ""},
                   {"gpipe:reverse=yes", slow},
                   {"gpipe:recompute=always", slow},
                   {"gpipe:recompute=except_last", ""},
                   {"1f1b", ""},
                   {"1f1b", slow},
                   {"1f1b:recompute=always", slow},
                   {"pipedream", slow},
                   {"pipedream:vertical_sync=yes", ""},
                   {"stale_weights:mapping=paired", slow},
                   {"stale_weights:mapping=paired,order=backward_first", ""},
                   // For a calibration to see.
                   {"gpipe", slow, "balanced", false},
                   {"stale_weights:mapping=paired", "", "balanced", false}};
  return plan;
}

ValidationPlan every_plan() {
  ValidationPlan plan = usual_plan();
  const std::string slow = "200MB/s,500us";
  plan.variants.clear();
  for (const char* both : {"gpipe", "1f1b", "interleaved_1f1b", "zb_h1", "zb_v", "pipedream"}) {
    plan.variants.push_back({both, ""});
    plan.variants.push_back({both, slow});
  }
  // In turns over free links and over slow ones.
  const std::array alternating = {"gpipe:reverse=yes",
                                  "naive",
                                  "gpipe:recompute=except_last",
                                  "gpipe:recompute=always",
                                  "1f1b:recompute=always",
                                  "eager_1f1b",
                                  "dapple",
                                  "dapple:policy=B",
                                  "interleaved_1f1b:chunks=3",
                                  "looped_bfs",
                                  "zb_auto",
                                  "zb_auto:limit=2p",
                                  "v_half",
                                  "v_min",
                                  "chimera",
                                  "chimera:concat=doubling",
                                  "gems",
                                  "hanayo",
                                  "dualpipe",
                                  "dualpipe_v",
                                  "list",
                                  "list:placement=v",
                                  "list:limit=p",
                                  "list:split=no",
                                  "pipedream:vertical_sync=yes",
                                  "pipedream:replicas=2",
                                  "pipedream_2bw",
                                  "pipedream_2bw:recompute=always",
                                  "stale_weights:mapping=paired",
                                  "stale_weights:mapping=paired,order=backward_first",
                                  "layerpipe",
                                  "zb_h2",
                                  "layerpipe:share=half",
                                  "layerpipe:mode=intra",
                                  "layerpipe:weights=average"};
  for (std::size_t i = 0; i < alternating.size(); ++i) {
    plan.variants.push_back({alternating[i], i % 2 == 0 ? "" : slow});
  }
  const std::string host = "1GB/s,100us";
  for (const char* free : {"pipefb", "pipefb:backward=latest", "pipedream:transfer=full"}) {
    plan.variants.push_back({free, "", "balanced", true, host});
  }
  for (const char* linked : {"pipefb:transfer=half", "pipedream:transfer=half"}) {
    plan.variants.push_back({linked, slow, "balanced", true, host});
  }
  return plan;
}

}  // namespace stageline::executor
