// Reads lengths of sequences, or draws them.
#include "tools/inputs/lengths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <numeric>
#include <optional>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"
#include "sim/batch/philox.hpp"
#include "tools/base/files.hpp"

namespace stageline {
namespace {

constexpr std::int64_t longest_sequence = std::int64_t{1} << 30;
constexpr std::string_view drawn_form = "lognormal(";
constexpr std::string_view packed_form = "packed:";
constexpr PhiloxKey key_of_lengths{0x6c656e67, 0x74687321};  // "length!": a draw of their own

[[noreturn]] void refuse(const std::string& why) { throw UsageError("--lengths: " + why); }

std::vector<std::string_view> words_of(std::string_view text) {
  constexpr std::string_view between = ", \t\r\n";
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t first = text.find_first_not_of(between);
    if (first == std::string_view::npos) return words;
    text.remove_prefix(first);
    const std::size_t end = std::min(text.find_first_of(between), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::vector<Documents> read(std::string_view text, const std::string& where) {
  std::vector<Documents> lengths;
  for (const std::string_view word : words_of(text)) {
    Documents documents;
    for (std::size_t at = 0; at <= word.size();) {
      const std::size_t end = std::min(word.find('+', at), word.size());
      const std::optional<std::int64_t> tokens =
          parse_number<std::int64_t>(word.substr(at, end - at));
      documents.push_back(tokens.value_or(0));
      at = end + 1;
    }
    const bool any_bad = std::any_of(documents.begin(), documents.end(), [](std::int64_t one) {
      return one < 1 || one > longest_sequence;
    });
    if (any_bad || tokens_of(documents) > longest_sequence) {
      refuse(
          fmt::format("number {} of {} is a number of tokens from 1 to {}, or several of packed "
                      "documents joined by +, not \"{}\"",
                      lengths.size() + 1, where, longest_sequence, word));
    }
    lengths.push_back(std::move(documents));
  }
  return lengths;
}

// A standard normal number (Box and Muller 1958, doi 10.1214/aoms/1177706645).
double normal(std::uint32_t number) {
  const PhiloxCounter words = philox({number, 0, 0, 0}, key_of_lengths);
  return std::sqrt(-2 * std::log(uniform_of(words[0]))) *
         std::cos(2 * std::numbers::pi * uniform_of(words[1]));
}

// A distribution of lengths.
struct LogNormal {
  double mean = 0;
  double sigma = 0;

  std::int64_t length(std::uint32_t number, std::int64_t step) const {
    const double of_mean = std::exp(sigma * normal(number) - sigma * sigma / 2);
    const double steps = std::ceil(mean * of_mean / static_cast<double>(step));
    const std::int64_t most = longest_sequence / step;
    return static_cast<std::int64_t>(std::clamp(steps, 1.0, static_cast<double>(most))) * step;
  }
};

LogNormal drawn_by(std::string_view text) {
  const std::string_view inside = text.substr(
      drawn_form.size(), text.size() - drawn_form.size() - (text.ends_with(')') ? 1 : 0));
  const std::vector<std::string_view> words = words_of(inside);
  const auto number = [&](std::size_t i) {
    return words.size() == 2 ? parse_number<double>(words[i]).value_or(-1) : -1;
  };
  const LogNormal drawn{number(0), number(1)};
  if (!text.ends_with(')') ||
      !(drawn.mean >= 1 && drawn.mean <= static_cast<double>(longest_sequence)) ||
      !(drawn.sigma >= 0 && drawn.sigma <= 4)) {
    refuse(
        fmt::format("lognormal(MEAN,SIGMA) takes a mean number of tokens from 1 to {} and a "
                    "standard deviation of its logarithm from 0 to 4, not \"{}\"",
                    longest_sequence, text));
  }
  return drawn;
}

// "packed:8192:lognormal(1024,1)": what is packed, and into how many tokens; 0: nothing is.
struct PackedSource {
  std::int64_t most = 0;
  std::string source;
};

PackedSource packed_by(const std::string& text) {
  if (!text.starts_with(packed_form)) return {0, text};
  const std::size_t colon = std::min(text.find(':', packed_form.size()), text.size());
  const std::string_view most =
      std::string_view(text).substr(packed_form.size(), colon - packed_form.size());
  const std::int64_t tokens = parse_number<std::int64_t>(most).value_or(0);
  if (tokens < 1 || tokens > longest_sequence || colon + 1 >= text.size()) {
    refuse(
        fmt::format("packed:N:DOCUMENTS takes the most tokens of a sequence, from 1 to {}, and "
                    "lengths of documents as --lengths takes them, not \"{}\"",
                    longest_sequence, text));
  }
  return {tokens, text.substr(colon + 1)};
}

bool is_list_of_tokens(std::string_view text) {
  return text.find_first_not_of("0123456789, +") == std::string_view::npos;
}

std::vector<Documents> given_documents(const std::string& source) {
  return is_list_of_tokens(source) ? read(source, "the list") : read(read_text(source), source);
}

// Adds the document to the last sequence, or a new one behind it.
void pack(std::int64_t tokens, std::int64_t most, std::vector<Documents>& sequences) {
  if (tokens > most) {
    refuse(
        fmt::format("a document of {} tokens does not fit into a sequence of {}; give "
                    "packed:{}:… or shorter ones",
                    tokens, most, tokens));
  }
  const bool fits = !sequences.empty() && tokens_of(sequences.back()) + tokens <= most;
  if (!fits) sequences.emplace_back();
  sequences.back().push_back(tokens);
}

std::vector<Documents> packed_documents(const std::vector<Documents>& documents,
                                        std::int64_t most) {
  std::vector<Documents> sequences;
  for (const Documents& of : documents) {
    for (const std::int64_t tokens : of) pack(tokens, most, sequences);
  }
  return sequences;
}

// Documents are drawn until the last sequence has no room for the next one.
std::vector<Documents> draw(const PackedSource& how, int count, std::int64_t step) {
  const LogNormal drawn = drawn_by(how.source);
  std::vector<Documents> sequences;
  for (std::uint32_t n = 0; how.most == 0 && n < static_cast<std::uint32_t>(count); ++n) {
    sequences.push_back({drawn.length(n, step)});
  }
  for (std::uint32_t n = 0; how.most > 0 && sequences.size() <= as_size(count); ++n) {
    const std::int64_t most = how.most / step * step;
    if (most == 0) refuse(fmt::format("packed: sequences are multiples of {} tokens here", step));
    pack(std::min(drawn.length(n, step), most), most, sequences);
  }
  sequences.resize(as_size(count));
  return sequences;
}

void make_snake(std::vector<std::size_t>& ascending) {
  std::vector<std::size_t> snake(ascending.size());
  std::size_t front = 0;
  std::size_t back = snake.size();
  for (std::size_t i = 0; i < ascending.size(); ++i) {
    (i % 2 == 0 ? snake[front++] : snake[--back]) = ascending[i];
  }
  ascending = std::move(snake);
}

// The dearest document first, each to the cheapest sequence with room (Graham's rule of the longest
// time first, 1969, doi 10.1137/0117039). Empty: some document found none.
std::vector<Documents> dealt_anew(const std::vector<Documents>& lengths,
                                  const std::function<double(const Documents&)>& cost) {
  std::int64_t most = 0;
  std::vector<std::int64_t> documents;
  for (const Documents& of : lengths) {
    most = std::max(most, tokens_of(of));
    documents.insert(documents.end(), of.begin(), of.end());
  }
  std::sort(documents.begin(), documents.end(), std::greater<>());
  std::vector<Documents> sequences(lengths.size());
  std::vector<double> costs(lengths.size(), 0.0);
  for (const std::int64_t tokens : documents) {
    std::size_t best = sequences.size();
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      if (tokens_of(sequences[i]) + tokens > most) continue;
      if (best == sequences.size() || costs[i] < costs[best]) best = i;
    }
    if (best == sequences.size()) return {};
    sequences[best].push_back(tokens);
    costs[best] += cost({tokens});
  }
  return sequences;
}

}  // namespace

std::string_view name(LengthsOrder order) {
  switch (order) {
    case LengthsOrder::given:
      return "given";
    case LengthsOrder::ascending:
      return "ascending";
    case LengthsOrder::descending:
      return "descending";
    case LengthsOrder::snake:
      return "snake";
    case LengthsOrder::balanced:
      return "balanced";
  }
  return "";  // unreachable; g++ wants it
}

std::int64_t length_step(const Sharding& sharding) {
  return std::int64_t{2} * sharding.tensor * sharding.context;
}

std::vector<std::int64_t> plain_tokens(const std::vector<Documents>& lengths) {
  std::vector<std::int64_t> tokens;
  for (const Documents& documents : lengths) {
    if (documents.size() > 1) {
      refuse(
          fmt::format("{} are documents that one sequence packs, which are priced and not run; "
                      "give sequences",
                      print(documents)));
    }
    tokens.push_back(documents.front());
  }
  return tokens;
}

int count_of_lengths(const std::string& text) {
  const PackedSource how = packed_by(text);
  if (how.source.starts_with(drawn_form)) return 0;
  const std::vector<Documents> all = given_documents(how.source);
  return static_cast<int>(how.most > 0 ? packed_documents(all, how.most).size() : all.size());
}

std::vector<Documents> lengths_of(const std::string& text, int microbatches, std::int64_t step) {
  const PackedSource how = packed_by(text);
  if (how.source.starts_with(drawn_form)) return draw(how, microbatches, step);
  std::vector<Documents> lengths = given_documents(how.source);
  if (how.most > 0) lengths = packed_documents(lengths, how.most);
  if (lengths.size() != as_size(microbatches)) {
    refuse(
        fmt::format("{} {} {} lengths, and a step has {} micro-batches; give one for each, or "
                    "--microbatches {}",
                    is_list_of_tokens(how.source) ? "the list" : how.source,
                    how.most > 0 ? "packs into" : "has", lengths.size(), microbatches,
                    std::max<std::size_t>(lengths.size(), 1)));
  }
  return lengths;
}

std::vector<Documents> ordered(std::vector<Documents> lengths, LengthsOrder order,
                               const std::function<double(const Documents&)>& cost) {
  if (order == LengthsOrder::given) return lengths;
  if (order == LengthsOrder::balanced) {
    std::vector<Documents> dealt = dealt_anew(lengths, cost);
    if (!dealt.empty()) lengths = std::move(dealt);
  }
  std::vector<double> costs;
  for (const Documents& documents : lengths) costs.push_back(cost(documents));
  std::vector<std::size_t> places(lengths.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  const bool falling = order == LengthsOrder::descending;
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
    return falling ? costs[a] > costs[b] : costs[a] < costs[b];
  });
  if (order == LengthsOrder::snake || order == LengthsOrder::balanced) make_snake(places);
  std::vector<Documents> sorted;
  for (const std::size_t place : places) sorted.push_back(std::move(lengths[place]));
  return sorted;
}

}  // namespace stageline
