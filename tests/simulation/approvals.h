// What must hold of stops that wait for a person's word (docs/approvals.md).
#pragma once

#include <string>
#include <vector>

#include "tests/simulation/world.h"

namespace tocsin::simulation {

/// One sentence for each thing that is not as it must be; none in a world whose stops do not wait.
std::vector<std::string> approval_problems(World& world);

}  // namespace tocsin::simulation
