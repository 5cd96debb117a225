// simulate: one seed with a readable log, or seeds one after another until the time is over.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>

#include "tests/simulation/simulate.h"

namespace tocsin::simulation {
namespace {

struct Totals {
  std::uint64_t seeds = 0, failed = 0, issues = 0, notifications = 0, effects = 0, stops = 0;
  std::map<std::string, std::uint64_t> faults;

  void add(const SeedReport& seed_report) {
    ++seeds;
    issues += seed_report.issues;
    notifications += seed_report.notifications;
    effects += seed_report.effects;
    stops += seed_report.stops;
    for (const auto& [kind, count] : seed_report.faults) faults[kind] += count;
  }
};

void report(std::uint64_t seed, Mutation mutation, const SeedReport& seed_report) {
  std::printf("seed %llu FAILED\n", static_cast<unsigned long long>(seed));
  for (const auto& problem : seed_report.problems) std::printf("  %s\n", problem.c_str());
  std::printf("  replay: %s\n", replay_command(seed, mutation).c_str());
}

int soak(std::uint64_t first, std::uint64_t count, double minutes, Mutation mutation) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  Totals totals;
  double said = 0;
  for (std::uint64_t seed = first;; ++seed) {
    if (count > 0 ? seed >= first + count : seconds() >= minutes * 60) break;
    const SeedReport seed_report = simulate(seed, mutation);
    totals.add(seed_report);
    if (!seed_report.problems.empty()) {
      ++totals.failed;
      report(seed, mutation, seed_report);
    }
    if (seconds() - said >= 10) {
      said = seconds();
      std::printf(
          "%llu seeds, %.1f/s, %llu failed\n", static_cast<unsigned long long>(totals.seeds),
          static_cast<double>(totals.seeds) / said, static_cast<unsigned long long>(totals.failed));
      std::fflush(stdout);
    }
  }
  const auto line = [](const char* what, std::uint64_t value) {
    std::printf("  %-24s %12llu\n", what, static_cast<unsigned long long>(value));
  };
  std::printf("%llu seeds in %.1f s, %.1f seeds/s, %llu failed\n",
              static_cast<unsigned long long>(totals.seeds), seconds(),
              static_cast<double>(totals.seeds) / seconds(),
              static_cast<unsigned long long>(totals.failed));
  line("events committed", totals.issues);
  line("notifications decided", totals.notifications);
  line("effects outside", totals.effects);
  line("processes stopped", totals.stops);
  std::printf("faults by kind\n");
  for (const auto& [kind, number] : totals.faults) line(kind.c_str(), number);
  return totals.failed == 0 ? 0 : 1;
}

int run(int argc, char** argv) {
  CLI::App app{"The simulated world: see docs/simulation.md"};
  std::uint64_t seed = 1;
  std::uint64_t count = 0;
  double minutes = 0;
  bool log = false;
  std::string wrong = "none";
  app.add_option("--seed", seed, "the seed, or the first one");
  app.add_option("--seeds", count, "so many seeds from there on");
  app.add_option("--minutes", minutes, "seeds until the time is over");
  app.add_flag("--log", log, "print what happens");
  app.add_option("--mutation", wrong, "a known mistake, put back on purpose");
  CLI11_PARSE(app, argc, argv);
  Mutation mutation = Mutation::none;
  for (const Mutation one : kMutations) {
    if (to_string(one) == wrong) mutation = one;
  }
  if (count > 0 || minutes > 0) return soak(seed, count, minutes, mutation);
  const SeedReport seed_report = simulate(seed, mutation, log);
  if (seed_report.problems.empty()) {
    std::printf("seed %llu: all is well\n", static_cast<unsigned long long>(seed));
    return 0;
  }
  report(seed, mutation, seed_report);
  return seed_report.problems.empty() ? 0 : 1;
}

}  // namespace
}  // namespace tocsin::simulation

int main(int argc, char** argv) { return tocsin::simulation::run(argc, argv); }
