// Names of a run as its producers tell them: the entries of a kind 7 frame, decoded (docs/wire.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/frame.h"
#include "core/labels.h"

namespace tocsin::core {

/// Which way a metric should go.
enum class Direction : std::uint8_t { min, max };

/// What a producer says of a name beside its codes: the `attrs` of an entry. All of it is optional.
struct NameAttrs {
  // of a worker: JSON producers have no start record
  std::string job;
  Labels labels;
  // of a tensor
  std::vector<std::string> collections;
  std::string op_type;               // "ReLU": what made an activation
  std::optional<std::int64_t> axis;  // along which its units lie; negative: from the last one on
  // of a scalar or series
  std::optional<Direction> direction;
  std::string unit;

  friend bool operator==(const NameAttrs&, const NameAttrs&) = default;
};

/// One entry. Borrows its texts from the record; `attrs` is its own.
struct NamedEntry {
  std::uint64_t hash = 0;
  DictionaryType type = DictionaryType::tensor;
  Dtype dtype = Dtype::unknown;
  Role role = Role::other;
  std::span<const std::byte> dims_bytes;  // i64[ndim]
  std::string_view name;
  NameAttrs attrs;
  bool attrs_wrong = false;  // some of them were not what they should be, and are left out
};

using Dictionary = std::vector<NamedEntry>;

}  // namespace tocsin::core
