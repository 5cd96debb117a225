// A core::Value as it is built up, for templates and bodies: takes what JsonText takes.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/time.h"
#include "core/value.h"

namespace tocsin::core {

class ValueSink {
 public:
  /// What was written; call it once, at the end.
  [[nodiscard]] Value take() { return std::move(done_); }

  void open_object() { open_.push_back({std::exchange(name_, {}), false, {}, {}}); }
  void close_object() { close(Value(std::move(open_.back().map))); }
  void open_list() { open_.push_back({std::exchange(name_, {}), true, {}, {}}); }
  void close_list() { close(Value(std::move(open_.back().list))); }
  void name(std::string_view name) { name_ = name; }
  void key(std::string_view key) { name_ = key; }

  void null() { put({}); }
  void boolean(bool flag) { put(flag); }
  void integer(std::int64_t number) { put(number); }
  void natural(std::uint64_t number) { put(number); }
  void number(double number) { put(number); }
  void text(std::string_view text) { put(std::string(text)); }
  void time(WallTime time) { put(to_rfc3339(time)); }
  void value(const Value& value) { put(value); }

 private:
  struct Open {
    std::string name;
    bool is_list;
    ValueList list;
    ValueMap map;
  };
  void put(Value value) {
    if (open_.empty()) {
      done_ = std::move(value);
    } else if (open_.back().is_list) {
      open_.back().list.push_back(std::move(value));
    } else {
      open_.back().map.emplace_back(std::exchange(name_, {}), std::move(value));
    }
  }
  void close(Value value) {
    name_ = std::move(open_.back().name);
    open_.pop_back();
    put(std::move(value));
  }

  std::vector<Open> open_;
  std::string name_;
  Value done_;
};

}  // namespace tocsin::core
