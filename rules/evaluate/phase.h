// Spans as rules know them: the tracks they stand on and the phases of a step (docs/wire.md).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/identity.h"

namespace tocsin::rules {

/// Hashes of the fixed names: rules compare these, so that they need no dictionary.
struct SpanNames {
  std::uint64_t phase = core::name_hash("phase");
  std::uint64_t communication_track = core::name_hash("communication");
  std::uint64_t cpu_operators = core::name_hash("op.cpu");

  std::uint64_t data_wait = core::name_hash("data_wait");
  std::uint64_t forward = core::name_hash("forward");
  std::uint64_t backward = core::name_hash("backward");
  std::uint64_t optimizer = core::name_hash("optimizer");
  std::uint64_t communication = core::name_hash("communication");
};

inline const SpanNames& span_names() {
  static const SpanNames kNames;
  return kNames;
}

}  // namespace tocsin::rules
