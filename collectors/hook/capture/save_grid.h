// When something is saved: a grid in steps, linear or logarithmic, or in time; a range; listed steps.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.h"

namespace tocsin::hook {

/// "10 steps", "1 step", 10; "8 per decade"; or a duration ("30s").
struct Every {
  std::int64_t steps = 10;
  core::Duration time{0};       // not 0: counts instead of steps
  std::int64_t per_decade = 0;  // not 0: so many steps from each power of ten to the next
};
/// nullopt: none of these.
std::optional<Every> parse_every(std::string_view text);
std::string to_text(const Every& every);

/// What is given of a schedule; the rest is that of whatever it lies on.
struct SaveRule {
  static constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();

  std::optional<Every> every;
  std::optional<std::int64_t> start_step;
  std::optional<std::int64_t> end_step;            // exclusive
  std::optional<std::vector<std::int64_t>> steps;  // saved besides the grid

  [[nodiscard]] bool empty() const { return !every && !start_step && !end_step && !steps; }
};

/// A whole schedule. Grids are anchored at step 0, which stands on all of them.
struct SaveGrid {
  Every every;
  std::int64_t start_step = 0;
  std::int64_t end_step = SaveRule::kNoEnd;
  std::vector<std::int64_t> steps;

  void lay(const SaveRule& rule);
  [[nodiscard]] bool in_time() const { return every.time > core::Duration{0}; }
  /// Between start and end.
  [[nodiscard]] bool covers(std::int64_t step) const {
    return step >= start_step && step < end_step;
  }
  [[nodiscard]] bool lists(std::int64_t step) const;
};

/// Whether a step stands on a grid in steps, of which every `stretch`-th point counts. Of a
/// logarithmic grid the points are 0 and 10^(k/n), rounded.
bool on_grid(const Every& every, std::int64_t step, std::int64_t stretch);

}  // namespace tocsin::hook
