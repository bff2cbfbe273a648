// JSON to be written: values whose keys keep the order in which they were set. The readers of files
// have their own (traces/json/tree.hpp).
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sim/base/units.hpp"

namespace stageline {

/// One value; null unless something else is put in.
class Json {
 public:
  Json();
  Json(std::nullptr_t);
  Json(bool value);
  Json(double value);
  Json(const char* text);
  Json(std::string text);
  Json(std::string_view text);
  template <std::signed_integral Number>
  Json(Number value) : Json(Integer{value}) {}
  template <std::unsigned_integral Number>
  Json(Number value) : Json(Natural{value}) {}
  template <class Item>
  Json(const std::vector<Item>& items) : Json(array()) {
    for (const Item& item : items) push_back(item);
  }
  /// An object.
  Json(std::initializer_list<std::pair<std::string, Json>> members);

  static Json array(std::initializer_list<Json> items = {});
  static Json object();

  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  /// The member of that name, null where it is new. Null becomes an object. The reference holds
  /// until the next member is added.
  Json& operator[](std::string_view key);
  Json& operator[](std::size_t index);  // of an array that has it
  std::size_t size() const;             // of an array or object; else 0

  /// Null becomes an array.
  void push_back(Json item);
  /// Sets each member of `other`, an object.
  void update(Json other);

  /// As text that ends with a newline: a line for each item, two blanks for each level. Numbers
  /// that are not finite are null; bytes that are not UTF-8 become U+FFFD.
  std::string text() const;

 private:
  struct Integer {
    std::int64_t value;
  };
  struct Natural {
    std::uint64_t value;
  };
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;

  explicit Json(Integer number);
  explicit Json(Natural number);
  void write(std::string& text, std::size_t indent) const;

  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Array,
               Object>
      value_;
};

/// "step_s" to read and "step_ps" to compute with, which is exact.
void put_time(Json& object, const std::string& key, Time time);

/// `text` as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD.
std::string json_string(const std::string& text);

}  // namespace stageline
