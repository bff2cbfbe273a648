#include "tools/published/kernels/kernel_table.hpp"

#include "traces/json/tree.hpp"

namespace stageline {
namespace {

constexpr const char* kernel_format = "stageline-kernels 1";
constexpr double microsecond = 1e-6;

std::int64_t extent(const JsonNode& row, std::string_view key) {
  const auto stated = row.find(key);
  return stated ? stated->whole(1, most_bytes) : 0;
}

bool flag(const JsonNode& row, std::string_view key) {
  const auto stated = row.find(key);
  return stated && stated->boolean();
}

double amount(const JsonNode& row, std::string_view key) {
  const auto stated = row.find(key);
  return stated ? stated->positive() : 0;
}

TimedKernel read_row(const JsonNode& row) {
  TimedKernel kernel;
  kernel.id = row.at("id").text();
  kernel.what = row.at("what").text();
  kernel.precision = row.at("precision").text();
  kernel.pass = row.text_or_empty("pass");
  kernel.how = row.text_or_empty("how");
  kernel.side = row.text_or_empty("side");
  kernel.rows = extent(row, kernel.what == "product" ? "m" : "rows");
  kernel.columns = extent(row, "n");
  kernel.inner = extent(row, "k");
  kernel.experts = extent(row, "experts");
  kernel.sequence = extent(row, "sequence");
  kernel.heads = extent(row, "heads");
  kernel.width = extent(row, "width");
  kernel.size_bytes = extent(row, "size_bytes");
  kernel.parameters = extent(row, "parameters");
  kernel.cast = flag(row, "cast");
  kernel.accumulate = flag(row, "accumulate");
  kernel.fast_accum = flag(row, "fast_accum");
  kernel.per_launch = row.text_or_empty("per") == "launch";
  kernel.flops = amount(row, "flops");
  kernel.bytes = amount(row, "bytes");
  kernel.seconds = row.at("us").positive() * microsecond;
  kernel.low = row.at("low_us").number() * microsecond;
  kernel.high = row.at("high_us").number() * microsecond;
  if (!(kernel.low <= kernel.seconds && kernel.seconds <= kernel.high)) {
    row.at("us").refuse("must be from low_us to high_us");
  }
  if (kernel.what == "product" && (kernel.rows == 0 || kernel.columns == 0 || kernel.inner == 0)) {
    row.refuse("a product has m, n and k");
  }
  return kernel;
}

}  // namespace

KernelTable read_kernel_table(const std::string& text, const std::string& file) {
  const JsonValue value = parse_json(text, file);
  const JsonNode root(value, "", file);
  const JsonNode format = root.at("format");
  if (format.text() != kernel_format) {
    format.refuse("must be \"" + std::string(kernel_format) + "\", not " +
                  in_quotes(format.text()));
  }
  KernelTable table;
  table.device = root.at("device").text();
  table.kind = root.text_or_empty("kind");
  table.torch = root.text_or_empty("torch");
  table.date = root.text_or_empty("date");
  for (const JsonNode& row : root.at("rows").items()) table.rows.push_back(read_row(row));
  for (const char* const without : {"left_out", "failed"}) {
    if (const auto stated = root.find(without)) table.left_out += stated->items().size();
  }
  return table;
}

}  // namespace stageline
