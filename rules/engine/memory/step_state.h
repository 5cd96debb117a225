// Values of a run that wait until their step is complete, and which steps are.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/codes.h"
#include "rules/engine/memory/moments.h"

namespace tocsin::rules {

/// A scalar whose step is not complete yet.
struct PendingScalar {
  core::Mode mode = core::Mode::train;
  std::uint32_t pass = 0;
  std::int64_t step = 0;
  std::int64_t global_step = 0;
  std::int64_t time = 0;
  std::int64_t after_train = kNever;   // the worker's last ended train step
  std::int64_t after_global = kNever;  // and that of mode global
  std::uint64_t name = 0;
  double value = 0;
  std::int64_t offset = 0;
  std::uint32_t worker = 0;
  core::Role role = core::Role::other;
};

/// A worker's part in an evaluation pass.
struct PassKey {
  std::uint32_t worker = 0;
  std::uint32_t pass = 0;
  std::int64_t after_train = kNever;
  friend auto operator<=>(const PassKey&, const PassKey&) = default;
};

struct StepState {
  std::array<std::int64_t, kModes> closed{kNever, kNever, kNever, kNever};
  std::array<std::int64_t, kModes> told_closed{kNever, kNever, kNever, kNever};  // to evaluators
  std::vector<PendingScalar> pending;
  std::map<PassKey, PendingScalar> passes;  // how far each has come: a step may bring no value
  std::map<std::pair<std::uint8_t, std::int64_t>, std::vector<std::uint32_t>> partial;  // ranks
  // Not in snapshots:
  bool release_due = true;                             // some pending value may be ready
  std::array<std::int64_t, kModes + 3> released_at{};  // what readiness was last judged by
};

}  // namespace tocsin::rules
