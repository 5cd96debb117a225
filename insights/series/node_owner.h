// A node as the owner of series: its samples are kept once, whichever runs it serves.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/identity.h"

namespace tocsin::insights {

namespace node_owner_bytes {
inline constexpr std::array<std::uint8_t, 8> kMark{0x8E, 'n', 0xAF, 'd', 'e', 'o', 'w', 'n'};
inline constexpr std::size_t kMarkAt = 6;
}  // namespace node_owner_bytes

/// By the hash of the node's name. A UUID of version 8, so that no run has it.
inline core::RunUid node_owner(std::uint64_t hash) {
  core::RunUid out;
  for (std::size_t at = 0; at < 6; ++at)
    out.bytes[at] = static_cast<std::uint8_t>(hash >> (8 * (7 - at)));
  std::copy(node_owner_bytes::kMark.begin(), node_owner_bytes::kMark.end(),
            out.bytes.begin() + node_owner_bytes::kMarkAt);
  out.bytes[14] = static_cast<std::uint8_t>(hash >> 8U);
  out.bytes[15] = static_cast<std::uint8_t>(hash);
  return out;
}

inline bool is_node_owner(const core::RunUid& uid) {
  return std::equal(node_owner_bytes::kMark.begin(), node_owner_bytes::kMark.end(),
                    uid.bytes.begin() + node_owner_bytes::kMarkAt);
}

}  // namespace tocsin::insights
