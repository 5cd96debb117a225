// What each rank's time went into, how late it ended its steps, and what the run would be without it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "insights/series/series_reader.h"

namespace tocsin::insights {

struct RankAsk {
  std::string run;
  std::optional<std::int64_t> from,
      to;  // steps of training [from, to); not given: the last `steps`
  std::int64_t steps = 100;
};

/// Seconds over the steps that are asked for. What overlaps counts where it stands first: waiting for
/// data, communication, computing, other phases; idle is the rest of the steps.
struct RankLine {
  std::int64_t rank = 0;
  std::string worker;
  std::int64_t steps = 0;
  double seconds = 0;  // of its steps
  double compute = 0, communication = 0, data_wait = 0, other = 0, idle = 0;
  std::optional<double> overlap;   // share of communication during which it computed
  std::optional<double> lateness;  // seconds behind the rank that ended the step first, on average
  double most_late = 0;
  std::int64_t last_of = 0;       // steps that it ended last
  std::optional<double> without;  // share by which the steps would be shorter without it
};

struct RankAnswer {
  std::int64_t from = 0, to = 0;
  std::int64_t common = 0;  // steps that all ranks have ended
  bool spans = false;       // there are some: without, nobody knows what the time went into
  std::vector<RankLine> ranks;
  /// Lateness in seconds by rank, and by step from `from` on; NaN: the rank did not end it.
  std::vector<std::vector<double>> late;
};
core::Result<RankAnswer> ask_ranks(SeriesReader& reader, const RankAsk& ask);

/// The phases of a step, over the ranks.
struct StepPhase {
  std::string name;                     // "" is what no phase has
  double median = 0, min = 0, max = 0;  // seconds
};
struct StepLine {
  std::int64_t step = 0;
  std::int64_t ranks = 0;
  double seconds = 0;  // median
  std::vector<StepPhase> phases;
};
/// Of the last `steps`, in order. `worker`: regular expression of the whole name.
core::Result<std::vector<StepLine>> ask_steps(SeriesReader& reader, const std::string& run,
                                              const std::string& worker, std::int64_t steps);

}  // namespace tocsin::insights
