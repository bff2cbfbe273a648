// Rows of published measurements as text, made up for tests.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tools/base/files.hpp"
#include "tools/published/points.hpp"

namespace stageline::test {

/// A file with these columns in each row; cells that are not named are empty.
inline std::string points_csv(const std::vector<std::map<std::string, std::string>>& rows) {
  const std::string header =
      "id,source,kind,model,layers,hidden,heads,kv_heads,ffn,vocab,seq,experts,"
      "topk,where,hardware,gpus,gpus_per_node,network,framework,precision,tp,sp,pp,vp,cp,"
      "ep,dp,zero,micro_batch,global_batch,schedule,recompute,step_time_s,"
      "tflops_per_gpu,tflops_kind,tokens_per_s_per_gpu,mfu_pct,memory_gib,split,note";
  std::vector<std::string> columns;
  std::istringstream names(header);
  for (std::string name; std::getline(names, name, ',');) columns.push_back(name);
  std::string text = header + "\n";
  for (const std::map<std::string, std::string>& row : rows) {
    std::string line;
    for (const std::string& column : columns) {
      const auto cell = row.find(column);
      line += (column == "id" ? "" : ",") + (cell == row.end() ? "" : "\"" + cell->second + "\"");
    }
    text += line + "\n";
  }
  return text;
}

/// A run of a GPT on eight A100 in a pipeline, as the Zero Bubble paper has them.
inline std::map<std::string, std::string> pipeline_row() {
  return {{"id", "1"},
          {"source", "Zero Bubble (made up)"},
          {"kind", "measured"},
          {"model", "6.2B"},
          {"layers", "30"},
          {"hidden", "4096"},
          {"heads", "32"},
          {"seq", "1024"},
          {"hardware", "A100-80GB SXM"},
          {"gpus", "8"},
          {"network", "RoCE RDMA"},
          {"framework", "Megatron-LM fork"},
          {"tp", "1"},
          {"pp", "8"},
          {"dp", "1"},
          {"micro_batch", "3"},
          {"global_batch", "72"},
          {"schedule", "1f1b"},
          {"recompute", "none"},
          {"step_time_s", "2.5"},
          {"memory_gib", "40"}};
}

inline std::map<std::string, std::string> with(std::map<std::string, std::string> row,
                                               const std::map<std::string, std::string>& cells) {
  for (const auto& [column, cell] : cells) row[column] = cell;
  return row;
}

inline Point point_of(const std::map<std::string, std::string>& row) {
  return read_points(points_csv({row}), "points.csv").front();
}

/// A file of the shared data; empty where there are none.
inline std::optional<std::string> shared_file(const std::string& path) {
  const char* const data = std::getenv("STAGELINE_DATA");
  if (!data || !std::filesystem::exists(std::filesystem::path(data) / path)) return std::nullopt;
  return read_text((std::filesystem::path(data) / path).string());
}

}  // namespace stageline::test
