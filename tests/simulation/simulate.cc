#include "tests/simulation/simulate.h"

#include "tests/simulation/invariants.h"
#include "tests/simulation/world.h"

namespace tocsin::simulation {

Verdict simulate(std::uint64_t seed, Mutation mutation, bool print) {
  World world(scenario_of(seed), mutation, print);
  world.run();
  Verdict verdict;
  Findings findings = check(world);
  verdict.problems = std::move(findings.problems);
  verdict.faults = world.trace().faults();
  verdict.issues = world.broker().records("issues").size();
  verdict.notifications = world.broker().records("router-outbox").size();
  verdict.effects = world.receivers().effects().size();
  verdict.stops = world.stopped().size();
  return verdict;
}

std::string replay_command(std::uint64_t seed, Mutation mutation) {
  std::string command = "tests/simulation/simulate --seed " + std::to_string(seed) + " --log";
  if (mutation != Mutation::none) command += " --mutation " + std::string(to_string(mutation));
  return command;
}

}  // namespace tocsin::simulation
