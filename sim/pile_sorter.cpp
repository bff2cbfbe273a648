// Patience sorting of spans.
#include "sim/pile_sorter.hpp"

#include <algorithm>

namespace stageline {
namespace {

bool precedes(const Span& a, const Span& b) {
  return a.start != b.start ? a.start < b.start : a.op < b.op;
}

// Merges a pile into the first `kept` spans, from the back: behind them there is room for it.
void merge(Spans& spans, std::size_t kept, const std::vector<Span>& pile) {
  Span* const first = spans.data();
  const Span* from = first + kept;
  Span* to = first + kept + pile.size();
  for (auto span = pile.rbegin(); span != pile.rend(); ++span) {
    while (from != first && precedes(*span, from[-1])) *--to = *--from;
    *--to = *span;
  }
}

}  // namespace

void PileSorter::sort(Spans& spans) {
  const auto disorder = std::is_sorted_until(spans.begin(), spans.end(), precedes);
  if (disorder == spans.end()) return;
  if (!sort_from(spans, static_cast<std::size_t>(disorder - spans.begin()))) {
    std::sort(spans.begin(), spans.end(), precedes);
  }
}

// The first `sorted` spans are in order. Returns false, with the spans in any order, if there are
// not enough piles.
bool PileSorter::sort_from(Spans& spans, std::size_t sorted) {
  for (auto& pile : piles_) pile.clear();
  std::size_t kept = sorted;
  bool in_order = true;
  for (std::size_t i = sorted; i < spans.size(); ++i) {
    const Span span = spans[i];
    if (precedes(span, spans[kept - 1])) {
      in_order = put_on_a_pile(span) && in_order;
    } else {
      spans[kept++] = span;
    }
  }
  for (const auto& pile : piles_) {
    if (in_order) {
      merge(spans, kept, pile);
    } else {
      std::copy(pile.begin(), pile.end(), spans.data() + kept);
    }
    kept += pile.size();
  }
  return in_order;
}

// The first pile that ends before the span; false if none does, and the last one takes it anyway.
bool PileSorter::put_on_a_pile(const Span& span) {
  const auto fits = [&](const std::vector<Span>& pile) {
    return pile.empty() || !precedes(span, pile.back());
  };
  const auto found = std::find_if(piles_.begin(), piles_.end(), fits);
  const bool found_one = found != piles_.end();
  (found_one ? *found : piles_.back()).push_back(span);
  return found_one;
}

}  // namespace stageline
