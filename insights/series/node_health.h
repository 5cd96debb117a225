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

/// `owner`: of ServedNode. Errors from `since` on. nullopt: there are no samples.
std::optional<NodeHealth> ask_node_health(SeriesReader& reader, const std::string& owner,
                                          std::int64_t since);

}  // namespace tocsin::insights
