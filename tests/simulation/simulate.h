// One seed, from its scenario to the verdict.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/simulation/mutations.h"

namespace tocsin::simulation {

struct Verdict {
  std::vector<std::string> problems;
  std::map<std::string, std::uint64_t> faults;  // by kind
  std::size_t issues = 0, notifications = 0, effects = 0, stops = 0;
};

Verdict simulate(std::uint64_t seed, Mutation mutation = Mutation::none, bool print = false);
/// The one command that shows what happened.
std::string replay_command(std::uint64_t seed, Mutation mutation);

}  // namespace tocsin::simulation
