// Values by key, made when they are first asked for, the least recently used dropped.
#pragma once

#include <cstddef>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "sim/base/errors.hpp"

namespace stageline {

/// At most so many are kept. A thread that asks for what another is making waits for it; a refusal
/// (UsageError, TraceError) is kept, too, and thrown to all.
template <class Value>
class MadeOnce {
 public:
  explicit MadeOnce(std::size_t most) : most_(most) {}

  template <class Make>
  std::shared_ptr<const Value> get(const std::string& key, const Make& make) {
    const std::shared_ptr<Entry> entry = find(key);
    std::call_once(entry->once, [&] {
      try {
        entry->value = std::make_shared<const Value>(make());
      } catch (const UsageError&) {
        entry->refused = std::current_exception();
      } catch (const TraceError&) {
        entry->refused = std::current_exception();
      }
    });
    if (entry->refused) std::rethrow_exception(entry->refused);
    return entry->value;
  }

 private:
  struct Entry {
    std::once_flag once;
    std::shared_ptr<const Value> value;
    std::exception_ptr refused;
  };

  std::shared_ptr<Entry> find(const std::string& key) {
    const std::lock_guard<std::mutex> lock(access_);
    if (const auto known = places_.find(key); known != places_.end()) {
      uses_.splice(uses_.begin(), uses_, known->second.second);
      return known->second.first;
    }
    auto entry = std::make_shared<Entry>();
    uses_.push_front(key);
    places_.emplace(key, std::pair(entry, uses_.begin()));
    if (places_.size() > most_) {
      places_.erase(uses_.back());
      uses_.pop_back();
    }
    return entry;
  }

  const std::size_t most_;
  std::mutex access_;
  std::list<std::string> uses_;  // the latest first
  std::map<std::string, std::pair<std::shared_ptr<Entry>, std::list<std::string>::iterator>>
      places_;
};

}  // namespace stageline
