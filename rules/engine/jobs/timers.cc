#include "rules/engine/jobs/timers.h"

#include <algorithm>
#include <cstddef>

#include "rules/engine/compare/other_runs.h"

namespace tocsin::rules {
namespace {

constexpr std::size_t kRunsPerTick = 256;
// What a family learned is kept as long as the topic by which others hear of it.
constexpr core::Duration kFamilyKept = std::chrono::hours{24 * 30};

}  // namespace

void Timers::tick_run(const Turn& turn, Run& run, std::int64_t time, bool zero_lag,
                      std::vector<Entry>& due) {
  const auto check = [&](Entry::What what, std::uint32_t worker, std::int64_t deadline) {
    if (deadline > time) {
      turn.part.deadline.at_latest(deadline);
    } else {
      due.push_back({what, run.id, run.attempt, worker, 0, time, {}});
    }
  };
  if (!is_compared_with(turn.rules(), run)) {
    check(Entry::What::forget, kNoRoster, add(run.course.last_any, options_.config.forget_after));
  }
  if (run.job.ended) return;
  if (zero_lag && run.pulse.beats) {
    check(Entry::What::lost, kNoRoster, add(run.course.last_any, options_.config.lost_after));
  }
  if (!run.course.grace_over) {
    const std::int64_t from = run.course.first_train_arrival == kNever
                                  ? run.course.first_seen
                                  : run.course.first_train_arrival;
    check(Entry::What::grace_over, kNoRoster, add(from, options_.config.join_grace));
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
  silence_.due(turn, run, time, due);
}

void Timers::tick_families(const Turn& turn, std::int64_t time, std::vector<Entry>& due) {
  const core::Duration kept = std::max(options_.config.forget_after, kFamilyKept);
  for (const auto& [uid, family] : turn.part.families) {
    const std::int64_t deadline = add(family.last_used, kept);
    if (deadline > time) {
      turn.part.deadline.at_latest(deadline);
    } else {
      due.push_back({Entry::What::forget, family.id(), 0, kNoRoster, 0, time, {}});
    }
  }
}

void Timers::tick_all(const Turn& turn, std::int64_t time, bool zero_lag) {
  std::vector<Entry> due;
  for (auto& [id, run] : turn.part.runs) tick_run(turn, *run, time, zero_lag, due);
  tick_families(turn, time, due);
  for (Entry& entry : due) decisions_.decide(turn, std::move(entry));
}

void Timers::tick_some(const Turn& turn, bool zero_lag) {
  PartitionState& partition = turn.part;
  const std::size_t most = std::max(kRunsPerTick, partition.runs.size() / 10);
  if (partition.runs.size() <= most) return tick_all(turn, turn.now, zero_lag);
  std::vector<Entry> due;
  auto at = partition.runs.lower_bound(partition.tick_from);
  for (std::size_t i = 0; i < most; ++i, ++at) {
    if (at == partition.runs.end()) at = partition.runs.begin();
    tick_run(turn, *at->second, turn.now, zero_lag, due);
  }
  tick_families(turn, turn.now, due);
  partition.tick_from = at == partition.runs.end() ? RunId{} : at->first;
  for (Entry& entry : due) decisions_.decide(turn, std::move(entry));
}

std::int64_t Timers::idle_limit(const Worker& worker) const {
  const std::size_t timed = std::min<std::size_t>(worker.steps_timed, worker.step_times.size());
  std::int64_t limit = options_.config.idle_after.count();
  if (timed > 0) {
    std::array<std::int64_t, 8> times = worker.step_times;
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(timed / 2),
                     times.begin() + static_cast<std::ptrdiff_t>(timed));
    const std::int64_t median = times[timed / 2];
    if (median > 0 && median < kForever / 5) limit = std::max(limit, 5 * median);
  }
  return limit;
}

void Timers::advance_record_time(const Turn& turn) {
  // Every timer at its own time: what came later must not count for it.
  while (const auto due = turn.part.deadline.take(turn.now)) {
    tick_all(turn, *due, true);
    turn.part.deadline.at_earliest(*due + 1);
  }
}

void Timers::clamp_times(const Turn& turn) {
  for (auto& [id, run] : turn.part.runs) clamp_run(turn, *run);
  for (auto& [uid, family] : turn.part.families) {
    if (std::max(family.first_seen, family.last_used) <= turn.now) continue;
    turn.part.cut.touch_head(family);
    family.first_seen = std::min(family.first_seen, turn.now);
    family.last_used = std::min(family.last_used, turn.now);
  }
}

void Timers::clamp_run(const Turn& turn, Run& run) {
  const std::int64_t time = turn.now;
  if (std::max({run.course.first_seen, run.course.last_arrival, run.course.last_any,
                run.course.first_train_arrival}) > time) {
    turn.part.cut.touch_head(run);
    for (std::int64_t* one : {&run.course.first_seen, &run.course.last_arrival,
                              &run.course.last_any, &run.course.first_train_arrival}) {
      *one = std::min(*one, time);
    }
  }
  for (std::uint32_t i = 0; i < run.workers.size(); ++i) {
    if (run.workers[i].last_arrival <= time) continue;
    turn.part.cut.touch_worker(run, i);
    run.workers[i].last_arrival = time;
  }
}

}  // namespace tocsin::rules
