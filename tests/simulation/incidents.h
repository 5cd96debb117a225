// What must hold of the incidents that people are told of: they end where they began, what somebody has
// taken on is not repeated, and no step of a ladder is climbed twice.
#pragma once

#include <string>
#include <vector>

#include "tests/simulation/world.h"

namespace tocsin::simulation {

/// One sentence for each thing that is not as it must be.
std::vector<std::string> incident_problems(World& world);

}  // namespace tocsin::simulation
