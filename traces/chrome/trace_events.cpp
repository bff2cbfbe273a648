// Scans trace events with a SAX parser.
#include "traces/chrome/trace_events.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "sim/base/errors.hpp"
#include "traces/json/tree.hpp"

namespace stageline {
namespace {

constexpr std::string_view events_key = "traceEvents";

// A SAX handler for nlohmann's parser: tracks the open keys and keeps the fields of one event only.
class Scanner {
 public:
  Scanner(const std::string& text, const std::string& file,
          const std::function<void(const TraceEvent&)>& seen)
      : text_(text), file_(file), seen_(seen) {}

  TraceHead take() {
    if (!has_events_) {
      throw TraceError(file_, "", "\"traceEvents\" is missing; a Chrome trace or a profile has it");
    }
    return std::move(head_);
  }

  // NOLINTBEGIN(readability-identifier-naming): the names are nlohmann's
  bool null() {
    return scalar(JsonKind::null, [] { return std::string("null"); });
  }
  bool boolean(bool value) {
    return scalar(JsonKind::boolean, [&] { return std::string(value ? "true" : "false"); });
  }
  bool number_integer(std::int64_t value) {
    return scalar(JsonKind::number, [&] { return std::to_string(value); });
  }
  bool number_unsigned(std::uint64_t value) {
    return scalar(JsonKind::number, [&] { return std::to_string(value); });
  }
  bool number_float(double, const std::string& digits) {
    return scalar(JsonKind::number, [&] { return digits; });
  }
  bool string(std::string& value) {
    return scalar(JsonKind::text, [&] { return std::move(value); });
  }
  bool binary(nlohmann::json::binary_t&) { return false; }  // never occurs in JSON text
  bool start_object(std::size_t) { return open(JsonKind::object); }
  bool start_array(std::size_t) { return open(JsonKind::list); }
  bool end_object() {
    if (in_event(3)) seen_(event_);
    return close();
  }
  bool end_array() { return close(); }
  bool key(std::string& key) {
    open_.back().key = std::move(key);
    return true;
  }
  template <class Exception>
  bool parse_error(std::size_t position, const std::string&, const Exception& error) {
    refuse_syntax(text_, file_, position, error.what());
  }
  // NOLINTEND(readability-identifier-naming)

 private:
  struct Open {
    JsonKind kind;
    std::string key;        // of an object: key of the next value
    std::size_t index = 0;  // of a list: index of the next value
  };

  std::string pointer() const {
    std::string text;
    for (const Open& open : open_) {
      text += open.kind == JsonKind::list ? fmt::format("/{}", open.index) : pointer_step(open.key);
    }
    return text;
  }

  [[noreturn]] void refuse(const std::string& message) const {
    throw TraceError(file_, pointer(), message);
  }

  // Whether `depth` lists and objects are open and lead into an event.
  bool in_event(std::size_t depth) const {
    return open_.size() == depth && in_events_ && open_[1].kind == JsonKind::list;
  }

  // Handles a scalar, or the beginning of a list or object.
  void begins(JsonKind kind) {
    if (open_.empty()) {
      if (kind != JsonKind::object) throw TraceError(file_, "", "a trace is a JSON object");
      return;
    }
    if (open_.size() == 1 && open_[0].key == events_key) {
      if (kind != JsonKind::list) refuse("this must be a list of events");
      has_events_ = true;
    }
    if (in_event(2)) {
      if (kind != JsonKind::object) refuse("an event must be an object");
      event_ = {};
      event_.index = open_[1].index;
    }
  }

  void ends() {
    if (!open_.empty() && open_.back().kind == JsonKind::list) ++open_.back().index;
  }

  bool open(JsonKind kind) {
    begins(kind);
    if (open_.size() == 1) {
      in_events_ = open_[0].key == events_key;
      note_key(open_[0].key);
    } else if (in_event(3) && field(open_.back().key) != nullptr) {
      check(kind, open_.back().key);
    }
    open_.push_back({kind, {}, 0});
    return true;
  }

  bool close() {
    open_.pop_back();
    ends();
    return true;
  }

  template <class Text>
  bool scalar(JsonKind kind, Text&& text) {
    begins(kind);
    if (in_event(3)) {
      if (std::string* const member = field(open_[2].key)) {
        check(kind, open_[2].key);
        *member = text();
      }
    } else if (in_event(4) && open_[2].key == "args") {
      const std::string& key = open_[3].key;
      if (key == "name") event_.label = text();
      if (key == "External id") event_.external_id = text();
      if (key == "correlation") event_.correlation = text();
      if (key == "Sequence number") event_.sequence = text();
      if (key == "Device Type") event_.device_type = text();
      if (key == "Total Allocated") event_.allocated = text();
      if (key == "Total Reserved") event_.reserved = text();
      if (key == "Collective name") event_.collective = text();
      if (key == "In msg nelems") event_.elements = text();
      if (key == "dtype") event_.data_type = text();
      if (key == "overlapped") event_.overlapped = text() == "true";
    } else if (!in_events_ || open_.size() == 1) {
      head_field(kind, text);
    }
    ends();
    return true;
  }

  std::string* field(const std::string& key) {
    if (key == "ph") return &event_.phase;
    if (key == "cat") return &event_.category;
    if (key == "name") return &event_.name;
    if (key == "pid") return &event_.pid;
    if (key == "tid") return &event_.tid;
    if (key == "ts") return &event_.start;
    if (key == "dur") return &event_.duration;
    return nullptr;
  }

  void check(JsonKind kind, const std::string& key) const {
    if (key == "ts" || key == "dur") {
      if (kind != JsonKind::number) refuse("this must be a number of microseconds");
    } else if (key == "pid" || key == "tid") {
      if (kind != JsonKind::number && kind != JsonKind::text) {
        refuse("this must be a number or a text");
      }
    } else if (kind != JsonKind::text) {
      refuse("this must be a text");
    }
  }

  void note_key(const std::string& key) {
    if (key == "schemaVersion" || key == "deviceProperties" || key == "distributedInfo" ||
        key == "baseTimeNanoseconds") {
      head_.kineto = true;
    }
  }

  template <class Text>
  void head_field(JsonKind kind, Text&& text) {
    const std::string& first = open_[0].key;
    if (open_.size() == 1) {
      note_key(first);
      if (first == "host_name" && kind == JsonKind::text) head_.host = text();
      if (first == "baseTimeNanoseconds") {
        if (kind != JsonKind::number) refuse("this must be a number of nanoseconds");
        head_.base_ns = text();
      }
    } else if (open_.size() == 2 && first == "otherData") {
      if (open_[1].key == "title") head_.title = text();
      if (open_[1].key == "schedule") head_.schedule = text();
      if (open_[1].key == "steps") head_.steps = text();
      if (open_[1].key == "microbatches") head_.microbatches = text();
      if (open_[1].key == "step_time_ps") head_.step_time = text();
    } else if (open_.size() == 2 && first == "distributedInfo" && open_[1].key == "rank") {
      if (kind != JsonKind::number) refuse("this must be a number");
      head_.rank = text();
    } else if (open_.size() == 2 && first == "distributedInfo" && open_[1].key == "world_size") {
      head_.world_size = text();
    } else if (open_.size() == 3 && first == "deviceProperties" && open_[1].index == 0 &&
               open_[2].key == "name") {
      head_.device = text();
    }
  }

  const std::string& text_;
  const std::string& file_;
  const std::function<void(const TraceEvent&)>& seen_;
  TraceHead head_;
  TraceEvent event_;
  std::vector<Open> open_;
  bool in_events_ = false;
  bool has_events_ = false;
};

}  // namespace

TraceHead scan_trace_events(const std::string& text, const std::string& file,
                            const std::function<void(const TraceEvent&)>& seen) {
  Scanner scanner(text, file, seen);
  nlohmann::json::sax_parse(text, &scanner);
  return scanner.take();
}

std::string event_pointer(const TraceEvent& event, const char* key) {
  return fmt::format("/traceEvents/{}/{}", event.index, key);
}

}  // namespace stageline
