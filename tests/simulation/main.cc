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

  /// Processes that died without a word.
  [[nodiscard]] std::uint64_t kills() const {
    std::uint64_t out = 0;
    for (const auto& [kind, number] : faults) {
      if (kind == "crash" || kind.starts_with("dies_")) out += number;
    }
    return out;
  }
  void add(const SeedReport& seed_report) {
    ++seeds;
    issues += seed_report.issues;
    notifications += seed_report.notifications;
    effects += seed_report.effects;
    stops += seed_report.stops;
    for (const auto& [kind, count] : seed_report.faults) faults[kind] += count;
  }
};

/// Which worlds, and when it is enough.
struct SoakOptions {
  std::uint64_t first = 1, count = 0;
  double minutes = 0;
  std::uint64_t kills = 0;  // at least
  bool clocks = false;
  Mutation mutation = Mutation::none;
};

SeedReport live(std::uint64_t seed, const SoakOptions& options, bool log = false) {
  return options.clocks ? simulate_clocks(seed, options.mutation, log)
                        : simulate(seed, options.mutation, log);
}

void report(std::uint64_t seed, const SoakOptions& options, const SeedReport& seed_report) {
  std::printf("seed %llu FAILED\n", static_cast<unsigned long long>(seed));
  for (const auto& problem : seed_report.problems) std::printf("  %s\n", problem.c_str());
  std::printf("  replay: %s\n", replay_command(seed, options.mutation, options.clocks).c_str());
}

int soak(const SoakOptions& options) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  Totals totals;
  double said = 0;
  const auto enough = [&](std::uint64_t seed) {
    if (options.count > 0) return seed >= options.first + options.count;
    return seconds() >= options.minutes * 60 && totals.kills() >= options.kills;
  };
  for (std::uint64_t seed = options.first; !enough(seed); ++seed) {
    const SeedReport seed_report = live(seed, options);
    totals.add(seed_report);
    if (!seed_report.problems.empty()) {
      ++totals.failed;
      report(seed, options, seed_report);
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
  line("processes killed", totals.kills());
  std::printf("faults by kind\n");
  for (const auto& [kind, number] : totals.faults) line(kind.c_str(), number);
  return totals.failed == 0 ? 0 : 1;
}

int run(int argc, char** argv) {
  CLI::App app{"The simulated world: see docs/simulation.md"};
  SoakOptions options;
  bool log = false;
  std::string wrong = "none";
  app.add_option("--seed", options.first, "the seed, or the first one");
  app.add_option("--seeds", options.count, "so many seeds from there on");
  app.add_option("--minutes", options.minutes, "seeds until the time is over");
  app.add_option("--kills", options.kills, "and until so many processes were killed");
  app.add_flag("--clocks", options.clocks, "worlds whose clock jumps by hours");
  app.add_flag("--log", log, "print what happens");
  app.add_option("--mutation", wrong, "a known mistake, put back on purpose");
  CLI11_PARSE(app, argc, argv);
  for (const Mutation one : kMutations) {
    if (to_string(one) == wrong) options.mutation = one;
  }
  if (options.count > 0 || options.minutes > 0 || options.kills > 0) return soak(options);
  const std::uint64_t seed = options.first;
  const SeedReport seed_report = live(seed, options, log);
  if (seed_report.problems.empty()) {
    std::printf("seed %llu: all is well\n", static_cast<unsigned long long>(seed));
    return 0;
  }
  report(seed, options, seed_report);
  return seed_report.problems.empty() ? 0 : 1;
}

}  // namespace
}  // namespace tocsin::simulation

int main(int argc, char** argv) { return tocsin::simulation::run(argc, argv); }
