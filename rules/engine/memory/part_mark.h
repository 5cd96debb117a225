#pragma once

#include <cstdint>

namespace tocsin::rules {

/// Where a part of a run stands among the snapshots (rules/engine/partition/cut.h).
struct PartMark {
  std::uint64_t changed = 0;  // the epoch of its last change
  std::uint64_t saved = 0;    // the cut that wrote it last; 0 = never
  std::uint32_t chunks = 0;   // records it was written to
  std::uint8_t slot = 0;      // which of its two sets of keys those are
};

}  // namespace tocsin::rules
