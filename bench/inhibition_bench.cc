// What inhibition costs: nothing while nobody uses it, and a flush with 10 000 firing sources what one
// with ten costs. Baseline: the same work without rules, or with few sources, in turns.
// Run: inhibition_bench
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/bench_report.h"
#include "routing/routing.h"

namespace tocsin::routing {
namespace {

using namespace std::chrono_literals;

constexpr int kTurns = 15;
constexpr int kTargets = 5'000;  // issues, each in a group of its own
constexpr int kFew = 10;
constexpr int kMany = 10'000;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

core::WallTime begin() { return core::wall_time(1'767'323'000'000'000'000); }

InhibitRule nan_hides_rest(std::vector<std::string> equal) {
  InhibitRule rule;
  rule.name = "nan-hides-rest";
  rule.source_matchers = {"rule=exploding_tensor"};
  rule.target_matchers = {"rule!=exploding_tensor"};
  rule.equal = std::move(equal);
  return rule;
}

std::unique_ptr<Router> make_router(std::vector<InhibitRule> rules) {
  RouteConfig root;
  root.receivers = {"oncall"};
  root.group_by = {{"rule", "job"}};
  root.group_interval = 1h;
  Integration integration;
  integration.id = integration.receiver = "oncall";
  integration.type = "webhook";
  RouterOptions options;
  options.inhibit_rules = std::move(rules);
  auto made = Router::create(root, {}, {integration}, options);
  (*made)->restored(begin());
  return std::move(*made);
}

void report(Router& router, const std::string& rule, int number, core::WallTime now) {
  core::Issue issue;
  issue.source = "/c1/rules/" + rule;
  issue.rule = rule;
  issue.event_id = "iss_" + rule + std::to_string(number);
  issue.severity = core::Severity::error;
  issue.labels = {{"rule", rule},
                  {"severity", "error"},
                  {"job", "job-" + std::to_string(number)},
                  {"tensor", "gradient/conv1.weight"}};
  issue.time = issue.starts_at = now;
  router.on_issue(std::move(issue), now);
}

void tell(Router& router, core::WallTime now) {
  while (router.tick(now)) router.take();
  router.take();
}

/// Issues that no rule of these is the source of, read and told.
double intake_and_flush(std::vector<InhibitRule> rules) {
  const auto router = make_router(std::move(rules));
  const double start = cpu_seconds();
  for (int i = 0; i < kTargets; ++i) report(*router, "overfit", i, begin());
  tell(*router, begin() + 30s);
  return cpu_seconds() - start;
}

/// The flush of all targets while `sources` fire. The first ten are of jobs that have targets.
double flush(int sources, const std::vector<std::string>& equal) {
  const auto router = make_router({nan_hides_rest(equal)});
  for (int i = 0; i < sources; ++i) {
    report(*router, "exploding_tensor", i < kFew ? i : kTargets + i, begin());
  }
  tell(*router, begin() + 30s);
  const core::WallTime later = begin() + 10min;
  for (int i = 0; i < kTargets; ++i) report(*router, "overfit", i, later);
  router->take();
  const double start = cpu_seconds();
  tell(*router, later + 30s);
  return cpu_seconds() - start;
}

using Work = std::function<double()>;

bool compare(const std::string& name, const Work& ours, const Work& floor, double target) {
  std::vector<double> a;
  std::vector<double> b;
  for (int turn = 0; turn < kTurns; ++turn) {
    a.push_back(ours() * 1e3);
    b.push_back(floor() * 1e3);
  }
  return bench::beside(name, bench::quantile(a, 0.5), bench::quantile(b, 0.5), "ms", target);
}

}  // namespace
}  // namespace tocsin::routing

int main() {
  using namespace tocsin::routing;
  const std::vector<std::string> job{"job"};
  bool good = compare(
      "5 000 issues read and told, a rule without sources",
      [&] { return intake_and_flush({nan_hides_rest(job)}); }, [] { return intake_and_flush({}); },
      1.1);
  good = compare(
             "flush of 5 000 targets, 10 000 sources beside 10", [&] { return flush(kMany, job); },
             [&] { return flush(kFew, job); }, 1.25) &&
         good;
  good = compare(
             "the same, all sources count for each target", [] { return flush(kMany, {}); },
             [] { return flush(kFew, {}); }, 1.25) &&
         good;
  return good ? 0 : 1;
}
