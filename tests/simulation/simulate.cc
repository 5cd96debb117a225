#include "tests/simulation/simulate.h"

#include <utility>

#include "tests/simulation/invariants.h"
#include "tests/simulation/world.h"

namespace tocsin::simulation {
namespace {

SeedReport live_through(Scenario scenario, Mutation mutation, bool print) {
  World world(std::move(scenario), mutation, print);
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

}  // namespace

SeedReport simulate(std::uint64_t seed, Mutation mutation, bool print) {
  return live_through(scenario_of(seed), mutation, print);
}

SeedReport simulate_clocks(std::uint64_t seed, Mutation mutation, bool print) {
  return live_through(clock_scenario_of(seed), mutation, print);
}

std::string replay_command(std::uint64_t seed, Mutation mutation, bool clocks) {
  std::string command = "tests/simulation/simulate --seed " + std::to_string(seed) + " --log";
  if (clocks) command += " --clocks";
  if (mutation != Mutation::none) command += " --mutation " + std::string(to_string(mutation));
  return command;
}

}  // namespace tocsin::simulation
