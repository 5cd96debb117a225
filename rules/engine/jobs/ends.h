// How jobs end: by their own word, by what a node's agent saw, or because nothing is heard any more;
// and how an ended or superseded run gives up what it held.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rules/engine/compare/families.h"
#include "rules/engine/issues/issue_book.h"
#include "rules/engine/issues/own_issues.h"
#include "rules/engine/issues/reports.h"
#include "rules/engine/issues/silence_watch.h"
#include "rules/engine/jobs/job_book.h"
#include "rules/engine/partition/turn.h"
#include "rules/engine/units/evaluations.h"
#include "rules/engine/units/row_judge.h"
#include "rules/engine/units/samples.h"
#include "rules/engine/units/step_book.h"

namespace tocsin::rules {

class Ends {
 public:
  Ends(EngineStats& stats, Reports& reports, IssueBook& book, OwnIssues& own,
       Evaluations& evaluations, Families& families, RowJudge& rows, StepBook& steps,
       Samples& samples, JobBook& jobs, SilenceWatch& silence)
      : stats_(stats),
        reports_(reports),
        book_(book),
        own_(own),
        evaluations_(evaluations),
        families_(families),
        rows_(rows),
        steps_(steps),
        samples_(samples),
        jobs_(jobs),
        silence_(silence) {}

  void on_died(const Turn& turn, Run& run, const core::Lifecycle& body, std::int64_t time);
  /// A recording is over before its run is: what waits is judged, what sums up tells.
  void stop_reading(const Turn& turn, Run& run);
  /// Ends the run when all of its processes have.
  void check_end(const Turn& turn, Run& run);
  void finish(const Turn& turn, Run& run, core::Resolution resolution, bool lost = false);
  void revive(const Turn& turn, Run& run, std::int64_t time);
  /// Another attempt begins.
  void supersede(const Turn& turn, Run& run, std::uint32_t attempt,
                 std::optional<std::int64_t> continues_from);

 private:
  struct Death;
  void died_after_end(const Turn& turn, Run& run, const core::Lifecycle& body, const Death& death,
                      std::int64_t time);
  void tell_end(const Turn& turn, Run& run, const std::string& outcome);
  void finish_again(const Turn& turn, Run& run, std::int64_t time);
  void give_up_parts(const Turn& turn, Run& run, bool names);
  void keep(const Turn& turn, Run& run, EvaluatorParts parts);

  EngineStats& stats_;
  Reports& reports_;
  IssueBook& book_;
  OwnIssues& own_;
  Evaluations& evaluations_;
  Families& families_;
  RowJudge& rows_;
  StepBook& steps_;
  Samples& samples_;
  JobBook& jobs_;
  SilenceWatch& silence_;
};

}  // namespace tocsin::rules
