// One frame of a record: found its run, attempt and worker, it goes to the part that knows its kind.
#pragma once

#include <cstdint>

#include "rules/engine/frames/arrivals.h"
#include "rules/engine/frames/intake.h"
#include "rules/engine/frames/lifecycle_frames.h"
#include "rules/engine/issues/reports.h"
#include "rules/engine/issues/silence_watch.h"
#include "rules/engine/jobs/attempts.h"
#include "rules/engine/jobs/ends.h"
#include "rules/engine/partition/turn.h"
#include "rules/engine/units/dictionaries.h"
#include "rules/engine/units/evaluations.h"
#include "rules/engine/units/samples.h"

namespace tocsin::rules {

class FrameHandler {
 public:
  FrameHandler(const EngineOptions& options, EngineStats& stats, Reports& reports,
               SilenceWatch& silence, Evaluations& evaluations, Samples& samples,
               Dictionaries& dictionaries, Ends& ends, Attempts& attempts, Intake& intake,
               LifecycleFrames& lifecycle, Arrivals& arrivals)
      : options_(options),
        stats_(stats),
        reports_(reports),
        silence_(silence),
        evaluations_(evaluations),
        samples_(samples),
        dictionaries_(dictionaries),
        ends_(ends),
        attempts_(attempts),
        intake_(intake),
        lifecycle_(lifecycle),
        arrivals_(arrivals) {}

  void on_frame(const Turn& turn, const core::FrameView& frame, const core::FrameBody& body);

 private:
  void note_life(const Turn& turn, Run& run, const core::FrameHeader& header, bool says_so);
  void hand_on(const Turn& turn, Run& run, std::uint32_t worker, const core::FrameView& frame,
               const core::FrameBody& body);

  const EngineOptions& options_;
  EngineStats& stats_;
  Reports& reports_;
  SilenceWatch& silence_;
  Evaluations& evaluations_;
  Samples& samples_;
  Dictionaries& dictionaries_;
  Ends& ends_;
  Attempts& attempts_;
  Intake& intake_;
  LifecycleFrames& lifecycle_;
  Arrivals& arrivals_;
};

}  // namespace tocsin::rules
