// Going on with other rules, while runs are followed: what a rule remembers goes to the rule of the
// same name, type and parameters; what a removed or changed one had fired is resolved.
#pragma once

#include <memory>

#include "rules/engine/issues/issue_book.h"
#include "rules/engine/issues/reports.h"
#include "rules/engine/jobs/job_book.h"
#include "rules/engine/partition/turn.h"
#include "rules/engine/state/remap.h"

namespace tocsin::rules {

class Reload {
 public:
  Reload(EngineStats& stats, Reports& reports, IssueBook& book, JobBook& jobs)
      : stats_(stats), reports_(reports), book_(book), jobs_(jobs) {}

  /// Of the partition that is being worked on.
  void apply(const Turn& turn, std::shared_ptr<const RuleTable> next);

 private:
  void end_issues(const Turn& turn, Run& run, const RuleTable& next, const Remap& moves);
  void end_issue(const Turn& turn, Run& run, const OpenKey& key);
  void end_statuses(const Turn& turn, Run& run, const RuleTable& next, const Remap& moves);
  static void move_families(const Turn& turn, const RuleTable& next);
  static void move_evaluators(EvaluatorParts& parts, const RuleTable& next, EvaluatorParts& gone);
  static void move_evaluators(const Turn& turn, Run& run, const RuleTable& next);

  EngineStats& stats_;
  Reports& reports_;
  IssueBook& book_;
  JobBook& jobs_;
};

}  // namespace tocsin::rules
