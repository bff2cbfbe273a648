// The keys of a config.json: reads them by type, notes which were asked for, refuses the rest.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace stageline {

/// A key is read, neutral or refused. Neutral are those that leave every product and every
/// parameter as it is: numbers of tokens, dropouts, epsilons, rotary frequencies, scales and caps
/// of scores, what generation does. A key that is null counts as missing. All throw TraceError with
/// the file and the JSON pointer.
class HuggingFaceKeys {
 public:
  /// Throws where `text` is not a JSON object.
  HuggingFaceKeys(const std::string& text, std::string file);
  HuggingFaceKeys(const HuggingFaceKeys&) = delete;
  HuggingFaceKeys& operator=(const HuggingFaceKeys&) = delete;
  ~HuggingFaceKeys();

  /// `key` empty: the file as a whole.
  [[noreturn]] void refuse(const std::string& key, const std::string& message) const;
  /// Refuses keys that were not asked for and are not neutral, with the nearest that were.
  void refuse_rest() const;

  bool has(const std::string& key) const;
  bool is_null(const std::string& key) const;  // there, with the value null
  std::string model_type() const;              // empty where it is missing

  std::int64_t whole(const std::string& key) const;  // at least 1; throws where it is missing
  std::int64_t whole_or(const std::string& key, std::int64_t fallback,
                        std::int64_t least = 1) const;
  bool flag_or(const std::string& key, bool fallback) const;
  std::string text_or(const std::string& key, const std::string& fallback) const;
  std::vector<std::string> texts(const std::string& key) const;    // of a list
  std::vector<std::int64_t> wholes(const std::string& key) const;  // of a list
  /// A whole number in the object at `key`; 0 where either is missing.
  std::int64_t inner_whole(const std::string& key, const std::string& inner) const;

 private:
  struct Document;
  std::unique_ptr<Document> document_;
  std::string file_;
  mutable std::set<std::string> asked_;
};

}  // namespace stageline
