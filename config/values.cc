// Scalars: what each type accepts, how it is written, and what the error says.
#include "config/values.h"

#include <array>
#include <charconv>
#include <cmath>

namespace tocsin::config {
namespace {

constexpr std::array<std::pair<std::string_view, std::uint64_t>, 10> kByteUnits{{
    {"KiB", 1ULL << 10},
    {"MiB", 1ULL << 20},
    {"GiB", 1ULL << 30},
    {"TiB", 1ULL << 40},
    {"KB", 1'000},
    {"MB", 1'000'000},
    {"GB", 1'000'000'000},
    {"TB", 1'000'000'000'000},
    {"B", 1},
    {"", 1},
}};

// "10.0" is a whole number too: the original writes every value as a text, and JSON Schema says so.
template <typename T>
bool whole_number(std::string_view text, T& out) {
  if (const std::size_t dot = text.find('.'); dot != std::string_view::npos && dot > 0) {
    const std::string_view fraction = text.substr(dot + 1);
    const bool zeros = fraction.find_first_not_of('0') == std::string_view::npos;
    if (!fraction.empty() && zeros) text = text.substr(0, dot);
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

bool plain_scalar(const Node& node) { return node.kind == Node::Kind::scalar; }

}  // namespace

std::string describe_kind(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return "nothing";
    case Node::Kind::list:
      return "a list";
    case Node::Kind::map:
      return "a map";
    case Node::Kind::scalar:
      break;
  }
  return "\"" + (node.text.size() > 60 ? node.text.substr(0, 57) + "…" : node.text) + "\"";
}

bool parse_value(const Node& node, bool& out) {
  if (!plain_scalar(node)) return false;
  const bool yes = node.text == "true" || node.text == "True" || node.text == "TRUE";
  const bool no = node.text == "false" || node.text == "False" || node.text == "FALSE";
  if (yes || no) out = yes;
  return yes || no;
}
bool parse_value(const Node& node, int& out) {
  return plain_scalar(node) && whole_number(node.text, out);
}
bool parse_value(const Node& node, std::int64_t& out) {
  return plain_scalar(node) && whole_number(node.text, out);
}
bool parse_value(const Node& node, std::uint32_t& out) {
  return plain_scalar(node) && whole_number(node.text, out);
}
bool parse_value(const Node& node, std::uint64_t& out) {
  return plain_scalar(node) && whole_number(node.text, out);
}
bool parse_value(const Node& node, double& out) {
  if (!plain_scalar(node)) return false;
  std::string_view text = node.text;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size() && std::isfinite(out);
}
bool parse_value(const Node& node, std::string& out) {
  if (!plain_scalar(node)) return false;
  out = node.text;
  return true;
}
bool parse_value(const Node& node, core::Duration& out) {
  if (!plain_scalar(node)) return false;
  const auto duration = core::parse_duration(node.text);
  if (duration) out = *duration;
  return duration.has_value();
}
bool parse_value(const Node& node, Bytes& out) {
  if (!plain_scalar(node)) return false;
  std::uint64_t number = 0;
  const char* last = node.text.data() + node.text.size();
  const auto [end, error] = std::from_chars(node.text.data(), last, number);
  if (error != std::errc{}) return false;
  const std::string_view unit(end, static_cast<std::size_t>(last - end));
  for (const auto& [name, size] : kByteUnits) {
    if (name == unit && number <= UINT64_MAX / size) {
      out.count = number * size;
      return true;
    }
  }
  return false;
}
bool parse_value(const Node& node, std::vector<std::string>& out) {
  std::vector<std::string> texts;
  if (plain_scalar(node)) texts.push_back(node.text);
  for (const Node& item : node.items) {
    if (!plain_scalar(item)) return false;
    texts.push_back(item.text);
  }
  if (node.kind != Node::Kind::list && !plain_scalar(node)) return false;
  out = std::move(texts);
  return true;
}
bool parse_value(const Node& node, std::map<std::string, std::string>& out) {
  if (node.kind != Node::Kind::map) return false;
  std::map<std::string, std::string> texts;
  for (const Entry& entry : node.entries) {
    if (!plain_scalar(entry.value)) return false;
    texts[entry.key] = entry.value.text;
  }
  out = std::move(texts);
  return true;
}

core::Value as_value(bool value) { return value; }
core::Value as_value(int value) { return value; }
core::Value as_value(std::int64_t value) { return value; }
core::Value as_value(std::uint32_t value) { return static_cast<std::int64_t>(value); }
core::Value as_value(std::uint64_t value) { return value; }
core::Value as_value(double value) { return value; }
core::Value as_value(const std::string& value) { return value; }
core::Value as_value(core::Duration value) { return core::to_text(value); }
core::Value as_value(const Bytes& value) {
  for (const auto& [name, size] :
       {std::pair{"GiB", 1ULL << 30}, {"MiB", 1ULL << 20}, {"KiB", 1ULL << 10}}) {
    if (value.count >= size && value.count % size == 0)
      return std::to_string(value.count / size) + name;
  }
  return std::to_string(value.count);
}
core::Value as_value(const std::vector<std::string>& value) {
  core::ValueList list;
  for (const auto& text : value) list.emplace_back(text);
  return list;
}
core::Value as_value(const std::map<std::string, std::string>& value) {
  core::ValueMap map;
  for (const auto& [key, text] : value) map.emplace_back(key, text);
  return map;
}

core::Value to_value(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return {};
    case Node::Kind::list: {
      core::ValueList list;
      for (const Node& item : node.items) list.push_back(to_value(item));
      return list;
    }
    case Node::Kind::map: {
      core::ValueMap map;
      for (const Entry& entry : node.entries) map.emplace_back(entry.key, to_value(entry.value));
      return map;
    }
    case Node::Kind::scalar:
      break;
  }
  if (!node.quoted) {
    bool flag = false;
    std::int64_t integer = 0;
    double number = 0;
    if (parse_value(node, flag)) return flag;
    if (parse_value(node, integer)) return integer;
    if (parse_value(node, number)) return number;
  }
  return node.text;
}

}  // namespace tocsin::config
