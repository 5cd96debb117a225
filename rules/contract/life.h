// What the engine keeps of every unit of a rule, whatever the rule is.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace tocsin::rules {

/// Per unit: how its evaluations went lately. Owned by the engine, part of snapshots.
struct Life {
  std::uint32_t hits = 0;  // in a row
  std::uint16_t oks = 0;   // in a row, while open
  std::uint8_t open = 0;   // kinds that fire
  std::uint8_t unused = 0;
  [[nodiscard]] bool active() const noexcept { return (hits | open) != 0; }
};
static_assert(sizeof(Life) == 8);

/// Whether something is under way for one of so many units.
inline bool any_active(const Life* lives, std::size_t count) noexcept {
  static_assert(std::is_trivially_copyable_v<Life>);
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t one;  // by copying: then several are taken in one instruction
    std::memcpy(&one, lives + i, sizeof one);
    all |= one;
  }
  return std::bit_cast<Life>(all).active();
}

}  // namespace tocsin::rules
