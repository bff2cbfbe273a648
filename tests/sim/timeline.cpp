// Are lanes in order whoever sends to them, and do they outlive the timeline they come from?
#include "sim/timeline.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <utility>

#include "sim/pile_sorter.hpp"

namespace stageline::timeline_tests {
namespace {

bool precedes(const Span& a, const Span& b) {
  return a.start != b.start ? a.start < b.start : a.op < b.op;
}

// Spans of several senders, each in order, as they come.
Spans interleaved(std::mt19937& random, int senders, int count) {
  std::vector<Time> last(static_cast<std::size_t>(senders));
  Spans spans;
  for (int i = 0; i < count; ++i) {
    const auto sender = random() % last.size();
    Time& at = last[sender];
    at += Time{static_cast<std::int64_t>(random() % 4)};
    spans.push_back(
        {op_of(OpKind::receive_forward, static_cast<int>(sender), static_cast<std::uint32_t>(i)),
         at, at + Time{1}});
  }
  return spans;
}

TEST_CASE("piles sort the receives of few and of many senders") {
  std::mt19937 random(7);
  PileSorter sorter;
  for (const int senders : {1, 2, 3, 8, 9, 30}) {
    for (const int count : {0, 1, 2, 10, 300}) {
      Spans spans = interleaved(random, senders, count);
      Spans expected = spans;
      std::sort(expected.begin(), expected.end(), precedes);
      sorter.sort(spans);
      CHECK(spans == expected);
    }
  }
}

TEST_CASE("lanes of one block grow, move and are copied like other vectors") {
  Spans kept;
  Spans copy;
  {
    const auto block = std::make_shared<Block>(2 * Block::room_for(4 * sizeof(Span)));
    Spans first{BlockAllocator<Span>(block)};
    Spans second{BlockAllocator<Span>(block)};
    first.reserve(4);
    second.reserve(4);
    CHECK(block->owns(first.data()));
    CHECK(block->owns(second.data()));
    for (std::int64_t i = 0; i < 4; ++i) {
      first.push_back({Op{}, Time{i}, Time{i + 1}});
      second.push_back({Op{}, Time{-i}, Time{i}});
    }
    copy = Spans(first);
    CHECK_FALSE(block->owns(copy.data()));
    first.push_back({Op{}, Time{4}, Time{5}});  // beyond the block
    CHECK_FALSE(block->owns(first.data()));
    second.swap(first);
    kept = std::move(first);
  }
  REQUIRE(kept.size() == 4);
  CHECK(kept[3] == Span{Op{}, Time{-3}, Time{3}});
  REQUIRE(copy.size() == 4);
  CHECK(copy[3] == Span{Op{}, Time{3}, Time{4}});
}

}  // namespace
}  // namespace stageline::timeline_tests
