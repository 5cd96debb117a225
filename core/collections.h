// The built-in collections: groups of tensors and scalars that everybody calls by the same name.
// One table, which the hook's capture, rules' needs and selections, `tocsin check`, the Python
// package and the pages read (docs/collections.md).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/codes.h"

namespace tocsin::core {

struct Collection {
  std::uint8_t id = 0;     // stable, never given again
  std::string_view name;   // "gradients"
  std::string_view holds;  // in words
  /// What producers state decides: these roles are members.
  std::vector<Role> roles = {};
  /// Names (searched, RE2 syntax) by which its members are told where no role is stated; without
  /// roles: its members.
  std::string_view include = {};
  std::string_view exclude = {};
  std::vector<Mode> modes = {};                   // saved in these only; empty: in all
  std::vector<std::string_view> statistics = {};  // beyond the base columns, as `statistics:` says
  bool standard = false;                          // captured when nobody names any
};

/// In the order of their ids.
std::span<const Collection> builtin_collections();
/// nullptr: not a built-in one.
const Collection* find_collection(std::string_view name);
/// The first one that takes this role; nullptr: none does.
const Collection* collection_of(Role role);
/// For suggestions.
std::vector<std::string> collection_names();

}  // namespace tocsin::core
