#include "rules/engine/frames/frame_handler.h"

#include <algorithm>

#include "rules/engine/partition/describe.h"

namespace tocsin::rules {

void FrameHandler::on_frame(const Turn& turn, const core::FrameView& frame,
                            const core::FrameBody& body) {
  const core::FrameHeader& header = frame.header();
  const auto* life = std::get_if<core::Lifecycle>(&body);
  ++stats_.frames;
  stats_.rows += frame.rows();
  if (header.run.nil()) return;  // a node that serves no run: nothing here judges it
  Run* run = attempts_.find_run(turn, header);
  if (run == nullptr) return;
  turn.part.cut.touch_head(*run);
  const bool agent = header.rank == core::kNodeAgentRank;
  if (life != nullptr && life->event == core::LifecycleEvent::died) {
    ends_.on_died(turn, *run, *life, header.time);
    if (!agent) return;  // its parent says so: no worker of the run
  }
  if (!attempts_.enter(turn, *run, frame, life)) return;
  const std::uint32_t number = arrivals_.find_worker(turn, *run, header);
  if (number == kNoRoster) return;
  turn.part.cut.touch_worker(*run, number);
  if (!arrivals_.accept(turn, *run, run->workers[number], header)) return;
  if (header.shard_count > run->course.shards) reports_.spread(turn, *run, header.shard_count);
  if (run->job.lost && !agent) ends_.revive(turn, *run, header.time);
  const Turn own = agent ? turn : turn.of(number);
  if (!agent) note_life(own, *run, header, life != nullptr);
  if (is_progress(header.kind)) arrivals_.progress(own, *run, run->workers[number], header);
  if (life != nullptr && life->expect_next_in) {
    arrivals_.promise(own, *run, run->workers[number], header, *life->expect_next_in);
  }
  hand_on(own, *run, number, frame, body);
  if (own.worker < run->workers.size()) run->workers.sync(own.worker);
}

// Of a process of the run: a node's agent is none.
void FrameHandler::note_life(const Turn& turn, Run& run, const core::FrameHeader& header,
                             bool says_so) {
  attempts_.check_clock(turn, run, turn.worker, header);
  run.course.last_any = turn.now;
  run.pulse.beats = run.pulse.beats || says_so;
  for (const auto& clock : turn.rules().clocks) silence_.count(turn, run, clock, false);
  // Times from the far future move nothing.
  run.course.last_time = std::max(
      run.course.last_time, std::min(header.time, add(core::nanoseconds(turn.record.timestamp),
                                                      options_.config.max_clock_skew)));
}

void FrameHandler::hand_on(const Turn& turn, Run& run, std::uint32_t worker,
                           const core::FrameView& frame, const core::FrameBody& body) {
  switch (frame.header().kind) {
    case core::FrameKind::summary:
      return intake_.on_summary(turn, run, worker, frame);
    case core::FrameKind::scalar:
      return intake_.on_scalars(turn, run, worker, frame);
    case core::FrameKind::step_end:
      return intake_.on_step_end(turn, run, worker, frame);
    case core::FrameKind::lifecycle:
      if (const auto* life = std::get_if<core::Lifecycle>(&body)) {
        lifecycle_.on_lifecycle(turn, run, worker, frame, *life);
      }
      return;
    case core::FrameKind::system:
      return samples_.on_system(turn, run, worker, frame);
    case core::FrameKind::dictionary:
      if (const auto* names = std::get_if<core::Dictionary>(&body)) {
        dictionaries_.on_dictionary(turn, run, worker, *names);
      }
      return;
    case core::FrameKind::span:
      return evaluations_.feed_all(turn, run, input::kSpans, [&](Evaluator& one, Scope& scope) {
        one.on_spans(worker, frame, scope);
      });
    case core::FrameKind::tensor_chunk:
    case core::FrameKind::snapshot:
      return;
  }
}

}  // namespace tocsin::rules
