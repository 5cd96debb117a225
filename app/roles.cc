#include "app/roles.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "app/answer_ways.h"
#include "app/config/command_place.h"
#include "app/config/insights_place.h"
#include "app/config/transport_settings.h"
#include "app/process/version.h"
#include "app/stages/answers.h"
#include "app/stages/collect.h"
#include "app/stages/deliver.h"
#include "app/stages/evaluate.h"
#include "app/stages/evidence.h"
#include "app/stages/letters.h"
#include "app/stages/platform_calls.h"
#include "app/stages/platform_stops.h"
#include "app/stages/reports.h"
#include "app/stages/route.h"
#include "app/stages/runs.h"
#include "app/stages/scalars.h"
#include "app/stages/stops.h"
#include "app/stages/tracing.h"
#include "core/topics.h"

namespace tocsin::app {
namespace {

auto reader_of(ingest::Transport* transport, const char* topic) {
  return [transport, topic] {
    ingest::SourceOptions source;
    source.topics = {topic};
    source.start = ingest::Start::beginning;
    return transport->source(std::move(source));
  };
}

class Maker {
 public:
  Maker(const AppConfig& config, const AppOptions& options, LoopPorts ports, RoleParts& parts)
      : config_(config), options_(options), ports_(std::move(ports)), parts_(parts) {}

  core::Status evaluate();
  core::Status hosted();
  core::Status reports();
  core::Status evidence();
  core::Status route();
  void collect();
  std::vector<RunningStage> take() { return std::move(stages_); }

 private:
  void add(std::string thread, std::unique_ptr<Stage> stage);
  core::Status prepare_routing();
  void add_route();
  void add_deliver();
  void add_platform_stops();
  void add_tracing();

  const AppConfig& config_;
  const AppOptions& options_;
  LoopPorts ports_;
  RoleParts& parts_;
  std::vector<RunningStage> stages_;
};

// Kafka allows many engine threads (one group member each); the journal has one partition.
std::size_t engine_threads(const AppConfig& config, bool kafka) {
  if (!kafka) return 1;
  if (config.engine.threads > 0) return config.engine.threads;
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  return cores > 2 ? cores - 1 : 1;
}

// Without a tree, rules with `actions:` still have routes of their own.
bool routes_anything(const AppConfig& config) {
  return config.has_route || !rule_actions(config.rules).empty();
}

void Maker::add(std::string thread, std::unique_ptr<Stage> stage) {
  RunningStage one;
  one.thread = std::move(thread);
  one.loop = std::make_unique<TopicLoop>(*stage, ports_);
  one.stage = std::move(stage);
  stages_.push_back(std::move(one));
}

core::Status Maker::evaluate() {
  const std::string& prefix = config_.topics.prefix;
  const rules::RulesConfig ours = engine_rules(config_.rules, config_.rules);
  for (std::size_t i = 0; i < engine_threads(config_, ports_.transport->is_kafka()); ++i) {
    auto slot = InstanceSlot::acquire(prefix + "/rules");
    if (!slot) return slot.error().in("evaluate");
    EvaluateOptions stage{
        ours,           config_.engine, config_.cluster,
        config_.labels, prefix,         options_.host + "-" + std::to_string(slot->number())};
    parts_.slots.push_back(std::move(*slot));
    if (ports_.transport->is_kafka()) {
      stage.comparisons = reader_of(ports_.transport, core::topic::kComparisons);
    }
    stage.registry = reader_of(ports_.transport, core::topic::kRegistry);
    auto engine = std::make_unique<EvaluateStage>(std::move(stage), *ports_.log, *ports_.telemetry);
    parts_.engines.push_back(engine.get());
    add("engine", std::move(engine));
  }
  return core::ok();
}

// Each in an engine and a thread of its own: one that hangs holds up nobody else.
core::Status Maker::hosted() {
  const std::string& prefix = config_.topics.prefix;
  std::set<std::string> askers;
  for (const rules::RuleSettings& rule : config_.rules.rules) {
    if (!rule.hosted) continue;
    auto slot = InstanceSlot::acquire(prefix + "/rules/" + rule.name);
    if (!slot) return slot.error().in("rule " + rule.name);
    EvaluateOptions stage{{{rule}},        config_.engine,
                          config_.cluster, config_.labels,
                          prefix,          options_.host + "-" + std::to_string(slot->number())};
    stage.hosted = rule.name;
    stage.registry = reader_of(ports_.transport, core::topic::kRegistry);
    stage.asks = !options_.roles.evaluate;
    if (stage.asks) askers.insert(rule.name);
    embedded::PluginsConfig plugins = config_.plugins;
    plugins.out = out_of(config_.transport);
    if (!config_.files.empty()) plugins.config = config_.files.front();
    stage.host = [plugins, clock = ports_.clock, log = ports_.log] {
      return std::make_shared<RuleProcesses>(plugins, *clock, *log);
    };
    parts_.slots.push_back(std::move(*slot));
    add("rule", std::make_unique<EvaluateStage>(std::move(stage), *ports_.log, *ports_.telemetry));
  }
  if (!askers.empty()) {
    add("answers",
        std::make_unique<AnswersStage>(std::move(askers), *ports_.log, *ports_.telemetry));
  }
  return core::ok();
}

core::Status Maker::reports() {
  if (config_.reports.at_end == "none") return core::ok();
  auto slot = InstanceSlot::acquire(config_.topics.prefix + "/reports");
  if (!slot) return slot.error().in("reports");
  ReportsOptions stage{config_.reports.dir,
                       config_.reports.url,
                       config_.cluster,
                       config_.topics.prefix,
                       options_.host + "-" + std::to_string(slot->number()),
                       version_text(),
                       config_.insights.enabled ? insights_path(config_, "") : "",
                       config_.insights.enabled ? insights_path(config_, "curves.db") : ""};
  parts_.slots.push_back(std::move(*slot));
  add("reports", std::make_unique<ReportsStage>(std::move(stage), gather_from(*ports_.transport),
                                                *ports_.log, *ports_.telemetry));
  return core::ok();
}

core::Status Maker::evidence() {
  if (config_.evidence.keep == "none") return core::ok();
  auto slot = InstanceSlot::acquire(config_.topics.prefix + "/evidence");
  if (!slot) return slot.error().in("evidence");
  EvidenceOptions stage{config_.evidence, config_.cluster, config_.topics.prefix,
                        options_.host + "-" + std::to_string(slot->number())};
  parts_.slots.push_back(std::move(*slot));
  const auto copy = [transport = ports_.transport, config = config_.evidence,
                     instance = stage.instance](const core::Issue& issue) {
    return copy_evidence(*transport, issue, config, instance);
  };
  add("evidence",
      std::make_unique<EvidenceStage>(std::move(stage), copy, *ports_.log, *ports_.telemetry));
  return core::ok();
}

/// Where the outbox lies: the same words for all routers that share it, and for no others.
std::string outbox_of(const AppConfig& config, const std::string& host) {
  if (!config.transport.kafka.is_null()) {
    return out_of(config.transport) + "/" + config.topics.prefix;
  }
  std::error_code unknown;
  const auto path = std::filesystem::weakly_canonical(config.transport.journal, unknown);
  return host + ":" + (unknown ? config.transport.journal : path.string());
}

core::Status Maker::prepare_routing() {
  auto lease = ports_.transport->lease(core::topic::kRouterLease);
  if (!lease) return lease.error();
  parts_.leadership = std::make_unique<Leadership>(std::move(*lease), *ports_.clock, *ports_.log,
                                                   *ports_.telemetry);
  ports_.leadership = parts_.leadership.get();
  actions::Environment environment;
  environment.clock = ports_.clock;
  environment.log = ports_.log;
  environment.telemetry = ports_.telemetry;
  environment.cluster = config_.cluster;
  environment.external_url = config_.external_url;
  environment.host = options_.host;
  environment.outbox = outbox_of(config_, options_.host);
  environment.delivers = [leadership = parts_.leadership.get()] { return leadership->term() != 0; };
  environment.place = command_place(config_);
  environment.answers = answer_ways(config_);
  environment.issue_metrics = &parts_.issue_metrics;
  environment.stops = &parts_.ledger;
  environment.approvals = &parts_.approvals;
  environment.profiles = &parts_.profiles;
  environment.steering = &parts_.steering;
  environment.scalars = &parts_.scalars;
  environment.current_run = [board = &parts_.board](const core::RunUid& run) {
    return board->find(run);
  };
  environment.running_runs = [board = &parts_.board, clock = ports_.clock] {
    return board->running(clock->now());
  };
  environment.firing = &parts_.firing;
  environment.stops_dry_run = config_.stops_dry_run;
  environment.traced = actions::asked_for(*config_.tracing);
  parts_.approvals.name_place(environment.place);
  auto actions = ActionSet::build(config_, *ports_.transport, environment);
  if (!actions) return actions.error();
  parts_.actions = std::move(*actions);
  return core::ok();
}

/// For how long the topic of dead letters keeps a record.
core::Duration letters_kept(const ingest::TopicsConfig& topics) {
  for (const ingest::TopicSpec& topic : ingest::topic_plan(topics)) {
    if (topic.name != core::topic::kRouterDeadletter) continue;
    for (const auto& [key, value] : topic.settings) {
      if (key == "retention.ms") return std::chrono::milliseconds(std::stoll(value));
    }
  }
  return std::chrono::hours(24 * 90);
}

void Maker::add_route() {
  RouteOptions stage{config_.route,
                     rule_actions(config_.rules),
                     routing_integrations(config_.receivers),
                     config_.inhibit_rules,
                     config_.router,
                     config_.version,
                     config_.cluster,
                     config_.topics.prefix,
                     config_.time_intervals};
  const auto render = [set = parts_.actions.get(), clock = ports_.clock,
                       telemetry = ports_.telemetry](const core::Notification& notification) {
    const core::Duration began = clock->monotonic();
    auto rendered = set->render(notification);
    telemetry
        ->histogram("tocsin_router_template_seconds", "rendering of one message",
                    {{"integration", notification.integration}})
        .observe(std::chrono::duration<double>(clock->monotonic() - began).count());
    return rendered;
  };
  std::set<std::string> picturing;  // integrations that keep a picture of what fires
  bool stops = false;
  for (const auto& lane : actions::lane_options(config_.receivers, config_.cluster)) {
    if (lane.traits.keeps_state) picturing.insert(lane.integration);
    stops = stops || lane.type == "stop_training";
  }
  const auto show_again = [metrics = &parts_.issue_metrics, picturing](
                              const routing::IssueView& view,
                              std::span<const std::string> integrations) {
    for (const std::string& one : integrations) {
      if (picturing.contains(one))
        metrics->show(one, {std::string(view.issue_key), view.episodes, view.issue, std::nullopt});
    }
  };
  auto route = std::make_unique<RouteStage>(std::move(stage), &parts_.board, render,
                                            picturing.empty() ? ShowAgain() : ShowAgain(show_again),
                                            *ports_.log, *ports_.telemetry);
  if (!picturing.empty()) {
    route->on_end(
        [metrics = &parts_.issue_metrics](const std::string& key, std::uint64_t episode,
                                          core::WallTime now) { metrics->end(key, episode, now); });
  }
  // A second table of everything that fires. Nobody asks it but who stops runs; without it a stop that
  // still waits, of an earlier configuration, is decided by a person or runs out.
  if (stops) route->show_in(&parts_.firing);
  add("router", std::move(route));
}

void Maker::add_deliver() {
  DeliverOptions stage{actions::lane_options(config_.receivers, config_.cluster), config_.cluster,
                       config_.topics.prefix};
  // The loop is made after its stage, and the pool after both.
  auto loop = std::make_shared<TopicLoop*>(nullptr);
  const auto callers = [parts = &parts_, loop]() -> std::unique_ptr<actions::Caller> {
    actions::PoolOptions pool;
    pool.action = [set = parts->actions.get()](std::string_view integration) {
      return set->find(integration);
    };
    pool.gate = [leadership = parts->leadership.get(), term = parts->leadership->term()] {
      return term != 0 && leadership->term() == term;
    };
    pool.on_finished = [loop] { (*loop)->wake(); };
    return std::make_unique<actions::DeliveryPool>(std::move(pool));
  };
  auto random = std::make_shared<std::mt19937_64>(std::random_device{}());
  add("deliver",
      std::make_unique<DeliverStage>(
          std::move(stage), callers, [board = &parts_.board] { return board->complete(); },
          [random] { return std::uniform_real_distribution<double>(0, 1)(*random); }, *ports_.log,
          *ports_.telemetry));
  *loop = stages_.back().loop.get();
}

void Maker::add_platform_stops() {
  // The loop is made after its stage, and the threads after both.
  auto loop = std::make_shared<TopicLoop*>(nullptr);
  const auto calls = [leadership = parts_.leadership.get(),
                      loop]() -> std::unique_ptr<actions::PlatformCaller> {
    const std::uint64_t term = leadership->term();
    return std::make_unique<PlatformCalls>(
        [leadership, term] { return term != 0 && leadership->term() == term; },
        [loop] { (*loop)->wake(); });
  };
  add("endings", std::make_unique<PlatformStopsStage>(
                     PlatformStopsOptions{options_.host, config_.cluster},
                     actions::make_platforms(*config_.platforms, *ports_.clock, nullptr), calls,
                     *ports_.log, *ports_.telemetry));
  *loop = stages_.back().loop.get();
}

void Maker::add_tracing() {
  const auto courier = [config = config_.tracing, cluster = config_.cluster, clock = ports_.clock] {
    return std::make_unique<SpanCourier>(
        actions::make_span_exporter(config, cluster, *clock, nullptr));
  };
  add("tracing", std::make_unique<TracingStage>(courier, *ports_.log, *ports_.telemetry));
}

core::Status Maker::route() {
  if (!routes_anything(config_)) return core::ok();
  if (const auto status = prepare_routing(); !status) return status;
  auto runs = std::make_unique<RunsStage>(
      parts_.board, parts_.ledger, parts_.approvals, parts_.profiles, config_.cluster,
      [leadership = parts_.leadership.get()] { return leadership->term() != 0; });
  runs->look_at(&parts_.firing);
  runs->steer_by(&parts_.steering);
  add("runs", std::move(runs));
  if (parts_.scalars.wanted()) {
    add("scalars",
        std::make_unique<ScalarsStage>(
            parts_.scalars,
            [board = &parts_.board](const core::RunUid& run) { return board->job_of(run); },
            *ports_.telemetry));
  }
  add_route();
  add_deliver();
  if (actions::asked_for(*config_.tracing)) add_tracing();
  add("letters", std::make_unique<LettersStage>(letters_kept(config_.topics), *ports_.telemetry));
  add_platform_stops();
  return core::ok();
}

void Maker::collect() {
  const auto here = std::make_shared<StopsHere>();
  add("collect",
      std::make_unique<CollectStage>(CollectOptions{config_.collect, options_.host, here},
                                     *ports_.clock, *ports_.log, *ports_.telemetry));
  // What a platform ends, its node's agent leaves alone: the leader has the same configuration.
  const std::shared_ptr<const PlatformStopsStage::Platforms> platforms =
      std::make_shared<PlatformStopsStage::Platforms>(
          actions::make_platforms(*config_.platforms, *ports_.clock, nullptr));
  const auto elsewhere = [platforms](const core::Value& fence) {
    return std::any_of(platforms->begin(), platforms->end(),
                       [&](const auto& one) { return one->reaches(fence); });
  };
  add("stops", std::make_unique<StopsStage>(
                   StopsOptions{options_.host, config_.cluster, here, elsewhere},
                   actions::local_process_control(options_.host), *ports_.log, *ports_.telemetry));
}

}  // namespace

rules::RulesConfig engine_rules(const rules::RulesConfig& rules, const rules::RulesConfig& hosted) {
  rules::RulesConfig out;
  for (const rules::RuleSettings& rule : rules.rules) {
    if (!rule.hosted) out.rules.push_back(rule);
  }
  for (const rules::RuleSettings& rule : hosted.rules) {
    if (rule.hosted) out.elsewhere.push_back(rule);
  }
  return out;
}

core::Result<std::vector<RunningStage>> make_stages(const AppConfig& config,
                                                    const AppOptions& options, LoopPorts ports,
                                                    RoleParts& parts) {
  Maker maker(config, options, std::move(ports), parts);
  if (options.roles.collect) maker.collect();
  if (options.roles.evaluate) {
    if (const auto status = maker.evaluate(); !status) return status.error();
    if (const auto status = maker.reports(); !status) return status.error();
    if (const auto status = maker.evidence(); !status) return status.error();
  }
  if (options.roles.hosted) {
    if (const auto status = maker.hosted(); !status) return status.error();
  }
  if (options.roles.route) {
    if (const auto status = maker.route(); !status) return status.error().in("route");
  }
  return maker.take();
}

}  // namespace tocsin::app
