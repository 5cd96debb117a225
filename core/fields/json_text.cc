#include "core/fields/json_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace tocsin::core {
namespace {

template <typename T, typename... Form>
void append_number(std::string& out, T number, Form... form) {
  std::array<char, 64> digits{};  // the longest fixed form here has 16 + 5 + 17 characters
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, form...).ptr;
  out.append(digits.data(), end);
}

// Without a way out in the middle, so that many bytes are looked at together.
bool needs_no_escape(std::string_view text) {
  unsigned escapes = 0;
  for (const char raw : text) {
    const auto byte = static_cast<unsigned char>(raw);
    escapes |= static_cast<unsigned>(byte < 0x20) | static_cast<unsigned>(byte >= 0x7F) |
               static_cast<unsigned>(byte == '"') | static_cast<unsigned>(byte == '\\');
  }
  return escapes == 0;
}

}  // namespace

void JsonText::integer(std::int64_t number) {
  separate();
  append_number(out_, number);
}

void JsonText::natural(std::uint64_t number) {
  separate();
  append_number(out_, number);
}

void JsonText::number(double number) {
  if (std::isnan(number)) return text("NaN");
  if (std::isinf(number)) return text(number > 0 ? "Infinity" : "-Infinity");
  separate();
  const double size = std::fabs(number);
  if (size != 0 && (size < 1e-4 || size >= 1e15)) {
    return append_number(out_, number, std::chars_format::scientific);
  }
  const std::size_t start = out_.size();
  append_number(out_, number, std::chars_format::fixed);
  if (out_.find('.', start) == out_.npos) out_ += ".0";  // else it came back as a whole number
}

void JsonText::text(std::string_view text) {
  separate();
  if (needs_no_escape(text)) {
    out_.append(1, '"').append(text).append(1, '"');
    return;
  }
  out_ += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void JsonText::time(WallTime time) {
  separate();
  out_.append(1, '"').append(to_rfc3339(time)).append(1, '"');
}

void JsonText::value(const Value& value) {
  struct Writer {
    JsonText& to;
    void operator()(std::monostate) const { to.null(); }
    void operator()(bool flag) const { to.boolean(flag); }
    void operator()(std::int64_t number) const { to.integer(number); }
    void operator()(double number) const { to.number(number); }
    void operator()(const std::string& text) const { to.text(text); }
    void operator()(const ValueList& list) const {
      to.open_list();
      for (const Value& item : list) to.value(item);
      to.close_list();
    }
    void operator()(const ValueMap& map) const {
      to.open_object();
      for (const auto& [key, item] : map) {
        to.key(key);
        to.value(item);
      }
      to.close_object();
    }
  };
  std::visit(Writer{*this}, value.storage());
}

}  // namespace tocsin::core
