// Inside of the engine: its parts, and how they stand on each other. Each is a small object
// (rules/engine/); what they share is the context.
#pragma once

#include "rules/engine/frames/arrivals.h"
#include "rules/engine/frames/lifecycle_frames.h"
#include "rules/engine/jobs/attempts.h"
#include "rules/engine/jobs/comparisons.h"
#include "rules/engine/jobs/decisions.h"
#include "rules/engine/jobs/further_shards.h"
#include "rules/engine/jobs/timers.h"
#include "rules/engine/partition/context.h"
#include "rules/engine/state/restore.h"
#include "rules/engine/units/dictionaries.h"
#include "rules/rules.h"

namespace tocsin::rules {

struct Engine::Impl {
  Context ctx;
  Reports reports{ctx};
  IssueBook book{ctx, reports};
  OwnIssues own{ctx, reports, book};
  Evaluations evaluations{ctx, book};
  Comparisons comparisons{ctx, evaluations};
  RowJudge rows{ctx, book};
  Units units{ctx};
  StepBook steps{ctx, evaluations};
  JobBook jobs{ctx, reports};
  Intake intake{ctx, own, evaluations, rows, units, steps, jobs};
  Samples samples{ctx, evaluations};
  SilenceWatch silence{ctx, book};
  Ends ends{ctx, reports, book, own, evaluations, rows, steps, samples, jobs, silence};
  LifecycleFrames lifecycle{ctx, own, steps, jobs, ends};
  Reload reload{ctx, reports, book, jobs};
  FurtherShards further{ctx, ends};
  Decisions decisions{ctx, book, own, steps, silence, ends, reload, comparisons, further};
  Timers timers{ctx, silence, decisions};
  Attempts attempts{ctx, own, ends, decisions};
  Arrivals arrivals{ctx, book, intake};
  Dictionaries dictionaries{ctx};
  Restore restore{ctx, book};

  void on_record(const core::FrameView& frame, const core::FrameBody& body, const RecordRef& from,
                 core::WallTime arrival);
  void on_frame(const core::FrameView& frame, const core::FrameBody& body);
  void handle(Run& run, std::uint32_t worker, const core::FrameView& frame,
              const core::FrameBody& body);
};

}  // namespace tocsin::rules
