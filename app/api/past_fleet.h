// Who was where at a time: workers of runs by what had been heard of them, and the fleet by that.
#pragma once

#include <vector>

#include "app/api/fleet_tally.h"
#include "core/result.h"
#include "core/time.h"
#include "insights/insights.h"

namespace tocsin::app {

/// The workers of `run` (its uid) that had begun by `at`: those of attempts up to the one of then, without those
/// whose first step came later.
std::vector<insights::WorkerLine> workers_at(insights::SeriesReader& series,
                                             const insights::RunLine& run, core::WallTime at);

/// As read_fleet at `at`. `since`: microseconds, UTC. An agent was there if a sample of it had come.
core::Result<FleetRecent> read_past_fleet(insights::EventReader& events,
                                          insights::SeriesReader& series, std::int64_t since,
                                          core::WallTime at);

}  // namespace tocsin::app
