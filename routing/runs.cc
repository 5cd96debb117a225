#include "routing/runs.h"

#include <algorithm>
#include <array>

#include "core/identity.h"

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

void Runs::next_attempt(RunState& run, std::uint32_t attempt, WallTime at, RunEffects& out) {
  // An issue that names no attempt (0) is of none of them in particular, and stays.
  out.push_back({RunEffect::Kind::resolve, at, 1, attempt - 1, Resolution::superseded, {}, {}});
  run.attempt = attempt;
  run.ended_at.reset();
  run.launch.clear();
  run.outcome.clear();
  run.step.reset();
  run.step_seconds.reset();
  run.step_time = {};
  run.report.clear();
}

RunEffects Runs::note(const Issue& issue, WallTime now) {
  RunEffects out;
  if (issue.run.uid.nil() || issue.run.attempt == 0) return out;
  const std::string uid = core::to_text(issue.run.uid);
  RunState& run = table_.make(uid);
  if (issue.run.attempt <= run.attempt && now - run.last_seen < kHeartbeatGrain) return out;
  if (issue.run.attempt > run.attempt) {
    next_attempt(run, issue.run.attempt, std::min(issue.starts_at, now), out);
  }
  if (run.job.empty()) run.job = issue.run.job;
  // A run that speaks for itself is alive when it says so, not when an issue comes.
  if (!run.heard) run.last_seen = std::max(run.last_seen, now);
  watch(uid, run);
  table_.touch(uid);
  return out;
}

std::optional<std::pair<Resolution, WallTime>> Runs::over(const Issue& issue, WallTime now) const {
  const RunState* known = table_.find(run_of(issue));
  if (known == nullptr) return std::nullopt;
  const RunState& run = *known;
  if (issue.run.attempt != 0 && issue.run.attempt < run.attempt) {
    return std::pair{Resolution::superseded, std::max(issue.starts_at, std::min(issue.time, now))};
  }
  if (!run.ended_at || outlives_its_run(issue)) return std::nullopt;
  return std::pair{Resolution::job_ended, *run.ended_at};
}

void Runs::watch(const std::string& uid, const RunState& run) {
  const bool watched = limits_.job_lost_after > core::Duration::zero() && !run.ended_at &&
                       !run.lost && run.heard && run.attempt > 0;
  if (watched) {
    agenda_.set(Due::lose_run, uid, run.last_seen + limits_.job_lost_after);
  } else {
    agenda_.cancel(Due::lose_run, uid);
  }
  agenda_.set(Due::forget_run, uid,
              run.ended_at ? *run.ended_at + limits_.retention : run.last_seen + kRunMemory);
}

RunEffects Runs::note(const core::JobEvent& event, WallTime now, bool& stale) {
  RunEffects out;
  if (event.run.uid.nil()) return out;
  const std::string uid = core::to_text(event.run.uid);
  RunState& run = table_.make(uid);
  // One that names no attempt speaks of the newest.
  const std::uint32_t attempt = event.run.attempt == 0 ? run.attempt : event.run.attempt;
  if (attempt < run.attempt) {
    stale = true;
    return out;
  }
  const WallTime time = event.time == WallTime{} ? now : std::min(event.time, now);
  bool news = event.phase != JobPhase::heartbeat || !run.heard || run.lost;
  if (attempt > run.attempt) {
    next_attempt(run, attempt, time, out);
    news = true;
  }
  run.heard = true;
  run.last_seen = std::max(run.last_seen, now);
  if (run.lost) {
    run.lost = false;
    // With the labels it was raised with.
    out.push_back({RunEffect::Kind::clear_lost, now, 0, 0, Resolution::none, run.labels, {}});
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
      out.push_back(
          {RunEffect::Kind::resolve, *run.ended_at, 0, run.attempt, Resolution::job_ended, {}, {}});
    }
  } else if (run.ended_at && time > *run.ended_at) {
    run.ended_at.reset();  // given up for lost, and heard of again
    run.outcome.clear();
    run.report.clear();  // another follows at its end
    news = true;
  }
  const bool watched = limits_.job_lost_after > core::Duration::zero();
  if (!news && !watched && now - run.saved_at < kHeartbeatGrain)
    return out;  // no record for every beat
  run.saved_at = now;
  watch(uid, run);
  table_.touch(uid);
  return out;
}

void Runs::note_report(const core::RunRef& of, std::string where, WallTime now) {
  const std::string uid = core::to_text(of.uid);
  RunState* found = of.uid.nil() ? nullptr : table_.find(uid);
  if (found == nullptr || of.attempt != found->attempt || found->report == where) return;
  found->report = std::move(where);
  found->saved_at = now;
  table_.touch(uid);
}

const std::string* Runs::report_of(const Issue& issue) const {
  const RunState* run = table_.find(run_of(issue));
  if (run == nullptr || run->report.empty()) return nullptr;
  return issue.run.attempt == 0 || issue.run.attempt == run->attempt ? &run->report : nullptr;
}

RunEffects Runs::lose(const Agenda::Entry& due) {
  RunState* found = table_.find(due.key);
  if (found == nullptr) return {};
  RunState& run = *found;
  run.lost = true;
  run.labels.set("job", run.job);
  run.labels.set("run_uid", due.key);
  table_.touch(due.key);
  return {{RunEffect::Kind::resolve, due.at, 0, run.attempt, Resolution::expired, {}, {}},
          {RunEffect::Kind::raise_lost, due.at, 0, 0, Resolution::none, run.labels,
           "no sign of life from job " + run.job + " since " + core::to_rfc3339(run.last_seen)}};
}

void Runs::watch(const std::string& uid) {
  if (const RunState* run = table_.find(uid)) watch(uid, *run);
}

void Runs::restored() {
  for (const auto& [uid, run] : table_.in_order()) watch(std::string(uid), *run);
}

std::optional<RunView> Runs::find(const core::RunUid& uid) const {
  const RunState* found = table_.find(core::to_text(uid));
  if (found == nullptr) return std::nullopt;
  const RunState& run = *found;
  return RunView{run.attempt, run.launch,       run.ended_at,  run.lost, run.outcome,
                 run.step,    run.step_seconds, run.step_time, run.job,  run.report};
}

}  // namespace tocsin::routing
