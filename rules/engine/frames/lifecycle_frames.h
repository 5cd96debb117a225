// LifecycleFrames frames: what processes say of themselves.
#pragma once

#include <cstdint>

#include "rules/engine/issues/own_issues.h"
#include "rules/engine/jobs/ends.h"
#include "rules/engine/jobs/job_book.h"
#include "rules/engine/partition/turn.h"
#include "rules/engine/units/step_book.h"

namespace tocsin::rules {

class LifecycleFrames {
 public:
  LifecycleFrames(OwnIssues& own, StepBook& steps, JobBook& jobs, Ends& ends)
      : own_(own), steps_(steps), jobs_(jobs), ends_(ends) {}

  void on_lifecycle(const Turn& turn, Run& run, std::uint32_t number, const core::FrameView& frame,
                    const core::Lifecycle& body);

 private:
  OwnIssues& own_;
  StepBook& steps_;
  JobBook& jobs_;
  Ends& ends_;
};

}  // namespace tocsin::rules
