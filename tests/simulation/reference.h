// The run without faults: one evaluator reads the same telemetry once, from beginning to end.
#pragma once

#include <map>
#include <string>

#include "tests/simulation/world.h"

namespace tocsin::simulation {

/// All issues by id that the world's rules find in the telemetry that it has produced.
std::map<std::string, core::Issue> reference_issues(World& world);

}  // namespace tocsin::simulation
