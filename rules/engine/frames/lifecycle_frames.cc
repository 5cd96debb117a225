#include "rules/engine/frames/lifecycle_frames.h"

#include <algorithm>

#include "rules/engine/issues/failure.h"
#include "rules/engine/issues/preflight.h"
#include "rules/engine/issues/standing.h"
#include "rules/engine/memory/thinning.h"
#include "rules/engine/partition/script_alert.h"

namespace tocsin::rules {

void LifecycleFrames::on_lifecycle(const Turn& turn, Run& run, std::uint32_t number,
                                   const core::FrameView& frame, const core::Lifecycle& body) {
  const core::FrameHeader& header = frame.header();
  Worker& worker = run.workers[number];
  switch (body.event) {
    case core::LifecycleEvent::start:
      return jobs_.on_start(turn, run, worker, header, body);
    case core::LifecycleEvent::heartbeat:
      return jobs_.heartbeat(turn, run, header.time, true);
    case core::LifecycleEvent::leave:
    case core::LifecycleEvent::end:
      if (worker.agent) return;
      worker.gone = true;
      if (body.event == core::LifecycleEvent::end) {
        const bool known = body.outcome != "unknown" || !body.exit_code;
        run.job.worsen(known ? body.outcome : Job::outcome_of(body.exit_code), body.exit_code);
        note_error(run, worker.name, body);
      }
      run.job.ended_at = std::max(run.job.ended_at, header.time);
      steps_.advance(turn, run);
      return ends_.check_end(turn, run);
    case core::LifecycleEvent::preflight:
      if (auto standing = standing_of(body, worker.name)) {
        constexpr auto kWhich = Operational::worker_stands_still;
        if (standing->what == Standing::What::goes_on) {
          return own_.lower(turn, run, kWhich, number, header.time);
        }
        const bool asked = standing->what == Standing::What::place;
        return own_.raise(turn, run, asked ? Operational::worker_place : kWhich, number,
                          header.time, std::move(standing->finding));
      }
      if (auto alert = script_alert_of(body)) {
        return own_.tell(turn, run, number, header.time, std::move(*alert));
      }
      if (auto kept = protocol_kept(body); !kept.empty()) {
        own_.sum_up(turn, run, Operational::training_preflight, header.time, std::move(kept));
      }
      if (auto finding = preflight_finding(body)) {
        own_.raise(turn, run, Operational::training_preflight, number, header.time,
                   std::move(*finding));
      }
      return;
    case core::LifecycleEvent::applied:
      return note_thinning(run.job, body);
    case core::LifecycleEvent::died:
    case core::LifecycleEvent::gap:
      return;
  }
}

}  // namespace tocsin::rules
