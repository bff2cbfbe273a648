// The keys of a config.json: reads them by type, notes which were asked for, refuses the rest.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace stageline {

/// A key is read, neutral or refused. Without effect is also one that is not read and says nothing:
/// null, false, 0, "" or empty, for transformers does not read it either. Neutral are those that
/// leave every product and every parameter as it is: numbers of tokens, dropouts, epsilons, rotary
/// frequencies, scales and caps of scores, what generation does. A key that is null counts as
/// missing, a flag that is null as false. All throw TraceError with the file and the JSON pointer.
class HuggingFaceKeys {
 public:
  /// Throws where `text` is not a JSON object.
  HuggingFaceKeys(const std::string& text, std::string file);
  HuggingFaceKeys(const HuggingFaceKeys&) = delete;
  HuggingFaceKeys& operator=(const HuggingFaceKeys&) = delete;
  ~HuggingFaceKeys();

  /// `key` empty: the file as a whole.
  [[noreturn]] void refuse(const std::string& key, const std::string& message) const;
  /// Refuses keys that were not asked for and are not neutral, all at once, with the nearest that
  /// were. `norms`: whether queries and keys have norms, which files may state.
  void refuse_rest(bool norms) const;
  /// What the file has that is left out: how its stored weights are quantized, towers of images.
  std::vector<std::string> notes() const;
  /// The keys of an object inside. `key` is one.
  std::unique_ptr<HuggingFaceKeys> inside(const std::string& key) const;

  bool has(const std::string& key) const;
  bool is_null(const std::string& key) const;  // there, with the value null
  bool is_text(const std::string& key) const;
  bool is_list(const std::string& key) const;
  bool is_object(const std::string& key) const;
  bool holds(const std::string& key) const;  // there and not null; it need not be read
  std::string model_type() const;            // empty where it is missing
  /// The type that the file is read as: model_type() unless read_as() says otherwise.
  std::string type() const;
  void read_as(std::string type) { type_ = std::move(type); }

  std::int64_t whole(const std::string& key) const;  // at least 1; throws where it is missing
  std::int64_t whole_or(const std::string& key, std::int64_t fallback,
                        std::int64_t least = 1) const;
  double real_or(const std::string& key, double fallback) const;  // above 0
  bool flag_or(const std::string& key, bool fallback) const;
  std::string text_or(const std::string& key, const std::string& fallback) const;
  std::vector<std::string> texts(const std::string& key) const;    // of a list
  std::vector<std::int64_t> wholes(const std::string& key) const;  // of a list
  struct Repeated {
    std::vector<std::string> texts;
    std::int64_t times = 0;
  };
  /// [[["global", "local"], 12], …], of GPT-Neo.
  std::vector<Repeated> repeated_texts(const std::string& key) const;
  /// A whole number in the object at `key`; 0 where either is missing.
  std::int64_t inner_whole(const std::string& key, const std::string& inner) const;

 private:
  struct Document;
  HuggingFaceKeys(std::unique_ptr<Document> document, std::string file, std::string prefix);
  bool says_nothing(const std::string& key, bool norms) const;
  std::string unknown_keys(const std::vector<std::string>& keys) const;
  std::unique_ptr<Document> document_;
  std::string file_;
  std::string type_;
  std::string prefix_;  // of pointers: "/text_config"
  mutable std::set<std::string> asked_;
};

}  // namespace stageline
