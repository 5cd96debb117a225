// From the configuration to the stages of this process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/action_set.h"
#include "app/app.h"
#include "app/config/app_config.h"
#include "app/loop/leadership.h"
#include "app/loop/topic_loop.h"
#include "app/process/instance_slot.h"
#include "app/serve/metrics.h"
#include "app/stages/evaluate.h"
#include "app/stages/run_board.h"

namespace tocsin::app {

/// One stage in its loop, on a thread of its own.
struct RunningStage {
  std::string thread;  // its name in top -H, behind "tocsin-"
  std::unique_ptr<Stage> stage;
  std::unique_ptr<TopicLoop> loop;
};

/// What the stages of a process share. Declared before the loops that use it.
struct RoleParts {
  actions::IssueMetrics issue_metrics;
  RunBoard board;
  actions::StopLedger ledger;
  actions::StopApprovals approvals;
  actions::FiringIssues firing;
  actions::ProfileLedger profiles;
  actions::SteeringLedger steering;
  actions::TrainingScalars scalars;
  std::unique_ptr<Leadership> leadership;  // null: this process does not route
  std::unique_ptr<ActionSet> actions;
  std::vector<EvaluateStage*> engines;  // to whom new rules are handed
  std::vector<InstanceSlot> slots;      // one per engine: its part of the transactional id
};

/// What an engine judges: `rules` but those of Python, of which it only knows; `hosted`: with engines
/// of their own, as the process was started.
rules::RulesConfig engine_rules(const rules::RulesConfig& rules, const rules::RulesConfig& hosted);

/// Makes the stages that `options.roles` asks for, in the order in which they are started. `ports`
/// lacks only the leadership.
core::Result<std::vector<RunningStage>> make_stages(const AppConfig& config,
                                                    const AppOptions& options, LoopPorts ports,
                                                    RoleParts& parts);

}  // namespace tocsin::app
