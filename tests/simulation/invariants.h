// What must hold at the end of every world, whatever went wrong in it.
#pragma once

#include <string>
#include <vector>

#include "tests/simulation/world.h"

namespace tocsin::simulation {

/// One sentence for each thing that is not as it must be.
struct Findings {
  std::vector<std::string> problems;  // empty: all is well
};

Findings check(World& world);

}  // namespace tocsin::simulation
