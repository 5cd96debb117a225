// How a node is, by the samples of its agent: its newest load, and its errors of some time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "insights/series/series_reader.h"

namespace tocsin::insights {

/// Times are milliseconds, UTC. What the agent does not sample is absent.
struct NodeHealth {
  std::int64_t heard = 0;                  // the newest sample
  std::optional<std::int64_t> interval;    // median distance of the samples of its last minute
  std::optional<double> cpu, gpu, memory;  // shares in use, the newest
  std::optional<double> xids;              // of all GPUs, within the time
  std::optional<double> corrected, uncorrected;  // memory errors (ECC), the same
  std::optional<double> throttled;  // greatest share of samples in which one GPU was held back
};

/// What is asked of `owner` (of ServedNode): errors from `since` on; as it was at `until`, if that is given.
struct HealthTimes {
  std::int64_t since = 0;
  std::optional<std::int64_t> until;
};
/// nullopt: there are no samples. Where single samples are gone by their age, what was at `until` is as exact as the
/// buckets that are kept.
std::optional<NodeHealth> ask_node_health(SeriesReader& reader, const std::string& owner,
                                          const HealthTimes& times);

}  // namespace tocsin::insights
