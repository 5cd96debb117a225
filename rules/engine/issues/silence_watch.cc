#include "rules/engine/issues/silence_watch.h"

#include <algorithm>

namespace tocsin::rules {

void SilenceWatch::due(const Turn& turn, Run& run, std::int64_t time, std::vector<Entry>& due) {
  if (run.id.shard != 0) return;  // every step end is in the first, which judges the run
  for (const auto& clock : turn.rules().clocks) {
    const auto check = [&](std::uint32_t who, std::int64_t last, const Promise& promise) {
      const std::int64_t deadline = clock.program->due_at(last, promise);
      const auto known = run.issues.clocks.find({clock.rule, who});
      if (known != run.issues.clocks.end() && known->second.fired) return;
      if (deadline > time) {
        turn.part.deadline.at_latest(deadline);
      } else {
        due.push_back({Entry::What::silence,
                       run.id,
                       run.attempt,
                       who,
                       clock.rule,
                       time,
                       {},
                       turn.rules().line(clock.rule)});
      }
    };
    if (clock.program->until_first_step) {
      if (run.course.seen_modes == 0) check(kNoRoster, run.course.first_seen, {});
      continue;
    }
    if (!clock.program->per_worker) {
      check(kNoRoster, run.course.last_arrival, run.course.promise);
      continue;
    }
    const bool alive = clock.program->over_at(run.course.last_arrival, run.course.promise) > time;
    for (std::uint32_t i = 0; i < run.workers.size() && alive; ++i) {
      const Worker& worker = run.workers[i];
      if (!worker.gone && !worker.agent) check(i, worker.last_arrival, worker.promise);
    }
  }
}

// Each check that finds no silence is an evaluation. Ticks are not in the log, so these checks are
// counted by what is: at signs of life, as often as ticks would check at least; and at the run's end.
void SilenceWatch::count(const Turn& turn, Run& run, const RuleTable::Bound<ClockProgram>& clock,
                         bool at_end) {
  constexpr std::int64_t kAtMost = 30'000'000'000;
  ClockState& state = run.issues.clocks[{clock.rule, kNoRoster}];
  const std::int64_t period = std::min(clock.program->threshold.count() / 10, kAtMost);
  if (state.counted != kNever && (at_end || distance(turn.now, state.counted) < period)) return;
  state.counted = turn.now;
  EvaluationCounts counts{};
  ++counts[static_cast<std::size_t>(EvaluationOutcome::ok)];
  book_.count(turn, run, clock.rule, counts);
}

void SilenceWatch::fire(const Turn& turn, Run& run, const Entry& entry) {
  for (const auto& clock : turn.rules().clocks) {
    if (turn.rules().line(clock.rule) != entry.rules) continue;
    ClockState& state = run.issues.clocks[{clock.rule, entry.worker}];
    state.fired = true;
    const bool one = entry.worker < run.workers.size();
    const bool from_start = clock.program->until_first_step;
    std::int64_t last = one ? run.workers[entry.worker].last_arrival : run.course.last_arrival;
    Promise promise = one ? run.workers[entry.worker].promise : run.course.promise;
    if (from_start) {
      last = run.course.first_seen;
      promise = {};
    }
    const std::int64_t over = clock.program->over_at(last, promise);
    Place place;
    place.step_clock = false;
    place.time = over;
    if (state.last_window != kNever) place.time = std::max(place.time, state.last_window + 1);
    state.last_window = place.time;
    if (!from_start) place.mode = run.course.last_mode;
    place.step = run.course.last_mode_step;
    place.global_step = run.course.last_global_step;
    place.first_time = last;
    const std::string who = one ? run.workers[entry.worker].name : std::string();
    const auto labels = [&]() -> std::vector<std::pair<std::string, std::string>> {
      if (who.empty()) return {};
      return {{"worker", who}};
    };
    const auto explain = [&](unsigned) -> std::pair<Finding, Extra> {
      Subject subject;
      subject.name = run.job.name;
      subject.worker = who;
      subject.mode = run.course.last_mode;
      subject.step = place.step;
      Silence silence{last, over - last, clock.program->grace ? promise.within : 0};
      silence.now = entry.now;
      silence.heard = run.course.last_any;
      silence.nodes = run.job.launch.size();
      return {clock.program->explain(silence, subject), {}};
    };
    Life life;
    Unit unit{{clock.rule, kNoRoster, entry.worker, 0xFF, 0}, entry.worker, labels};
    book_.apply(turn, run, clock.rule, life, unit, hit(), place, explain);
  }
}

}  // namespace tocsin::rules
