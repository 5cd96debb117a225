#include "tests/simulation/simulate.h"

#include "tests/simulation/invariants.h"
#include "tests/simulation/world.h"

namespace tocsin::simulation {

SeedReport simulate(std::uint64_t seed, Mutation mutation, bool print) {
  World world(scenario_of(seed), mutation, print);
  world.run();
  SeedReport seed_report;
  Findings findings = check(world);
  seed_report.problems = std::move(findings.problems);
  seed_report.faults = world.trace().faults();
  seed_report.issues = world.broker().records("issues").size();
  seed_report.notifications = world.broker().records("router-outbox").size();
  seed_report.effects = world.receivers().effects().size();
  seed_report.stops = world.stopped().size();
  return seed_report;
}

std::string replay_command(std::uint64_t seed, Mutation mutation) {
  std::string command = "tests/simulation/simulate --seed " + std::to_string(seed) + " --log";
  if (mutation != Mutation::none) command += " --mutation " + std::string(to_string(mutation));
  return command;
}

}  // namespace tocsin::simulation
