#include "routing/tables/runs.h"

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
/// A run that is asked to stop has this long to end; then what is known is told.
constexpr core::Duration kStopSettles = std::chrono::seconds(10);

}  // namespace

namespace {

/// Of a run on ever more hosts a message names these.
constexpr std::size_t kMaxHosts = 64;

void note_facts(RunState& run, const core::JobEvent& event) {
  if (!event.run.platform.empty()) run.platform = event.run.platform;
  if (event.started_at) run.started_at = event.started_at;
  if (event.world_size > 0) run.world_size = event.world_size;
  if (run.stop) run.stop->told.answers.asked = run.world_size;
}

/// A producer that sees only the exit code takes every stop for one of a rule.
std::string outcome_of(const RunState& run) {
  const bool by_person = run.stop && run.stop->told.rule.empty() &&
                         !run.stop->told.requested_by.empty() &&
                         run.stop->told.requested_by != "router";
  return by_person && run.outcome == "stopped_by_rule" ? "stopped_by_person" : run.outcome;
}

core::RunTold told_of(const std::string& uid, const RunState& run) {
  core::RunTold out;
  if (const auto parsed = core::parse_run_uid(uid)) out.run.uid = *parsed;
  out.run.attempt = run.attempt;
  out.run.job = run.job;
  if (!run.platform.empty()) out.run.platform = run.platform;
  out.labels = run.labels;
  out.outcome = run.ended_at ? outcome_of(run) : run.lost ? "lost" : "";
  out.exit_code = run.exit_code;
  out.step = run.step;
  out.started_at = run.started_at;
  out.ended_at = run.ended_at;
  for (const auto& [host, boot] : run.launch) {
    if (out.hosts.size() < kMaxHosts) out.hosts.push_back(host);
  }
  out.world_size = run.world_size;
  out.report = run.report;
  if (run.stop) out.stop = run.stop->told;
  return out;
}

/// Is it the stop of this attempt? A command and its answers have one id for all requests of it.
bool concerns(const RunState& run, const std::string& command_id) {
  return !run.stop || run.stop->told.command_id == command_id;
}

}  // namespace

namespace {

/// That an issue names this attempt is no news.
bool is_fresh(const RunState& run, std::uint32_t attempt, WallTime now) {
  return attempt <= run.attempt && now - run.last_seen < kHeartbeatGrain;
}

}  // namespace

std::string run_of(const Issue& issue) {
  return issue.run.uid.nil() ? issue.labels.get("run_uid") : core::to_text(issue.run.uid);
}

std::string run_of(const KeptIssue& issue) {
  return issue.run.uid.nil() ? issue.labels.get("run_uid") : core::to_text(issue.run.uid);
}

bool outlives_its_run(const KeptIssue& issue) {
  constexpr std::array<std::string_view, 3> kAboutTheEnd{"job_failed", "job_lost", "stop_failed"};
  return std::find(kAboutTheEnd.begin(), kAboutTheEnd.end(), issue.rule()) != kAboutTheEnd.end();
}

void Runs::next_attempt(const std::string& uid, RunState& run, std::uint32_t attempt, WallTime at,
                        RunEffects& out) {
  // An issue that names no attempt (0) is of none of them in particular, and stays.
  out.push_back({RunEffect::Kind::resolve, at, 1, attempt - 1, Resolution::superseded, {}, {}});
  if (run.attempt > 0) run.before = told_of(uid, run);
  run.attempt = attempt;
  run.ended_at.reset();
  run.launch.clear();
  run.outcome.clear();
  run.step.reset();
  run.step_seconds.reset();
  run.step_time = {};
  run.report.clear();
  run.started_at.reset();
  run.exit_code.reset();
  run.world_size = 0;
  run.stop.reset();
}

bool Runs::nothing_to_note(const KeptIssue::Run& of, WallTime now) const {
  if (of.uid.nil() || of.attempt == 0) return true;
  const RunState* const run = table_.find(core::to_text(of.uid));
  return run != nullptr && is_fresh(*run, of.attempt, now);
}

RunEffects Runs::note(const Issue& issue, WallTime now) {
  RunEffects out;
  if (issue.run.uid.nil() || issue.run.attempt == 0) return out;
  const std::string uid = core::to_text(issue.run.uid);
  RunState& run = table_.make(uid);
  if (is_fresh(run, issue.run.attempt, now)) return out;
  if (issue.run.attempt > run.attempt) {
    next_attempt(uid, run, issue.run.attempt, std::min(issue.starts_at, now), out);
  }
  if (run.job.empty()) run.job = issue.run.job;
  // A run that speaks for itself is alive when it says so, not when an issue comes.
  if (!run.heard) run.last_seen = std::max(run.last_seen, now);
  watch(uid, run);
  table_.touch(uid);
  return out;
}

std::optional<std::pair<Resolution, WallTime>> Runs::over(const KeptIssue& issue,
                                                          WallTime now) const {
  const RunState* known = table_.find(run_of(issue));
  if (known == nullptr) return std::nullopt;
  const RunState& run = *known;
  if (issue.run.attempt != 0 && issue.run.attempt < run.attempt) {
    return std::pair{Resolution::superseded,
                     std::max(issue.starts_at, std::min(issue.whole().time, now))};
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

namespace {

// True: another launch of the job speaks.
bool note_state(RunState& run, const core::JobEvent& event, WallTime time) {
  note_facts(run, event);
  if (!event.run.job.empty()) run.job = event.run.job;
  if (!event.labels.empty()) run.labels = event.labels;
  const bool launched = !event.launch.empty() && event.launch != run.launch;
  if (launched) run.launch = event.launch;
  if (event.step) {
    run.step = event.step;
    run.step_time = time;
  }
  if (event.step_seconds) run.step_seconds = event.step_seconds;
  return launched;
}

void note_ended(RunState& run, const core::JobEvent& event, WallTime ended_at, RunEffects& out) {
  if (!event.outcome.empty()) run.outcome = event.outcome;
  if (event.exit_code) run.exit_code = event.exit_code;
  if (run.stop) core::note_end(*run.stop, run.world_size);
  if (run.ended_at) return;
  run.ended_at = ended_at;
  out.push_back(
      {RunEffect::Kind::resolve, ended_at, 0, run.attempt, Resolution::job_ended, {}, {}});
}

}  // namespace

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
    next_attempt(uid, run, attempt, time, out);
    news = true;
  }
  run.heard = true;
  run.last_seen = std::max(run.last_seen, now);
  if (run.lost) {
    run.lost = false;
    // With the labels it was raised with.
    out.push_back({RunEffect::Kind::clear_lost, now, 0, 0, Resolution::none, run.labels, {}});
  }
  news = note_state(run, event, time) || news;
  if (event.phase == JobPhase::ended) {
    note_ended(run, event, std::min(event.ended_at.value_or(time), now), out);
  } else if (run.ended_at && time > *run.ended_at) {
    run.ended_at.reset();  // given up for lost, and heard of again
    run.outcome.clear();
    run.exit_code.reset();
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

RunEffects Runs::note(const core::Command& command, WallTime now) {
  RunEffects out;
  if (command.action != "stop" || command.dry_run || command.run.nil()) return out;
  const std::string uid = core::to_text(command.run);
  // The topic keeps the last stop of each run for long: of those that are over nothing is told.
  if (table_.find(uid) == nullptr && command.issued_at < now - limits_.retention) return out;
  RunState& run = table_.make(uid);
  if (command.attempt < run.attempt || command.attempt == 0) return out;
  if (command.attempt > run.attempt) {
    next_attempt(uid, run, command.attempt, std::min(command.issued_at, now), out);
  }
  if (!run.heard) run.last_seen = std::max(run.last_seen, now);
  if (!run.stop) run.stop.emplace();
  core::note(*run.stop, command);
  run.stop->told.answers.asked = run.world_size;
  if (run.ended_at) core::note_end(*run.stop, run.world_size);
  watch(uid, run);
  table_.touch(uid);
  // Who is on call hears of it soon, even if the run hangs and never ends.
  if (!run.ended_at) out.push_back({RunEffect::Kind::pull, now + kStopSettles, 0, 0, {}, {}, {}});
  return out;
}

void Runs::note_withdrawn(const core::RunUid& of) {
  const std::string uid = core::to_text(of);
  RunState* run = table_.find(uid);
  if (run == nullptr || !run->stop || run->stop->told.answers.accepted > 0) return;
  run->stop.reset();
  table_.touch(uid);
}

RunEffects Runs::note(const core::Ack& ack, WallTime now) {
  const std::string uid = core::to_text(ack.run);
  const bool stops = ack.action == "stop" || ack.action == "stop/platform";
  RunState* run = stops ? table_.find(uid) : nullptr;
  // Commands and acks are two topics: an answer may be read before its command.
  if (run == nullptr || ack.attempt != run->attempt || !concerns(*run, ack.command_id)) return {};
  const bool first = !run->stop || run->stop->told.answers.accepted == 0;
  if (!run->stop) {
    run->stop.emplace();
    run->stop->told.command_id = ack.command_id;
  }
  run->stop->told.answers.asked = run->world_size;
  if (!core::note(*run->stop, ack)) return {};
  if (run->ended_at) core::note_end(*run->stop, run->world_size);
  table_.touch(uid);
  const bool accepted = run->stop->told.answers.accepted > 0;
  if (!first || !accepted || run->ended_at) return {};
  return {{RunEffect::Kind::pull, now + kStopSettles, 0, 0, {}, {}, {}}};
}

std::optional<core::RunTold> Runs::told(const Issue& issue) const {
  return told_of_attempt(run_of(issue), issue.run.attempt);
}

std::optional<core::RunTold> Runs::told_of_attempt(const std::string& uid,
                                                   std::uint32_t attempt) const {
  const RunState* run = table_.find(uid);
  if (run == nullptr || run->attempt == 0) return std::nullopt;
  if (attempt == 0 || attempt == run->attempt) return told_of(uid, *run);
  const bool before = run->before && run->before->run.attempt == attempt;
  return before ? run->before : std::nullopt;
}

bool Runs::stopped_for(const KeptIssue& issue) const {
  const auto about = told_of_attempt(run_of(issue), issue.run.attempt);
  return about && about->stop && !about->stop->rule.empty() && about->stop->rule == issue.rule();
}

void Runs::note_report(const core::RunRef& of, std::string where, WallTime now) {
  const std::string uid = core::to_text(of.uid);
  RunState* found = of.uid.nil() ? nullptr : table_.find(uid);
  if (found != nullptr && found->before && found->before->run.attempt == of.attempt) {
    found->before->report = where;
    table_.touch(uid);
  }
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
  return RunView{run.attempt,
                 run.launch,
                 run.ended_at,
                 run.lost,
                 run.outcome,
                 run.step,
                 run.step_seconds,
                 run.step_time,
                 run.job,
                 run.report,
                 run.stop ? std::optional(run.stop->told) : std::nullopt};
}

}  // namespace tocsin::routing
