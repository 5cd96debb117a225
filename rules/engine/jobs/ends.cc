#include "rules/engine/jobs/ends.h"

#include <algorithm>

#include "rules/engine/compare/families.h"
#include "rules/engine/issues/failure.h"

namespace tocsin::rules {
namespace {

constexpr std::int64_t kNextHeartbeat = 1'000'000'000;

std::string how(const std::optional<int>& code, const std::optional<int>& signal) {
  if (signal) return " was ended by signal " + std::to_string(*signal);
  if (code) return " ended with exit code " + std::to_string(*code);
  return " ended; how it ended is unknown";
}

// Why a rule ends without data: nothing came, or what came did not do.
std::string without_data(const RuleProgress& progress) {
  const auto count = [&](EvaluationOutcome outcome) {
    return progress.counts[static_cast<std::size_t>(outcome)];
  };
  const std::uint64_t too_little = count(EvaluationOutcome::insufficient_data);
  const std::uint64_t other = count(EvaluationOutcome::not_applicable);
  if (too_little > 0) return "too little data arrived to judge";
  return other > 0 ? "this rule does not apply to the data that arrived"
                   : "no data arrived that this rule can judge";
}

}  // namespace

/// How a process went.
struct Ends::Death {
  std::optional<int> code;
  bool stopped = false;   // while a stop of ours was under way on its node, whatever it looks like
  bool open_end = false;  // the outcome of the job so far may be another
  std::string outcome;

  Death(const Job& job, const core::Lifecycle& body)
      : code(body.signal ? 128 + *body.signal : body.exit_code), stopped(!body.command_id.empty()) {
    const std::string by = Job::stopped(body.outcome) ? body.outcome : "stopped_by_rule";
    outcome = stopped ? by : Job::outcome_of(code);
    open_end = job.outcome.empty() || job.outcome == "unknown" || job.outcome == "lost" ||
               (stopped && job.outcome == "failed");
  }
  /// Whether it tells more than the process itself has.
  [[nodiscard]] bool tells_outcome() const { return open_end && (code || stopped); }
};

// The node's agent saw a process go. Only of the newest attempt: older ones are over.
void Ends::on_died(const Turn& turn, Run& run, const core::Lifecycle& body, std::int64_t time) {
  const std::uint64_t hash = core::name_hash(body.died_worker);
  if (!run.launches.holds(hash, body.died_incarnation)) return;
  const Death death(run.job, body);
  if (run.job.ended) return died_after_end(turn, run, body, death, time);
  const auto worker = std::find_if(run.workers.begin(), run.workers.end(), [&](const Worker& one) {
    return one.name_hash == hash && one.incarnation == body.died_incarnation;
  });
  if (worker == run.workers.end() || worker->agent) return;
  if (worker->gone && !death.tells_outcome()) {  // it has said goodbye itself
    if (body.exit_code) run.job.worsen(run.job.outcome, death.code);
    return;
  }
  const auto number = static_cast<std::uint32_t>(worker - run.workers.begin());
  turn.part.cut.touch_worker(run, number);
  run.pulse.beats = true;  // a process, even if neither its start nor a heartbeat arrived
  // Its own last word was that it does not know, or how the end looked from inside.
  if (worker->gone) run.job.outcome.clear();
  worker->gone = true;
  run.job.worsen(death.outcome, death.code);
  if (Job::stopped(run.job.outcome))
    own_.lower(turn, run, Operational::job_failed, kNoRoster, time);
  run.job.ended_at = std::max(run.job.ended_at, time);
  run.workers.sync(number);
  if (death.outcome == "failed") {
    Finding finding;
    finding.observed = {"exit_code", static_cast<double>(*death.code)};
    finding.titled("job", Verb::has, "failed")
        .says(worker->name + how(body.exit_code, body.signal) + ".");
    own_.raise(turn, run, Operational::job_failed, kNoRoster, time, std::move(finding));
  }
  steps_.advance(turn, run);
  check_end(turn, run);
}

void Ends::died_after_end(const Turn& turn, Run& run, const core::Lifecycle& body,
                          const Death& death, std::int64_t time) {
  // A script that closes its hook and then ends knows no exit code yet. 0 is no news of one that
  // completed.
  const bool news =
      run.job.outcome != "failed" && !(run.job.outcome == "completed" && death.code == 0);
  if (!death.open_end && body.exit_code && !run.job.exit_code && news) {
    run.job.exit_code = death.code;
    return tell_end(turn, run, run.job.outcome);
  }
  if (!death.tells_outcome()) return;  // it has said so itself, or nothing new is known
  run.job.outcome = death.outcome;
  run.job.exit_code = death.code;
  finish_again(turn, run, time);
}

void Ends::check_end(const Turn& turn, Run& run) {
  if (run.job.ended || run.job.outcome.empty()) return;
  if (run.workers.clock().gone() < run.workers.clock().present()) return;
  if (run.workers.clock().present() < run.world_size && !run.course.grace_over)
    return;  // not read yet, perhaps
  finish(turn, run, core::Resolution::job_ended);
}

void Ends::finish(const Turn& turn, Run& run, core::Resolution resolution, bool lost) {
  if (run.job.ended) return;
  if (resolution == core::Resolution::job_ended) {
    steps_.advance(turn, run, true);
    rows_.flush(turn, run);
  }
  samples_.flush(turn, run);
  if (resolution == core::Resolution::job_ended) evaluations_.end(turn, run, false);
  for (const auto& clock : turn.rules().clocks) silence_.count(turn, run, clock, true);
  if (resolution == core::Resolution::job_ended) evaluations_.end(turn, run, true);
  book_.resolve_all(turn, run, resolution, lost);
  run.job.ended = true;
  run.job.lost = lost;
  for (std::uint32_t rule = 0; rule < turn.rules().first_own; ++rule) {
    const RuleProgress& progress = run.issues.progress[rule];
    if (progress.state == core::RuleState::error) continue;
    if (progress.state == core::RuleState::issues_found) {
      Summary sum = evaluations_.take_summary(rule);
      if (!sum.told.empty()) {
        reports_.status(turn, run, rule, core::RuleState::issues_found, {}, std::move(sum.told));
      }
      continue;
    }
    if (resolution != core::Resolution::job_ended) {
      reports_.status(turn, run, rule, core::RuleState::stopped,
                      std::string(core::to_string(resolution)));
    } else if (progress.state == core::RuleState::no_data) {
      Summary sum = evaluations_.take_summary(rule);
      reports_.status(turn, run, rule, core::RuleState::no_data,
                      sum.unjudged.empty() ? without_data(progress) : std::move(sum.unjudged),
                      std::move(sum.told));
    } else {
      Summary sum = evaluations_.take_summary(rule);
      const auto state =
          sum.issues_of.empty() ? core::RuleState::no_issues_found : core::RuleState::issues_found;
      reports_.status(turn, run, rule, state, std::move(sum.issues_of), std::move(sum.told));
    }
  }
  (void)evaluations_.take_summaries();
  evaluations_.tell_others(turn, run);
  if (lost) run.job.worsen("lost", std::nullopt);
  if (resolution == core::Resolution::expired && run.job.outcome.empty()) run.job.outcome = "lost";
  if (resolution != core::Resolution::superseded) tell_end(turn, run, run.job.outcome);
  // Nothing of an ended run is judged again; it is only remembered, so that it does not come back.
  if (resolution == core::Resolution::job_ended && !lost) {
    families_.join(turn, run);
    EvaluatorParts kept = evaluations_.take_compared(turn, run);
    give_up_parts(turn, run, true);
    keep(turn, run, std::move(kept));
    run.steps.pending = {};
    run.steps.passes.clear();
    run.steps.partial.clear();
    run.nodes.clear();
    run.issues.lives.clear();
    run.issues.clocks.clear();
    run.job.captured = {};
    run.job.thinned = {};
  }
}

void Ends::tell_end(const Turn& turn, Run& run, const std::string& outcome) {
  // A start may have been lost; but who never spoke of itself (JSON) has no end either.
  if (run.id.shard != 0 || (!run.job.started && !run.pulse.beats)) return;
  const std::int64_t time = run.job.ended_at != 0 ? run.job.ended_at : run.course.last_time;
  core::JobEvent event =
      reports_.job_event(turn, run, core::JobPhase::ended, ++run.pulse.ends, time);
  event.ended_at = event.time;
  event.outcome = outcome;
  event.exit_code = run.job.exit_code;
  reports_.emit(turn, std::move(event));
  const std::string job = run.job.name.empty() ? "The job" : run.job.name;
  Finding finding;
  if (outcome == "failed") {
    ++stats_.failed_jobs;
    own_.raise(turn, run, Operational::job_failed, kNoRoster, time, failure_of(run));
  } else if (outcome == "lost" || outcome == "unknown") {
    ++stats_.lost_jobs;
    finding.titled("job", Verb::is, outcome == "lost" ? "lost" : "over without a known end");
    finding.summary = outcome == "lost"
                          ? job + " is lost: its processes have stopped sending."
                          : job + " ended without closing its hook; how it ended is unknown.";
    own_.raise(turn, run, Operational::job_lost, kNoRoster, time, std::move(finding));
  }
}

// How a run ended became known after its end.
void Ends::finish_again(const Turn& turn, Run& run, std::int64_t time) {
  own_.lower(turn, run, Operational::job_lost, kNoRoster, time);
  if (Job::stopped(run.job.outcome))
    own_.lower(turn, run, Operational::job_failed, kNoRoster, time);
  tell_end(turn, run, run.job.outcome);
  if (!run.job.lost) return;
  run.job.lost = false;
  give_up_parts(turn, run, true);
}

// A job that counted as lost is heard of again: it goes on where it was.
void Ends::revive(const Turn& turn, Run& run, std::int64_t time) {
  run.job.ended = run.job.lost = false;
  if (run.job.outcome == "lost") run.job.outcome.clear();
  run.job.ended_at = 0;
  ++stats_.revived_jobs;
  own_.lower(turn, run, Operational::job_lost, kNoRoster, time);
  for (std::uint32_t rule = 0; rule < turn.rules().first_own; ++rule) {
    if (run.issues.progress[rule].state == core::RuleState::no_issues_found) {
      reports_.status(turn, run, rule, core::RuleState::in_progress);
    }
  }
  run.pulse.changed = true;
  jobs_.heartbeat(
      turn, run,
      std::max(time, run.pulse.last_heartbeat == kNever
                         ? time
                         : add(run.pulse.last_heartbeat, std::chrono::nanoseconds(kNextHeartbeat))),
      true);
}

// The parts go to the cut, which keeps them for as long as it needs them.
void Ends::give_up_parts(const Turn& turn, Run& run, bool names) {
  auto gone = std::make_unique<Run>();
  gone->id = run.id;
  gone->life = std::exchange(run.life, turn.part.cut.fresh_life());
  gone->head_mark = std::exchange(run.head_mark, {});
  gone->workers = std::exchange(run.workers, {});
  gone->rosters = std::exchange(run.rosters, {});
  gone->evaluators = std::exchange(run.evaluators, {});
  gone->names.life = run.names.life;
  if (names) {
    gone->names.table = std::exchange(run.names.table, {});
    gone->names.marks = std::exchange(run.names.marks, {});
    run.names.life = run.life;
    ++run.names.version;
  }
  turn.part.cut.touch_head(run);
  for (const NameTable::Entry& entry : gone->names.table.entries()) {
    if (!entry.lasting) continue;
    turn.part.cut.touch_name(run, run.names.table.index_of(entry.hash));
    run.names.table.set(entry.hash, entry.name, true);
  }
  turn.part.cut.retire(std::move(gone));
}

void Ends::supersede(const Turn& turn, Run& run, std::uint32_t attempt,
                     std::optional<std::int64_t> continues_from) {
  finish(turn, run, core::Resolution::superseded);
  book_.resolve_all(turn, run, core::Resolution::superseded);  // what spoke of its end
  // Without a declared continuation the windows of the attempt before mean nothing any more.
  EvaluatorParts kept = continues_from ? evaluations_.take_series(turn, run) : EvaluatorParts{};
  give_up_parts(turn, run, false);
  Run fresh;
  fresh.id = run.id;
  fresh.life = run.life;
  fresh.launches = std::move(run.launches);
  fresh.head_mark = run.head_mark;
  fresh.partition = run.partition;
  fresh.attempt = attempt;
  fresh.course.first_seen = turn.now;
  fresh.course.last_arrival = turn.now;
  fresh.course.last_any = turn.now;
  fresh.issues.progress.resize(turn.rules().all.size());
  // Counted per run: who reads issues takes a smaller number for an older report
  // (docs/events.md).
  for (std::size_t i = 0; i < std::min(fresh.issues.progress.size(), run.issues.progress.size());
       ++i) {
    fresh.issues.progress[i].issue_sequence = run.issues.progress[i].issue_sequence;
  }
  fresh.job.name = run.job.name;  // until the new attempt's start says otherwise
  fresh.job.labels = run.job.labels;
  // Who launches a run with a hook again does it with a hook. If its start is lost, and every
  // heartbeat too, the attempt before would count as alive for ever.
  fresh.pulse.beats = run.job.started || run.pulse.beats;
  fresh.names = std::move(run.names);
  ++fresh.names.version;
  run = std::move(fresh);
  for (const auto& clock : turn.rules().clocks) {
    turn.part.deadline.at_latest(clock.program->due_at(turn.now, {}));
  }
  keep(turn, run, std::move(kept));
}

void Ends::keep(const Turn& turn, Run& run, EvaluatorParts parts) {
  run.evaluators = std::move(parts);
  for (std::uint32_t i = 0; i < run.evaluators.size(); ++i) {
    if (run.evaluators[i].evaluator) turn.part.cut.touch_evaluator(run, i);
  }
}

void Ends::stop_reading(const Turn& turn, Run& run) {
  turn.part.cut.touch_head(run);
  run.course.grace_over = true;
  steps_.advance(turn, run, true);
  rows_.flush(turn, run);
  samples_.flush(turn, run);
  evaluations_.end(turn, run, false);
  evaluations_.end(turn, run, true);
  for (auto& [rule, sum] : evaluations_.take_summaries()) {
    if (sum.told.empty()) continue;
    reports_.status(turn, run, rule, run.issues.progress[rule].state, std::move(sum.issues_of),
                    std::move(sum.told));
  }
  check_end(turn, run);
}

}  // namespace tocsin::rules
