#include "tests/simulation/scenario.h"

#include <algorithm>

namespace tocsin::simulation {
namespace {

using namespace std::chrono_literals;

Anomaly anomaly(Random& random, const RunPlan& run, const LaunchPlan& launch) {
  Anomaly out;
  out.what = random.chance(0.5) ? Anomaly::What::nan : Anomaly::What::zeros;
  out.rank = static_cast<std::uint32_t>(random.index(run.ranks));
  out.tensor = random.index(run.tensors);
  out.first = launch.first_step + random.between(0, std::max<std::int64_t>(launch.steps - 2, 0));
  out.last = out.first + random.between(0, 6);
  return out;
}

RunPlan run_plan(Random random, std::size_t number, core::Duration length) {
  RunPlan run;
  run.name = "run-" + std::to_string(number);
  run.ranks = static_cast<std::uint32_t>(random.between(1, 3));
  run.tensors = static_cast<std::size_t>(random.between(1, 4));
  run.step_time = random.between(core::Duration(400ms), core::Duration(3s));
  core::Duration at = random.between(core::Duration(0s), length / 2);
  const auto launches = random.between(1, 3);
  for (std::int64_t i = 0; i < launches; ++i) {
    LaunchPlan launch;
    // A key may come again, and there may be none.
    if (random.chance(0.8)) launch.key = "elastic/" + std::to_string(random.between(0, 1));
    launch.starts = at;
    launch.skew = random.between(core::Duration(0s), core::Duration(4s));
    launch.first_step = random.chance(0.3) ? random.between(0, 20) : 0;
    launch.steps = random.between(3, 40);
    launch.end = static_cast<WorkerEnd>(random.index(4));
    launch.ends_at = launch.first_step + random.between(1, launch.steps);
    launch.bad_rank = static_cast<std::uint32_t>(random.index(run.ranks));
    launch.in_place = i > 0 && random.chance(0.3);
    const auto anomalies = random.between(0, 3);
    for (std::int64_t k = 0; k < anomalies; ++k) {
      launch.anomalies.push_back(anomaly(random, run, launch));
    }
    at += run.step_time * launch.steps + random.between(core::Duration(0s), core::Duration(20s));
    run.launches.push_back(std::move(launch));
  }
  return run;
}

void settings(Random random, Scenario& out) {
  auto& engine = out.engine;
  if (random.chance(0.5))
    engine.snapshot_interval = random.between(core::Duration(50ms), core::Duration(5s));
  if (random.chance(0.3))
    engine.commit_interval = random.between(core::Duration(1ms), core::Duration(2s));
  if (out.timeless) engine.join_grace = engine.idle_after = engine.lost_after = 1000h;
  auto& route = out.route;
  route.receivers = {"people"};
  route.group_by = std::vector<std::string>{"job", "rule"};
  route.group_wait = random.chance(0.3)
                         ? core::Duration(0s)
                         : random.between(core::Duration(100ms), core::Duration(30s));
  route.group_interval = random.between(core::Duration(500ms), core::Duration(30s));
  if (random.chance(0.5)) {
    route.repeat_interval = std::vector<routing::RepeatStep>{
        {std::nullopt, random.between(core::Duration(5s), core::Duration(10min))}};
  }
  if (!out.stops) return;
  routing::RouteConfig stop;
  stop.matchers = {"rule=\"exploding_tensor\""};
  stop.proceed = true;
  stop.receivers = {"stop"};
  stop.group_by = std::vector<std::string>{"run_uid", "rule"};
  stop.group_wait = core::Duration(0s);
  routing::RouteConfig people;
  people.receivers = {"people"};
  route.routes = {stop, people};
}

/// Those who are told beyond `people`, who acknowledges, and which other trees there are.
void people(Random random, Scenario& out) {
  if (random.chance(0.4)) {
    std::vector<routing::EscalationStep> steps(1);
    steps[0].after = random.between(core::Duration(1s), core::Duration(40s));
    steps[0].receiver = "second";
    if (random.chance(0.5)) {
      routing::EscalationStep& lead = steps.emplace_back();
      lead.after = steps[0].after + random.between(core::Duration(1s), core::Duration(40s));
      lead.receiver = "lead";
      lead.every = random.between(core::Duration(5s), core::Duration(30s));
      lead.repeats = static_cast<std::uint32_t>(random.between(0, 3));
      lead.unless_acked = random.chance(0.7);
    }
    out.route.further.steps = std::move(steps);
  }
  if (random.chance(0.3)) {
    out.route.further.on_failure =
        routing::FailureStep{random.between(core::Duration(2s), core::Duration(30s)), "backup"};
    out.faults.gone = random.real() * 0.2;
  }
  if (random.chance(0.5)) out.acks = random.real() * 0.02;
  if (!random.chance(0.3)) return;
  out.faults.reload = random.real() * 0.004;
  routing::RouteConfig regrouped = out.route;
  regrouped.group_by = std::vector<std::string>{"job"};
  routing::RouteConfig plain = out.route;
  plain.further = {};
  routing::RouteConfig wide = out.route;
  wide.group_by = std::vector<std::string>{"..."};
  wide.further.steps.emplace();
  out.other_routes = {regrouped, plain, wide};
}

}  // namespace

Scenario scenario_of(std::uint64_t seed) {
  Random random(Random(seed).next());  // neighbours have nothing in common
  Scenario out;
  out.seed = seed;
  out.timeless = random.chance(0.6);
  out.partitions = static_cast<std::int32_t>(random.between(1, 4));
  out.evaluators = static_cast<std::size_t>(random.between(1, 3));
  out.leaders = static_cast<std::size_t>(random.between(1, 2));
  out.stops = random.chance(0.5);
  out.eager = random.chance(0.3);
  out.markers = random.chance(0.8);
  out.length = random.between(core::Duration(20s), core::Duration(90s));
  const auto runs = random.between(1, 4);
  for (std::int64_t i = 0; i < runs; ++i) {
    out.runs.push_back(run_plan(random.fork(), static_cast<std::size_t>(i), out.length));
  }
  out.rules =
      "  - {use: all_zero, with: {tensor_regex: ['.*'], clear_after: 2}}\n"
      "  - {use: exploding_tensor}\n"
      "  - {use: loss_not_decreasing, with: {num_steps: 2}}\n"
      "  - {use: stalled_training_rule, with: {threshold: 20}}\n";
  settings(random.fork(), out);
  Random faults = random.fork();
  // Most worlds have few kinds of faults, so that each is seen without the others' noise.
  const auto rate = [&faults](double share, double most) {
    return faults.chance(share) ? faults.real() * most : 0;
  };
  out.faults.crash = rate(0.6, 0.02);
  out.faults.freeze = rate(0.4, 0.01);
  out.faults.rebalance = rate(0.4, 0.02);
  out.faults.throw_out = rate(0.3, 0.01);
  out.faults.away = rate(0.3, 0.01);
  out.faults.commit = rate(0.5, 0.3);
  out.faults.read = rate(0.3, 0.3);
  out.faults.poll = rate(0.3, 0.05);
  out.faults.clock_jump = rate(0.3, 0.01);
  out.faults.compaction = rate(0.5, 0.05);
  out.faults.duplicated = rate(0.3, 0.1);
  out.faults.delayed = rate(0.4, 0.1);
  out.faults.missing = rate(0.3, 0.05);
  out.faults.receiver = rate(0.6, 0.5);
  // Chance of its own: what came later does not change the worlds that were there before.
  Random later(Random(seed ^ 0x51D0A6E27ULL).next());
  out.agent = later.chance(0.4);
  out.faults.retention = later.chance(0.25) ? later.real() * 0.02 : 0;
  out.at_least_once = later.chance(0.2);
  if (out.at_least_once) out.engine.delivery = "at_least_once";
  if (later.chance(0.25)) {
    routing::InhibitRule& rule = out.inhibit_rules.emplace_back();
    rule.name = "nan-hides-zeros";
    rule.source_matchers = {"rule=exploding_tensor"};
    rule.target_matchers = {"rule=all_zero"};
    rule.equal = {"run_uid"};
    if (later.chance(0.5)) rule.hold_after = later.between(core::Duration(1s), core::Duration(20s));
  }
  people(Random(Random(seed ^ 0xAC4ED6E5ULL).next()), out);
  Random quiet(Random(seed ^ 0x51E9CE5ULL).next());
  if (quiet.chance(0.3)) out.silences = quiet.real() * 0.01;
  Random words(Random(seed ^ 0xA9920BA1ULL).next());
  if (out.stops && words.chance(0.5)) {
    out.approvals.words = 0.002 + words.real() * 0.05;
    out.approvals.timeout = words.chance(0.3)
                                ? core::Duration(5min)
                                : words.between(core::Duration(2s), core::Duration(60s));
    out.approvals.proceed = words.chance(0.4);
  }
  return out;
}

Scenario clock_scenario_of(std::uint64_t seed) {
  Scenario out = scenario_of(seed);
  Random random(Random(seed ^ 0xC10C2ULL).next());
  out.faults.clock_hour = 0.002 + random.real() * 0.01;
  out.faults.crash = std::max(out.faults.crash, 0.005);
  if (!out.route.repeat_interval) {
    out.route.repeat_interval = std::vector<routing::RepeatStep>{
        {std::nullopt, random.between(core::Duration(5s), core::Duration(2min))}};
  }
  return out;
}

std::string describe(const Scenario& scenario) {
  std::string text = "seed " + std::to_string(scenario.seed) + ": " +
                     std::to_string(scenario.partitions) + " partitions, " +
                     std::to_string(scenario.evaluators) + " evaluators, " +
                     std::to_string(scenario.leaders) + " routers and deliverers, " +
                     std::to_string(scenario.runs.size()) + " runs, " +
                     core::to_text(std::chrono::round<std::chrono::seconds>(scenario.length)) +
                     (scenario.timeless ? ", grace periods out of reach" : "") +
                     (scenario.eager ? ", eager rebalances" : "") +
                     (scenario.at_least_once ? ", at least once" : "") +
                     (scenario.agent ? ", an agent that sees processes end" : "");
  text += ", snapshot every " + core::to_text(scenario.engine.snapshot_interval);
  text += ", commit every " + core::to_text(scenario.engine.commit_interval);
  if (!scenario.inhibit_rules.empty()) text += ", NaN hides zeros";
  if (scenario.route.further.steps) text += ", a ladder";
  if (scenario.route.further.on_failure) text += ", a backup";
  if (scenario.acks > 0) text += ", people acknowledge";
  if (scenario.silences > 0) text += ", people silence";
  if (scenario.approvals.words > 0) {
    text += ", stops wait " + core::to_text(scenario.approvals.timeout) + " for a word, then " +
            (scenario.approvals.proceed ? "proceed" : "are cancelled");
  }
  if (scenario.faults.reload > 0) text += ", reloads";
  if (scenario.faults.clock_hour > 0) text += ", a clock that jumps by hours";
  if (scenario.route.group_wait && scenario.route.group_interval) {
    text += ", groups wait " + core::to_text(*scenario.route.group_wait) + ", then " +
            core::to_text(*scenario.route.group_interval);
  }
  return text;
}

}  // namespace tocsin::simulation
