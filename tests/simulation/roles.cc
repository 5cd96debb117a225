#include "tests/simulation/roles.h"

#include <cstdio>
#include <cstdlib>

#include "app/action_set.h"
#include "app/stages/deliver.h"
#include "app/stages/evaluate.h"
#include "app/stages/route.h"
#include "app/stages/run_board.h"
#include "app/stages/runs.h"
#include "app/stages/stops.h"
#include "tests/simulation/workers.h"

namespace tocsin::simulation {
namespace {

using namespace std::chrono_literals;

constexpr const char* kReceivers =
    "receivers:\n"
    "  people: {webhook: {url: 'https://people.example.com/'}}\n"
    "  second: {webhook: {url: 'https://second.example.com/'}}\n"
    "  lead: {webhook: {url: 'https://lead.example.com/'}}\n"
    "  backup: {webhook: {url: 'https://backup.example.com/'}}\n"
    "  stop:\n"
    "    stop_training:\n"
    "      armed: true\n"
    "      mode: stop\n"
    "      deadline: {ack: 5s, graceful: 10s, total: 30s}\n"
    "      grace: 5s\n";

void parse(const std::string& yaml, const std::function<void(config::Reader&)>& read) {
  config::Diagnostics diagnostics;
  const config::Environment nothing = [](const std::string&) { return std::nullopt; };
  const auto document = config::Document::parse(yaml, "scenario.yaml", nothing, diagnostics);
  if (document) document->read(diagnostics, [&](config::Reader& root) { read(root); });
  for (const auto& one : diagnostics.items()) {
    std::fprintf(stderr, "%s\n", config::to_text(one).c_str());
  }
  if (!diagnostics.items().empty()) std::abort();
}

actions::ReceiversConfig receivers_config(const ApprovalPlan& approvals) {
  std::string yaml = kReceivers;
  if (approvals.words > 0) {
    yaml += "      approval: always\n      approval_timeout: " + core::to_text(approvals.timeout) +
            "\n      on_approval_timeout: " + (approvals.proceed ? "proceed" : "cancel") + "\n";
  }
  actions::ReceiversConfig out;
  parse(yaml, [&](config::Reader& root) { actions::read_receivers(root, out); });
  return out;
}

class SimulatedProcesses final : public actions::ProcessControl {
 public:
  explicit SimulatedProcesses(
      std::function<actions::Observed(const actions::ProcessFence&, int)> signal)
      : signal_(std::move(signal)) {}
  actions::Observed send(const actions::ProcessFence& fence, int number) override {
    return signal_(fence, number);
  }

 private:
  std::function<actions::Observed(const actions::ProcessFence&, int)> signal_;
};

}  // namespace

rules::RulesConfig parse_rules(const std::string& yaml) {
  rules::RulesConfig out;
  parse("rules:\n" + yaml, [&](config::Reader& root) { rules::read_rules(root, out); });
  return out;
}

void build_evaluator(Process& process, const RoleParts& parts, std::size_t number) {
  app::EvaluateOptions options;
  options.rules = parts.rules;
  options.engine = parts.scenario->engine;
  options.instance = std::to_string(number);
  process.add(mutate(parts.mutation, std::make_unique<app::EvaluateStage>(
                                         options, process.log(), *process.ground().telemetry)));
}

void build_leader(Process& process, const RoleParts& parts, Random random) {
  core::Log& log = process.log();
  core::Telemetry& telemetry = *process.ground().telemetry;
  auto& board = process.keep(std::make_unique<app::RunBoard>());
  auto& ledger = process.keep(std::make_unique<actions::StopLedger>());
  auto& approvals = process.keep(std::make_unique<actions::StopApprovals>());
  auto& firing = process.keep(std::make_unique<actions::FiringIssues>());
  auto& profiles = process.keep(std::make_unique<actions::ProfileLedger>());
  auto& chance = process.keep(std::make_unique<Random>(random));
  app::AppConfig config;
  config.receivers = receivers_config(parts.scenario->approvals);
  actions::Environment environment;
  environment.clock = process.ground().clock;
  environment.log = &log;
  environment.telemetry = &telemetry;
  environment.host = kHost;
  environment.stops = &ledger;
  environment.approvals = &approvals;
  environment.firing = &firing;
  environment.profiles = &profiles;
  environment.current_run = [&board](const core::RunUid& run) { return board.find(run); };
  auto built = app::ActionSet::build(config, process.transport(), environment);
  if (!built) std::abort();
  auto& actions = process.keep(std::move(*built));
  process.lead();
  const auto leads = [&process] { return process.leads(); };

  auto runs = std::make_unique<app::RunsStage>(board, ledger, approvals, profiles,
                                               environment.cluster, leads);
  runs->look_at(&firing);
  process.add(mutate(parts.mutation, std::move(runs)));
  app::RouteOptions route;
  route.route = *parts.route;
  route.inhibit_rules = parts.scenario->inhibit_rules;
  route.integrations = app::routing_integrations(config.receivers);
  const auto render = [&actions](const core::Notification& notification) {
    return notification.type == "stop_training" ? actions.render(notification)
                                                : core::Result<std::string>(std::string("{}"));
  };
  auto router =
      std::make_unique<app::RouteStage>(route, &board, render, app::ShowAgain(), log, telemetry);
  router->show_in(&firing);
  process.add(std::move(router));
  app::DeliverOptions deliver;
  deliver.lanes = actions::lane_options(config.receivers, "");
  for (auto& lane : deliver.lanes) {
    lane.common.retry.max = 5s;
    lane.common.breaker.open = 2s;
    lane.common.breaker.max_open = 10s;
  }
  const auto callers = [&, leads]() -> std::unique_ptr<actions::Caller> {
    return std::make_unique<SimulatedCaller>(
        *parts.receivers, *process.ground().clock, process.name(), leads,
        [&actions](std::string_view integration) -> core::Action* {
          return integration.starts_with("stop/") ? actions.find(integration) : nullptr;
        });
  };
  process.add(mutate(parts.mutation, std::make_unique<app::DeliverStage>(
                                         deliver, callers, [&board] { return board.complete(); },
                                         [&chance] { return chance.real(); }, log, telemetry)));
}

void build_agent(Process& process, const RoleParts& parts) {
  app::StopsOptions options;
  options.host = kHost;
  options.here = std::make_shared<app::StopsHere>();
  parts.agent_begins(options.here);
  process.add(std::make_unique<app::StopsStage>(options,
                                                std::make_unique<SimulatedProcesses>(parts.signal),
                                                process.log(), *process.ground().telemetry));
}

}  // namespace tocsin::simulation
