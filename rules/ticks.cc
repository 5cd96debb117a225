// What only a clock can decide: grace periods, idle workers, silence, runs to forget. Live these
// come from tick() and are logged; in replays the records' times take the clock's place.
#include <algorithm>

#include "rules/engine_impl.h"

namespace tocsin::rules {
namespace {

constexpr std::size_t kMaxRefused = 100'000;  // runs that are remembered as refused

}  // namespace

std::int64_t Engine::Impl::idle_limit(const Worker& worker) const {
  const std::size_t timed = std::min<std::size_t>(worker.steps_timed, worker.step_times.size());
  std::int64_t limit = options.config.idle_after.count();
  if (timed > 0) {
    std::array<std::int64_t, 8> times = worker.step_times;
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(timed / 2),
                     times.begin() + static_cast<std::ptrdiff_t>(timed));
    const std::int64_t median = times[timed / 2];
    if (median > 0 && median < kForever / 5) limit = std::max(limit, 5 * median);
  }
  return limit;
}

void Engine::Impl::tick_silence(Run& run, std::int64_t time, std::vector<Entry>& due) {
  for (const auto& clock : clock_rules) {
    const auto check = [&](std::uint32_t who, std::int64_t last) {
      const std::int64_t deadline = clock.program->due_at(last);
      const auto known = run.issues.clocks.find({clock.rule, who});
      if (known != run.issues.clocks.end() && known->second.fired) return;
      if (deadline > time) {
        next_check = std::min(next_check, deadline);
      } else {
        due.push_back({Entry::What::silence, run.id, run.attempt, who, clock.rule, time, {}});
      }
    };
    if (clock.program->until_first_step) {
      if (run.course.seen_modes == 0 && run.id.shard == 0) check(kNoLane, run.course.first_seen);
      continue;
    }
    if (!clock.program->per_worker) {
      check(kNoLane, run.course.last_arrival);
      continue;
    }
    const bool alive = add(run.course.last_arrival, clock.program->threshold) > time;
    for (std::uint32_t i = 0; i < run.workers.size() && alive; ++i) {
      const Worker& worker = run.workers[i];
      if (!worker.gone && !worker.agent) check(i, worker.last_arrival);
    }
  }
}

// Each check that finds no silence is an evaluation. Ticks are not in the log, so these checks are
// counted by what is: at signs of life, as often as ticks would check at least; and at the run's end.
void Engine::Impl::count_clock(Run& run, const Bound<ClockProgram>& clock, bool at_end) {
  constexpr std::int64_t kAtMost = 30'000'000'000;
  ClockState& state = run.issues.clocks[{clock.rule, kNoLane}];
  const std::int64_t period = std::min(clock.program->threshold.count() / 10, kAtMost);
  if (state.counted != kNever && (at_end || distance(now, state.counted) < period)) return;
  state.counted = now;
  OutcomeCounts counts{};
  ++counts[static_cast<std::size_t>(Outcome::ok)];
  count(run, clock.rule, counts);
}

void Engine::Impl::tick_run(Run& run, std::int64_t time, bool zero_lag, std::vector<Entry>& due) {
  const auto check = [&](Entry::What what, std::uint32_t worker, std::int64_t deadline) {
    if (deadline > time) {
      next_check = std::min(next_check, deadline);
    } else {
      due.push_back({what, run.id, run.attempt, worker, 0, time, {}});
    }
  };
  check(Entry::What::forget, kNoLane, add(run.course.last_any, options.config.forget_after));
  if (run.job.ended) return;
  if (zero_lag && run.pulse.beats) {
    check(Entry::What::lost, kNoLane, add(run.course.last_any, options.config.lost_after));
  }
  if (!run.course.grace_over) {
    const std::int64_t from = run.course.first_train_arrival == kNever
                                  ? run.course.first_seen
                                  : run.course.first_train_arrival;
    check(Entry::What::grace_over, kNoLane, add(from, options.config.join_grace));
  }
  if (!zero_lag) return;
  for (std::uint32_t i = 0; i < run.workers.size(); ++i) {
    const Worker& worker = run.workers[i];
    // Only who is behind somebody else holds a step back.
    if (worker.agent || worker.gone || worker.idle || worker.active == 0 ||
        worker.last_arrival >= run.course.last_arrival) {
      continue;
    }
    const std::int64_t limit = idle_limit(worker);
    check(Entry::What::idle, i, add(worker.last_arrival, core::Duration(limit)));
  }
  tick_silence(run, time, due);
}

void Engine::Impl::tick_partition(PartitionState& partition, std::int64_t time, bool zero_lag) {
  part = &partition;
  std::vector<Entry> due;
  for (auto& [id, run] : partition.runs) tick_run(*run, time, zero_lag, due);
  for (Entry& entry : due) decide(std::move(entry));
}

void Engine::Impl::apply(const Entry& entry) {
  if (entry.what == Entry::What::refuse) {
    if (part->refused.size() >= kMaxRefused) part->refused.erase(part->refused.begin());
    part->refused.insert(entry.run);
    raise_plain(Operational::run_unwatched, entry.run.uid, entry.now,
                "Run " + core::to_text(entry.run.uid) + " is not watched: " +
                    std::to_string(options.config.max_runs) + " runs are followed already.");
    return;
  }
  if (entry.what == Entry::What::admit) {
    part->refused.erase(entry.run);
    return;
  }
  const auto found = part->runs.find(entry.run);
  if (found == part->runs.end() || found->second->attempt != entry.attempt) return;
  part->cut.touch_head(*found->second);
  if (entry.what != Entry::What::forget) return apply_run(entry, *found->second);
  finish(*found->second, core::Resolution::expired);
  resolve_all(*found->second, core::Resolution::expired);
  part->cut.retire(std::move(found->second));
  part->runs.erase(found);
}

void Engine::Impl::apply_run(const Entry& entry, Run& run) {
  if (run.job.ended) return;  // by an entry of the same tick
  switch (entry.what) {
    case Entry::What::grace_over:
      run.course.grace_over = true;
      advance(run);
      return check_end(run);
    case Entry::What::idle:
      if (entry.worker >= run.workers.size()) return;
      part->cut.touch_worker(run, entry.worker);
      run.workers[entry.worker].idle = true;
      sync(run, entry.worker);
      return advance(run);
    case Entry::What::silence:
      return apply_silence(run, entry);
    case Entry::What::lost:
      run.job.ended_at = std::max(run.job.ended_at, run.course.last_time);
      return finish(run, core::Resolution::job_ended, true);
    case Entry::What::skew:
    case Entry::What::skew_over: {
      if (entry.worker >= run.workers.size()) return;
      part->cut.touch_worker(run, entry.worker);
      run.workers[entry.worker].skewed = entry.what == Entry::What::skew;
      if (entry.what == Entry::What::skew_over) {
        return lower(run, Operational::clock_skew, entry.worker, entry.now);
      }
      Finding finding;
      finding.summary = "The clock of " + run.workers[entry.worker].name + " is more than " +
                        core::to_text(options.config.max_clock_skew) + " ahead of ours.";
      return raise(run, Operational::clock_skew, entry.worker, entry.now, std::move(finding));
    }
    case Entry::What::forget:
    case Entry::What::refuse:
    case Entry::What::admit:
      return;
  }
}

// Our own clock may have stepped back since the state was written: nothing in it may lie ahead.
void Engine::Impl::clamp_times(Run& run, std::int64_t time) {
  if (std::max({run.course.first_seen, run.course.last_arrival, run.course.last_any,
                run.course.first_train_arrival}) > time) {
    part->cut.touch_head(run);
    for (std::int64_t* one : {&run.course.first_seen, &run.course.last_arrival,
                              &run.course.last_any, &run.course.first_train_arrival}) {
      *one = std::min(*one, time);
    }
  }
  for (std::uint32_t i = 0; i < run.workers.size(); ++i) {
    if (run.workers[i].last_arrival <= time) continue;
    part->cut.touch_worker(run, i);
    run.workers[i].last_arrival = time;
  }
}

void Engine::Impl::apply_silence(Run& run, const Entry& entry) {
  for (const auto& clock : clock_rules) {
    if (clock.rule != entry.rule) continue;
    ClockState& state = run.issues.clocks[{entry.rule, entry.worker}];
    state.fired = true;
    const bool one = entry.worker < run.workers.size();
    const bool from_start = clock.program->until_first_step;
    std::int64_t last = one ? run.workers[entry.worker].last_arrival : run.course.last_arrival;
    if (from_start) last = run.course.first_seen;
    Place place;
    place.step_clock = false;
    place.time = add(last, clock.program->threshold);
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
      return {clock.program->explain({last, entry.now, run.course.last_any, run.job.launch.size()},
                                     subject),
              {}};
    };
    Life life;
    Unit unit{{entry.rule, kNoLane, entry.worker, 0xFF, 0}, entry.worker, labels};
    settle(run, entry.rule, life, unit, hit(), place, explain);
  }
}

void Engine::Impl::advance_record_time() {
  // Every timer at its own time: what came later must not count for it.
  while (next_check <= now) {
    const std::int64_t due = std::exchange(next_check, kForever);
    tick_partition(*part, due, true);
    next_check = std::max(next_check, due + 1);
  }
}

}  // namespace tocsin::rules
