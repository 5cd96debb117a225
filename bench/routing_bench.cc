// Routing: matching against many routes, and whole intake (lifecycle, match, group insert, state).
// Run: routing_bench --benchmark_filter=. ; rates are per second of one core.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "routing/routing.h"

namespace tocsin::routing {
namespace {

using namespace std::chrono_literals;

Integration webhook(const std::string& name) {
  Integration out;
  out.id = out.receiver = name;
  out.type = "webhook";
  return out;
}

/// `count` siblings: nine equalities for one regex, the last of them matches.
RouteConfig tree_of(std::int64_t count) {
  RouteConfig root;
  root.receivers = {"oncall"};
  root.group_by = {{"rule", "run_uid"}};
  for (std::int64_t i = 0; i < count; ++i) {
    RouteConfig route;
    const std::string team = "team-" + std::to_string(i);
    route.matchers = {i % 10 == 5 ? "team=~\"" + team + "|" + team + "-staging\""
                                  : "team=\"" + team + "\""};
    root.routes.push_back(std::move(route));
  }
  return root;
}

core::Labels labels_of(std::int64_t team, std::int64_t run) {
  return {{"rule", "exploding_tensor"},
          {"severity", "error"},
          {"job", "digits"},
          {"cluster", "c1"},
          {"team", "team-" + std::to_string(team)},
          {"run_uid", "run-" + std::to_string(run)},
          {"tensor", "gradient/conv1.weight"},
          {"worker", "worker_0"}};
}

std::unique_ptr<Router> router_of(std::int64_t routes) {
  auto made = Router::create(tree_of(routes), {}, {webhook("oncall")}, {});
  (*made)->restored(core::wall_time(1));
  return std::move(*made);
}

/// Explaining labels: the walk over the tree and its near misses.
void explain(benchmark::State& state) {
  const auto router = router_of(state.range(0));
  const core::Labels labels = labels_of(state.range(0) - 1, 0);
  for (auto _ : state) benchmark::DoNotOptimize(router->explain(labels));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(explain)->Arg(10)->Arg(1000);

/// New issues of ever new runs: dedup, lifecycle, match over all routes, a new group each.
void new_issue_new_group(benchmark::State& state) {
  auto router = router_of(state.range(0));
  std::int64_t serial = 0;
  core::Issue issue;
  issue.source = "/c1/rules/exploding_tensor";
  for (auto _ : state) {
    if (serial % 20'000 == 0) {
      state.PauseTiming();
      router = router_of(state.range(0));
      state.ResumeTiming();
    }
    issue.event_id = "iss_" + std::to_string(++serial);
    issue.labels = labels_of(serial % state.range(0), serial);
    issue.time = issue.starts_at = core::wall_time(serial);
    router->on_issue(issue, core::wall_time(serial));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(new_issue_new_group)->Arg(10)->Arg(1000);

/// Reports of issues that are known: what a long episode costs.
void known_issue(benchmark::State& state) {
  const auto router = router_of(state.range(0));
  std::vector<core::Issue> issues(100);
  for (std::size_t i = 0; i < issues.size(); ++i) {
    issues[i].source = "/c1/rules/exploding_tensor";
    issues[i].labels = labels_of(state.range(0) - 1, static_cast<std::int64_t>(i));
  }
  std::int64_t serial = 0;
  for (auto _ : state) {
    core::Issue& issue = issues[static_cast<std::size_t>(++serial) % issues.size()];
    issue.event_id = "iss_" + std::to_string(serial);
    issue.time = issue.starts_at = core::wall_time(serial);
    router->on_issue(issue, core::wall_time(serial));
    if (serial % 1000 == 0) benchmark::DoNotOptimize(router->take());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(known_issue)->Arg(1000);

/// One tick that flushes 10 000 groups of one member each.
void flush_ten_thousand_groups(benchmark::State& state) {
  const auto router = router_of(10);
  core::Issue issue;
  issue.source = "/c1/rules/exploding_tensor";
  for (std::int64_t i = 0; i < 10'000; ++i) {
    issue.labels = labels_of(3, i);
    issue.time = issue.starts_at = core::wall_time(1);
    router->on_issue(issue, core::wall_time(1));
  }
  core::WallTime now = core::wall_time(1) + 30s;
  for (auto _ : state) {
    router->tick(now);
    benchmark::DoNotOptimize(router->take());
    now += 5min;
  }
  state.SetItemsProcessed(state.iterations() * 10'000);
}
BENCHMARK(flush_ten_thousand_groups)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tocsin::routing

BENCHMARK_MAIN();
