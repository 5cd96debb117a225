// Where later clients of workers went on: what a line that is a mean of several workers does not show.
#pragma once

#include <cstdint>
#include <vector>

#include "core/result.h"
#include "insights/series/series_query.h"

namespace tocsin::insights {

struct Restart {
  core::Mode mode = core::Mode::train;
  std::int64_t step = 0;     // the first of the later client
  std::int64_t attempt = 0;  // the highest of theirs
  std::int64_t before = 0;   // the highest of their clients before it
  std::int64_t workers = 0;  // that went on there
  std::int64_t again = 0;    // steps that they went over again, at most
};

inline constexpr std::size_t kMostRestarts = 200;

/// Of the series that fit, in order of step; of more than kMostRestarts the last ones.
core::Result<std::vector<Restart>> ask_restarts(SeriesReader& reader, const SeriesAsk& ask);

}  // namespace tocsin::insights
