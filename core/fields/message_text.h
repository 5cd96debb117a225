// A message in its form for people and programs, as JSON text without a core::Value in between: the
// same text as to_json(message_value(…)).
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/fields/out.h"
#include "core/json_append.h"
#include "core/time.h"
#include "core/value.h"

namespace tocsin::core {

/// Takes what ValueSink takes.
class ValueText {
 public:
  /// Appends to `out`, which outlives this.
  explicit ValueText(std::string& out) : out_(out) {}

  void open_object() { separate(), out_ += '{'; }
  void close_object() { out_ += '}'; }
  void open_list() { separate(), out_ += '['; }
  void close_list() { out_ += ']'; }
  void name(std::string_view name) { key(name); }
  void key(std::string_view key) { separate(), append_json_text(out_, key), out_ += ':'; }

  void null() { separate(), out_ += "null"; }
  void boolean(bool flag) { separate(), out_ += flag ? "true" : "false"; }
  void integer(std::int64_t number) { separate(), append(number); }
  void natural(std::uint64_t number) { integer(static_cast<std::int64_t>(number)); }
  void number(double number) { separate(), append_json_number(out_, number); }
  void text(std::string_view text) { separate(), append_json_text(out_, text); }
  void time(WallTime time) { text(to_rfc3339(time)); }
  void value(const Value& value) { separate(), out_ += to_json(value); }

 private:
  void separate() {
    if (out_.empty()) return;
    const char last = out_.back();
    if (last != '{' && last != '[' && last != ':') out_ += ',';
  }
  void append(std::int64_t number) {
    char digits[24];
    out_.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
  }
  std::string& out_;
};

/// Appends what people and their programs are told of it.
template <typename T>
void append_message(std::string& out, const T& message) {
  ValueText sink(out);
  Out<ValueText, Form::message>(sink).write(message);
}

}  // namespace tocsin::core
