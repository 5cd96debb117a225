// Text ↔ typed values. Internal to config. parse_value leaves `out` alone when it returns false.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/node.h"

namespace tocsin::config {

bool parse_value(const Node& node, bool& out);
bool parse_value(const Node& node, int& out);
bool parse_value(const Node& node, std::int64_t& out);
bool parse_value(const Node& node, std::uint32_t& out);
bool parse_value(const Node& node, std::uint64_t& out);
bool parse_value(const Node& node, double& out);
bool parse_value(const Node& node, std::string& out);
bool parse_value(const Node& node, core::Duration& out);
bool parse_value(const Node& node, Bytes& out);
bool parse_value(const Node& node, std::vector<std::string>& out);
bool parse_value(const Node& node, std::map<std::string, std::string>& out);
template <typename T>
bool parse_value(const Node& node, std::optional<T>& out) {
  if (node.kind == Node::Kind::null) {
    out.reset();
    return true;
  }
  T value{};
  if (!parse_value(node, value)) return false;
  out = std::move(value);
  return true;
}

core::Value as_value(bool value);
core::Value as_value(int value);
core::Value as_value(std::int64_t value);
core::Value as_value(std::uint32_t value);
core::Value as_value(std::uint64_t value);
core::Value as_value(double value);
core::Value as_value(const std::string& value);
core::Value as_value(core::Duration value);
core::Value as_value(const Bytes& value);
core::Value as_value(const std::vector<std::string>& value);
core::Value as_value(const std::map<std::string, std::string>& value);
template <typename T>
core::Value as_value(const std::optional<T>& value) {
  return value ? as_value(*value) : core::Value{};
}

/// Name of the type in schema and docs, and what an error says was expected.
template <typename T>
struct TypeName;
template <>
struct TypeName<bool> {
  static constexpr const char *name = "boolean", *expected = "true or false";
};
template <>
struct TypeName<int> {
  static constexpr const char *name = "integer", *expected = "a whole number";
};
template <>
struct TypeName<std::int64_t> {
  static constexpr const char *name = "integer", *expected = "a whole number";
};
template <>
struct TypeName<std::uint32_t> {
  static constexpr const char *name = "integer", *expected = "a whole number >= 0";
};
template <>
struct TypeName<std::uint64_t> {
  static constexpr const char *name = "integer", *expected = "a whole number >= 0";
};
template <>
struct TypeName<double> {
  static constexpr const char *name = "number", *expected = "a number";
};
template <>
struct TypeName<std::string> {
  static constexpr const char *name = "string", *expected = "a text";
};
template <>
struct TypeName<core::Duration> {
  static constexpr const char *name = "duration",
                              *expected = "a duration such as 500ms, 30s or 1h30m";
};
template <>
struct TypeName<Bytes> {
  static constexpr const char *name = "bytes", *expected = "a size such as 900KB or 64MiB";
};
template <>
struct TypeName<std::vector<std::string>> {
  static constexpr const char *name = "texts", *expected = "a text or a list of texts";
};
template <>
struct TypeName<std::map<std::string, std::string>> {
  static constexpr const char *name = "text map", *expected = "a map of texts";
};
template <typename T>
struct TypeName<std::optional<T>> : TypeName<T> {};

}  // namespace tocsin::config
