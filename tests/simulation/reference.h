// The run without faults: one evaluator reads the same telemetry once, from beginning to end.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "tests/simulation/world.h"

namespace tocsin::simulation {

/// What one evaluator makes of the telemetry that a world has produced.
struct Reference {
  std::map<std::string, core::Issue> issues;  // by id
  std::map<core::RunUid, std::set<std::uint32_t>> attempts;
};

Reference reference_of(World& world);

}  // namespace tocsin::simulation
