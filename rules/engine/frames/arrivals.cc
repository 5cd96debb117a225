#include "rules/engine/frames/arrivals.h"
#include "rules/engine/partition/describe.h"

#include <algorithm>

namespace tocsin::rules {

std::uint32_t Arrivals::find_worker(const Turn& turn, Run& run, const core::FrameHeader& header) {
  const std::uint32_t known = run.workers.find(header.worker, header.rank);
  if (known != Workers::kNone) return known;
  if (run.workers.size() >= options_.config.max_units_per_run) {
    ++stats_.refused_units;
    return kNoRoster;
  }
  const auto number = static_cast<std::uint32_t>(run.workers.size());
  turn.part.cut.touch_worker(run, number);
  Worker worker;
  worker.name_hash = header.worker;
  worker.rank = header.rank;
  worker.agent = header.rank == core::kNodeAgentRank;
  worker.last_arrival = turn.now;
  // Workers have a default name, so that most runs need no dictionary to speak of them.
  const std::string usual = "worker_" + std::to_string(header.rank);
  if (const Name* name = run.names.table.find(header.worker)) {
    worker.name = name->text;
    worker.named = true;
  } else {
    worker.name = core::name_hash(usual) == header.worker ? usual : name_of(run, header.worker);
  }
  return run.workers.add(std::move(worker));
}

bool Arrivals::accept(const Turn& turn, Run& run, Worker& worker, const core::FrameHeader& header) {
  if ((header.flags & core::frame_flag::kUnsequenced) != 0) {
    worker.unsequenced = true;
    return true;
  }
  // Which of two processes of a worker is the newer one is settled by their launches, in the order
  // of the log. Where those see no starts the larger number is: an agent's, or a further shard's.
  const bool settled = !worker.agent && run.id.shard == 0;
  if (!settled && header.incarnation < worker.incarnation) {
    ++stats_.stale_frames;
    return false;
  }
  if (header.incarnation != worker.incarnation) {
    if (worker.incarnation != 0) {
      intake_.restart(turn, run, run.workers.number_of(worker));
    }
    worker.incarnation = header.incarnation;
    worker.has_sequence = false;
    worker.gone = false;
  }
  if (worker.has_sequence) {
    if (header.sequence <= worker.sequence) {
      ++stats_.duplicate_frames;
      return false;
    }
    if (const std::uint64_t missing = header.sequence - worker.sequence - 1; missing > 0) {
      worker.gap = true;
      worker.gap_frames += missing;
      stats_.missing_frames += missing;
    }
  }
  worker.sequence = header.sequence;
  worker.has_sequence = true;
  return true;
}

void Arrivals::progress(const Turn& turn, Run& run, Worker& worker,
                        const core::FrameHeader& header) {
  worker.last_arrival = turn.now;
  worker.last_time = header.time;
  worker.idle = false;
  if (worker.agent) return;
  const std::int64_t last = std::exchange(run.course.last_arrival, turn.now);
  run.course.last_mode = header.mode;
  run.course.last_mode_step = header.step;
  if (header.mode == core::Mode::train || header.mode == core::Mode::global) {
    run.course.last_step = std::max(run.course.last_step, header.step);
  }
  run.course.last_global_step = std::max(run.course.last_global_step, header.global_step);
  {
    worker.active = static_cast<std::uint8_t>(worker.active | mode_bit(header.mode));
    run.course.seen_modes =
        static_cast<std::uint8_t>(run.course.seen_modes | mode_bit(header.mode));
    const bool trains = header.mode == core::Mode::train || header.mode == core::Mode::global;
    if (trains && run.course.first_train_arrival == kNever) {
      run.course.first_train_arrival = turn.now;
    }
    if ((worker.unsequenced || worker.gap) && worker.mode != header.mode) {
      // No step-ends, or the last one was lost: entering another mode ends the last step of the one
      // before.
      const std::size_t before = at(worker.mode);
      worker.mark[before] = std::max(worker.mark[before], worker.seen[before]);
      if (worker.unsequenced && trains) {
        worker.active = static_cast<std::uint8_t>(
            worker.active & ~(mode_bit(core::Mode::eval) | mode_bit(core::Mode::predict)));
      }
    }
    worker.mode = header.mode;
    worker.pass = header.pass;
  }
  end_silences(turn, run, worker, header, last, false);
}

void Arrivals::promise(const Turn& turn, Run& run, Worker& worker, const core::FrameHeader& header,
                       double seconds) {
  constexpr double kMost = 30.0 * 24 * 3600;
  const double within = seconds > 0 ? std::min(seconds, kMost) : 0;  // NaN is no promise either
  worker.promise = {turn.now, static_cast<std::int64_t>(within * 1e9)};
  worker.last_arrival = turn.now;
  if (worker.agent) return;
  run.course.promise = worker.promise;
  const std::int64_t last = std::exchange(run.course.last_arrival, turn.now);
  end_silences(turn, run, worker, header, last, true);
}

// The issues of a clock rule end with the silence they speak of. `promised`: by the loop's own word,
// which takes no first step.
void Arrivals::end_silences(const Turn& turn, Run& run, Worker& worker,
                            const core::FrameHeader& header, std::int64_t last, bool promised) {
  for (const auto& clock : turn.rules().clocks) {
    if (promised && !clock.program->grace) continue;
    // While the run as a whole was silent no worker was: those that still are, are so now.
    const bool was_silent = add(last, clock.program->threshold) <= turn.now;
    const std::int64_t next = std::min(clock.program->over_at(turn.now, run.course.promise),
                                       clock.program->over_at(turn.now, worker.promise));
    turn.part.deadline.at_latest(was_silent ? turn.now : next);
    const auto number = run.workers.number_of(worker);
    for (const std::uint32_t who : {kNoRoster, number}) {
      const auto found = run.issues.clocks.find({clock.rule, who});
      if (found == run.issues.clocks.end() || !found->second.fired) continue;
      found->second.fired = false;
      Place place;
      place.step_clock = false;
      // The clock of the trainer may stand where it stood when the silence before this one ended: this
      // one began after that, and ends no earlier than it began.
      place.time = std::max(header.time, found->second.last_window);
      found->second.last_window = place.time;
      book_.resolve(turn, run, {clock.rule, kNoRoster, who, 0xFF, 0}, core::Resolution::recovered,
                    place);
    }
  }
}

}  // namespace tocsin::rules
