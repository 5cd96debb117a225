// One seed, from its scenario to what came of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/simulation/mutations.h"

namespace tocsin::simulation {

struct SeedReport {
  std::vector<std::string> problems;
  std::map<std::string, std::uint64_t> faults;  // by kind
  std::size_t issues = 0, notifications = 0, effects = 0, stops = 0;
};

SeedReport simulate(std::uint64_t seed, Mutation mutation = Mutation::none, bool print = false);
/// The same seed in a world whose clock jumps by hours: clock_scenario_of().
SeedReport simulate_clocks(std::uint64_t seed, Mutation mutation = Mutation::none,
                           bool print = false);
/// The one command that shows what happened.
std::string replay_command(std::uint64_t seed, Mutation mutation, bool clocks = false);

}  // namespace tocsin::simulation
