// Where and when an evaluation stands, and whom it speaks of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/codes.h"

namespace tocsin::rules {

/// Labels that a rule adds to its issues: together they are the unit.
using Labels = std::vector<std::pair<std::string, std::string>>;

struct Place {
  bool step_clock = true;
  std::optional<core::Mode> mode;
  std::int64_t step = 0;
  std::int64_t global_step = 0;
  std::int64_t time = 0;           // of measurement; window end of the time clock
  std::int64_t first_time = 0;     // 0 = time
  std::int64_t first_offset = -1;  // −1: the record being read
  std::int64_t last_offset = -1;
  bool partial = false;
  std::vector<std::uint32_t> missing_ranks = {};
};

/// A step that is judged as a whole.
inline Place at_step(core::Mode mode, std::int64_t step, std::int64_t global_step,
                     std::int64_t time) {
  Place out;
  out.mode = mode;
  out.step = step;
  out.global_step = global_step;
  out.time = time;
  return out;
}

}  // namespace tocsin::rules
