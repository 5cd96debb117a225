#include "core/value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/json_append.h"

namespace tocsin::core {

void append_json_text(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  const auto plain = [](char raw) {
    return static_cast<unsigned char>(raw) >= 0x20 && raw != '"' && raw != '\\';
  };
  out += '"';
  for (auto at = text.begin(); at != text.end();) {
    const auto stop = std::find_if_not(at, text.end(), plain);
    out.append(at, stop);
    at = stop;
    if (at == text.end()) break;
    const auto byte = static_cast<unsigned char>(*at);
    out += '\\';
    if (byte < 0x20) {
      out += "u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += *at;
    }
    ++at;
  }
  out += '"';
}

void append_json_number(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "\"NaN\"";
  } else if (std::isinf(value)) {
    out += value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  } else {
    std::array<char, 32> buffer{};
    const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
    (void)error;  // 32 characters hold every shortest double
    out.append(buffer.data(), end);
  }
}

namespace {

void write(std::string& out, const Value& value, bool sorted) {
  struct Writer {
    std::string& out;
    bool sorted;
    void operator()(std::monostate) const { out += "null"; }
    void operator()(bool flag) const { out += flag ? "true" : "false"; }
    void operator()(std::int64_t number) const { out += std::to_string(number); }
    void operator()(double number) const { append_json_number(out, number); }
    void operator()(const std::string& text) const { append_json_text(out, text); }
    void operator()(const ValueList& list) const {
      out += '[';
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (i != 0) out += ',';
        write(out, list[i], sorted);
      }
      out += ']';
    }
    void operator()(const ValueMap& map) const {
      std::vector<const std::pair<std::string, Value>*> entries;
      entries.reserve(map.size());
      for (const auto& entry : map) entries.push_back(&entry);
      if (sorted) {
        std::stable_sort(entries.begin(), entries.end(),
                         [](const auto* a, const auto* b) { return a->first < b->first; });
      }
      out += '{';
      for (std::size_t i = 0; i < entries.size(); ++i) {
        if (i != 0) out += ',';
        append_json_text(out, entries[i]->first);
        out += ':';
        write(out, entries[i]->second, sorted);
      }
      out += '}';
    }
  };
  std::visit(Writer{out, sorted}, value.storage());
}

}  // namespace

std::string to_json(const Value& value, bool sorted) {
  std::string out;
  write(out, value, sorted);
  return out;
}

const Value* find(const ValueMap& map, std::string_view key) noexcept {
  const auto found =
      std::find_if(map.begin(), map.end(), [&](const auto& entry) { return entry.first == key; });
  return found == map.end() ? nullptr : &found->second;
}

const Value* find(const Value& value, std::string_view key) noexcept {
  const auto* map = as<ValueMap>(value);
  return map == nullptr ? nullptr : find(*map, key);
}

std::string text_at(const Value& value, std::string_view key) {
  const auto* text = as<std::string>(find(value, key));
  return text == nullptr ? std::string() : *text;
}

}  // namespace tocsin::core
