// Our own picture of a YAML document: places, duplicate keys and quoting kept, aliases expanded
// within bounds. Internal to config.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/config.h"

namespace tocsin::config {

struct Entry;

struct Node {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  std::string text;          // scalar
  bool quoted = false;       // a quoted scalar is text, never a number or a bool
  bool substituted = false;  // a variable gave it, or part of it
  std::vector<Node> items;
  std::vector<Entry> entries;
  Location location;
  std::shared_ptr<const std::string> source;  // of a scalar: the whole file's text

  /// Where byte `offset` of a scalar's text stands in the file; the scalar's own place where that
  /// cannot be told (variables, unusual escapes).
  [[nodiscard]] Location location_of(std::size_t offset) const;
  /// Of a map; in one step also among thousands of entries.
  [[nodiscard]] const Entry* find(std::string_view key) const;
  /// Where the keys of a big map stand: of its first `covered` entries. Copies share it until one grows.
  struct Places {
    std::map<std::string, std::size_t, std::less<>> of;
    std::size_t covered = 0;
  };
  mutable std::shared_ptr<Places> places = nullptr;
};

struct Entry {
  std::string key;
  Location key_location;
  Node value;
};

/// What the user wrote, in words: "a list", "the text \"abc\"", …
std::string describe_kind(const Node& node);

/// Parses one YAML text. On a syntax error or an exhausted bound, reports it and returns nullopt.
std::optional<Node> parse_yaml(std::string_view text, const std::string& name,
                               Diagnostics& diagnostics);

/// Replaces ${VAR}, ${VAR:-default} and $${ in every scalar value; reports unset variables.
void substitute(Node& node, const Environment& environment, Diagnostics& diagnostics);

/// Any subtree as a Value: plain scalars become bool, integer or number where they look like one.
core::Value to_value(const Node& node);

}  // namespace tocsin::config
