// Are the whole results of the questions about uncertainty the same bytes, whatever the number of
// threads, and with every compiler?
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/questions/ask.hpp"

namespace stageline::whole_results_tests {
namespace {

// FNV-1a of 64 bits.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  }
  return hash;
}

struct Asked {
  std::vector<std::string> words;
  const char* threads;  // the flag
  std::uint64_t hash;   // of the JSON
};

const std::vector<Asked> questions = {
    {{"whatif", "uniform:layers=8,batch=4", "--devices", "4", "--schedule", "1f1b,zb_h1,gpipe",
      "--microbatches", "8", "--jitter", "5%", "--slow", "gpu2:1.3@0.2", "--pause", "10:1ms",
      "--scenarios", "1000"},
     "--threads",
     0xd6afc86ffaff1604},
    {{"whatif", "uniform:layers=8", "--devices", "4", "--link", "1GB/s,10us", "--schedule",
      "1f1b,interleaved_1f1b", "--microbatches", "8", "--jitter", "10%,transfers", "--scenarios",
      "300"},
     "--threads",
     0xb708b817d6a41eb7},
    {{"whatif", "uniform:layers=8", "--devices", "4", "--link", "1GB/s,10us", "--schedule", "zb_h1",
      "--microbatches", "8", "--jitter", "10%,transfers", "--freeze", "--scenarios", "300"},
     "--threads",
     0x2c844f3f59885edb},
    {{"whatif", "uniform:layers=8", "--devices", "2", "--mtbf", "8h", "--checkpoint", "60s",
      "--run", "30d", "--scenarios", "500"},
     "--threads",
     0xf82a4d4548afbbe3},
    {{"sensitivity", "uniform:layers=8", "--devices", "4", "--link", "1GB/s,10us", "--schedule",
      "1f1b", "--microbatches", "8"},
     "--threads",
     0xc95335f463b70528},
    {{"sensitivity", "lenet5-cpu", "--devices", "3", "--schedule", "zb_h1", "--microbatches", "6"},
     "--threads",
     0xabbe870e3bd2c6c8},
    {{"compare", "uniform:layers=8", "--devices", "4", "--schedule", "gpipe,1f1b,zb_h1,pipedream",
      "--microbatches", "8", "--jitter", "5%", "--scenarios", "500"},
     "--jobs",
     0xa6937e3b9d6220f0},
};

TEST_CASE("whole results are these bytes with any number of threads, and with every compiler") {
  for (const Asked& question : questions) {
    for (const char* const threads : {"1", "2", "7"}) {
      std::vector<std::string> words = question.words;
      for (const char* const word : {question.threads, threads, "--json", "-"}) {
        words.emplace_back(word);
      }
      const test::Answer answer = test::ask(words);
      CAPTURE(test::typed(words));
      CHECK(answer.exit_code == 0);
      CHECK(answer.out.size() > 500);
      const std::string now = fmt::format("{:#018x}", hash_of(answer.out));
      CHECK(now == fmt::format("{:#018x}", question.hash));  // where keys are new: now
    }
  }
}

}  // namespace
}  // namespace stageline::whole_results_tests
