// Going on with other rules, while runs are followed: what a rule remembers goes to the rule of the
// same name, type and parameters; what a removed or changed one had fired is resolved.
#pragma once

#include <memory>

#include "rules/engine/issues/issue_book.h"
#include "rules/engine/issues/reports.h"
#include "rules/engine/jobs/job_book.h"
#include "rules/engine/partition/context.h"
#include "rules/engine/state/remap.h"

namespace tocsin::rules {

class Reload {
 public:
  Reload(Context& ctx, Reports& reports, IssueBook& book, JobBook& jobs)
      : ctx_(ctx), reports_(reports), book_(book), jobs_(jobs) {}

  /// Of the partition that is being worked on.
  void apply(std::shared_ptr<const RuleTable> next);

 private:
  void end_issues(Run& run, const RuleTable& next, const Remap& moves);
  void end_issue(Run& run, const OpenKey& key);
  void end_statuses(Run& run, const RuleTable& next, const Remap& moves);
  void move_evaluators(Run& run, const RuleTable& next);

  Context& ctx_;
  Reports& reports_;
  IssueBook& book_;
  JobBook& jobs_;
};

}  // namespace tocsin::rules
