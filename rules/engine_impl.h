// Inside of the engine: its parts, and how they stand on each other. Each is a small object
// (rules/run/); what they share is the context.
#pragma once

#include "rules/rules.h"
#include "rules/run/arrivals.h"
#include "rules/run/attempts.h"
#include "rules/run/comparisons.h"
#include "rules/run/context.h"
#include "rules/run/decisions.h"
#include "rules/run/dictionaries.h"
#include "rules/run/further_shards.h"
#include "rules/run/lifecycle_frames.h"
#include "rules/run/timers.h"
#include "rules/state/restore.h"

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
