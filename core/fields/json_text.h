// JSON text as it is written, without anything in between: the commas are its own matter.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/time.h"
#include "core/value.h"

namespace tocsin::core {

class JsonText {
 public:
  /// Appends to `out`, which outlives this.
  explicit JsonText(std::string& out) : out_(out) {}

  void open_object() { separate(), out_ += '{'; }
  void close_object() { out_ += '}'; }
  void open_list() { separate(), out_ += '['; }
  void close_list() { out_ += ']'; }
  /// A name of ours: nothing in it needs an escape.
  void name(std::string_view name) {
    separate();
    out_.append(1, '"').append(name).append("\":");
  }
  /// Any key.
  void key(std::string_view key) { text(key), out_ += ':'; }

  void null() { separate(), out_ += "null"; }
  void boolean(bool flag) { separate(), out_ += flag ? "true" : "false"; }
  void integer(std::int64_t number);
  void natural(std::uint64_t number);
  /// The shortest text that reads back the same and as a number with a fraction; one that is not
  /// finite as "NaN", "Infinity" or "-Infinity".
  void number(double number);
  /// Bytes that are not UTF-8 become U+FFFD.
  void text(std::string_view text);
  void time(WallTime time);
  void value(const Value& value);

 private:
  void separate() {
    if (out_.empty()) return;
    const char last = out_.back();
    if (last != '{' && last != '[' && last != ':' && last != '\n') out_ += ',';
  }
  std::string& out_;
};

}  // namespace tocsin::core
