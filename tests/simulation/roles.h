// Which stages each kind of process runs, as app/roles.cc has them.
#pragma once

#include <functional>
#include <memory>

#include "actions/actions.h"
#include "app/stages/stops_here.h"
#include "rules/rules.h"
#include "tests/simulation/mutations.h"
#include "tests/simulation/process.h"
#include "tests/simulation/receivers.h"
#include "tests/simulation/scenario.h"

namespace tocsin::simulation {

/// What the processes of a world are made from.
struct RoleParts {
  const Scenario* scenario = nullptr;
  const routing::RouteConfig* route = nullptr;  // of the configuration that is read next
  Mutation mutation = Mutation::none;
  Receivers* receivers = nullptr;
  rules::RulesConfig rules;
  std::function<actions::Observed(const actions::ProcessFence& fence, int number)> signal;
  /// A new process of the agent begins; `here` is told of the stops of its node.
  std::function<void(std::shared_ptr<const app::StopsHere> here)> agent_begins;
};

/// The YAML list under `rules:`.
rules::RulesConfig parse_rules(const std::string& yaml);

void build_evaluator(Process& process, const RoleParts& parts, std::size_t number);
/// Router, deliverer, board of runs and ledger of stops, under one lease.
void build_leader(Process& process, const RoleParts& parts, Random random);
/// The stop agent of the training's node; see node_agent.h for its other half.
void build_agent(Process& process, const RoleParts& parts);

}  // namespace tocsin::simulation
