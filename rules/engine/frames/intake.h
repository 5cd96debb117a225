// Frames of measurements: rows and scalars go to the rules, step ends to the step clock.
#pragma once

#include <cstdint>
#include <vector>

#include "rules/engine/issues/own_issues.h"
#include "rules/engine/jobs/job_book.h"
#include "rules/engine/partition/turn.h"
#include "rules/engine/units/evaluations.h"
#include "rules/engine/units/row_judge.h"
#include "rules/engine/units/step_book.h"
#include "rules/engine/units/units.h"

namespace tocsin::rules {

class Intake {
 public:
  Intake(EngineStats& stats, OwnIssues& own, Evaluations& evaluations, RowJudge& rows, Units& units,
         StepBook& steps, JobBook& jobs)
      : stats_(stats),
        own_(own),
        evaluations_(evaluations),
        rows_(rows),
        units_(units),
        steps_(steps),
        jobs_(jobs) {}

  void on_summary(const Turn& turn, Run& run, std::uint32_t worker, const core::FrameView& frame);
  void on_scalars(const Turn& turn, Run& run, std::uint32_t worker, const core::FrameView& frame);
  void on_step_end(const Turn& turn, Run& run, std::uint32_t worker, const core::FrameView& frame);
  /// Another process of the worker: its steps may go back.
  void restart(const Turn& turn, Run& run, std::uint32_t worker);

 private:
  [[nodiscard]] std::uint32_t place_of(const Roster& here, std::uint64_t name) const;
  bool known_units(const Turn& turn, Run& run, Roster& here, const core::FrameView& frame);
  void find_units(const Turn& turn, Run& run, Roster& here, const core::FrameView& frame);
  struct Scalar;
  bool on_scalar(const Turn& turn, Run& run, std::uint32_t worker, const core::FrameHeader& header,
                 std::uint32_t roster_number, std::uint32_t slot, const Scalar& scalar);
  void judge_scalar(const Turn& turn, Run& run, std::uint32_t worker,
                    const core::FrameHeader& header, std::uint32_t roster_number,
                    std::uint32_t slot, const Scalar& scalar);
  bool reach_step(const Turn& turn, Run& run, std::uint32_t worker, core::Mode mode,
                  std::int64_t step);
  void end_step(const Turn& turn, Run& run, std::uint32_t worker, core::Mode mode,
                std::int64_t step, const Place& place);
  void implicit_step_ends(const Turn& turn, Run& run, std::uint32_t worker, core::Mode mode,
                          std::int64_t step);

  EngineStats& stats_;
  OwnIssues& own_;
  Evaluations& evaluations_;
  RowJudge& rows_;
  Units& units_;
  StepBook& steps_;
  JobBook& jobs_;
  // To keep rows free of allocation:
  std::vector<std::uint32_t> slots_;
  std::uint32_t first_slot_ = RowBatch::kSkip;  // where they stand side by side
  std::vector<core::SparseColumn> sparse_;
  std::vector<core::SparseVector> vectors_;
};

}  // namespace tocsin::rules
