// Router: runs: their newest attempt, their end, their loss.
#include <algorithm>
#include <array>

#include "core/identity.h"
#include "routing/router_impl.h"
#include "routing/runs.h"

namespace tocsin::routing {

using core::Issue;
using core::JobPhase;
using core::Resolution;
using core::WallTime;

namespace {

/// A run that says nothing more is forgotten after this long.
constexpr core::Duration kRunMemory = std::chrono::hours(24 * 30);
/// How exactly what heartbeats say is written, where it only serves memory and estimates.
constexpr core::Duration kHeartbeatGrain = std::chrono::minutes(5);

}  // namespace

std::string run_of(const Issue& issue) {
  return issue.run.uid.nil() ? issue.labels.get("run_uid") : core::to_text(issue.run.uid);
}

bool outlives_its_run(const Issue& issue) {
  constexpr std::array<std::string_view, 3> kAboutTheEnd{"job_failed", "job_lost", "stop_failed"};
  return std::find(kAboutTheEnd.begin(), kAboutTheEnd.end(), issue.rule) != kAboutTheEnd.end();
}

void Router::Impl::resolve_run(const std::string& run, std::uint32_t first_attempt,
                               std::uint32_t last_attempt, Resolution resolution, WallTime at) {
  const auto firing = firing_of_run_.find(run);
  if (firing == firing_of_run_.end()) return;
  const std::set<std::string> keys = firing->second;  // resolving changes the original
  for (const std::string& key : keys) {
    IssueState& state = issues_.at(key);
    const std::uint32_t attempt = state.issue.run.attempt;
    if (attempt < first_attempt || attempt > last_attempt) continue;
    if (resolution != Resolution::superseded && outlives_its_run(state.issue)) continue;
    resolve_issue(state, resolution, at);
  }
}

void Router::Impl::next_attempt(const std::string& uid, RunState& run, std::uint32_t attempt,
                                WallTime at) {
  // An issue that names no attempt (0) is of none of them in particular, and stays.
  resolve_run(uid, 1, attempt - 1, Resolution::superseded, at);
  run.attempt = attempt;
  run.ended_at.reset();
  run.launch.clear();
  run.outcome.clear();
  run.step.reset();
  run.step_seconds.reset();
  run.step_time = {};
}

/// An issue may be the first to name a run, or its next attempt.
void Router::Impl::note_run(const Issue& issue, WallTime now) {
  if (issue.run.uid.nil() || issue.run.attempt == 0) return;
  const std::string uid = core::to_text(issue.run.uid);
  RunState& run = runs_.make(uid);
  if (issue.run.attempt <= run.attempt && now - run.last_seen < kHeartbeatGrain) return;
  if (issue.run.attempt > run.attempt) {
    next_attempt(uid, run, issue.run.attempt, std::min(issue.starts_at, now));
  }
  if (run.job.empty()) run.job = issue.run.job;
  // A run that speaks for itself is alive when it says so, not when an issue comes.
  if (!run.heard) run.last_seen = std::max(run.last_seen, now);
  watch(uid, run);
  runs_.touch(uid);
}

std::optional<std::pair<Resolution, WallTime>> Router::Impl::over(const Issue& issue,
                                                                  WallTime now) const {
  const RunState* known = runs_.find(run_of(issue));
  if (known == nullptr) return std::nullopt;
  const RunState& run = *known;
  if (issue.run.attempt != 0 && issue.run.attempt < run.attempt) {
    return std::pair{Resolution::superseded, std::max(issue.starts_at, std::min(issue.time, now))};
  }
  if (!run.ended_at || outlives_its_run(issue)) return std::nullopt;
  return std::pair{Resolution::job_ended, *run.ended_at};
}

void Router::Impl::watch(const std::string& uid, const RunState& run) {
  const bool watched = options_.limits.job_lost_after > core::Duration::zero() && !run.ended_at &&
                       !run.lost && run.heard && run.attempt > 0;
  if (watched) {
    agenda_.set(Due::lose_run, uid, run.last_seen + options_.limits.job_lost_after);
  } else {
    agenda_.cancel(Due::lose_run, uid);
  }
  agenda_.set(
      Due::forget_run, uid,
      run.ended_at ? *run.ended_at + options_.limits.retention : run.last_seen + kRunMemory);
}

void Router::Impl::on_job(const core::JobEvent& event, WallTime now) {
  if (event.run.uid.nil()) return;
  const std::string uid = core::to_text(event.run.uid);
  RunState& run = runs_.make(uid);
  // One that names no attempt speaks of the newest.
  const std::uint32_t attempt = event.run.attempt == 0 ? run.attempt : event.run.attempt;
  if (attempt < run.attempt) {
    ++stats_.stale;
    return;
  }
  const WallTime time = event.time == WallTime{} ? now : std::min(event.time, now);
  bool news = event.phase != JobPhase::heartbeat || !run.heard || run.lost;
  if (attempt > run.attempt) {
    next_attempt(uid, run, attempt, time);
    news = true;
  }
  run.heard = true;
  run.last_seen = std::max(run.last_seen, now);
  if (run.lost) {
    run.lost = false;
    clear("job_lost", run.labels, now);  // with the labels it was raised with
  }
  if (!event.run.job.empty()) run.job = event.run.job;
  if (!event.labels.empty()) run.labels = event.labels;
  if (!event.launch.empty() && event.launch != run.launch) {
    run.launch = event.launch;
    news = true;
  }
  if (event.step) {
    run.step = event.step;
    run.step_time = time;
  }
  if (event.step_seconds) run.step_seconds = event.step_seconds;
  if (event.phase == JobPhase::ended) {
    if (!event.outcome.empty()) run.outcome = event.outcome;
    if (!run.ended_at) {
      run.ended_at = std::min(event.ended_at.value_or(time), now);
      resolve_run(uid, 0, run.attempt, Resolution::job_ended, *run.ended_at);
    }
  } else if (run.ended_at && time > *run.ended_at) {
    run.ended_at.reset();  // given up for lost, and heard of again
    run.outcome.clear();
    news = true;
  }
  const bool watched = options_.limits.job_lost_after > core::Duration::zero();
  if (!news && !watched && now - run.saved_at < kHeartbeatGrain)
    return;  // no record for every beat
  run.saved_at = now;
  watch(uid, run);
  runs_.touch(uid);
}

void Router::Impl::lose_run(const Agenda::Entry& due) {
  RunState* found = runs_.find(due.key);
  if (found == nullptr) return;
  RunState& run = *found;
  run.lost = true;
  run.labels.set("job", run.job);
  run.labels.set("run_uid", due.key);
  runs_.touch(due.key);
  resolve_run(due.key, 0, run.attempt, Resolution::expired, due.at);
  raise("job_lost", run.labels,
        "no sign of life from job " + run.job + " since " + core::to_rfc3339(run.last_seen),
        due.at);
}

std::optional<RunView> Router::Impl::find_run(const core::RunUid& uid) const {
  const RunState* found = runs_.find(core::to_text(uid));
  if (found == nullptr) return std::nullopt;
  const RunState& run = *found;
  return RunView{run.attempt, run.launch,       run.ended_at,  run.lost, run.outcome,
                 run.step,    run.step_seconds, run.step_time, run.job};
}

}  // namespace tocsin::routing
