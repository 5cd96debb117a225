// How jobs end: by their own word, by what a node's agent saw, or because nothing is heard any
// more; and how an ended or superseded run gives up what it held.
#include <algorithm>

#include "rules/engine_impl.h"

namespace tocsin::rules {
namespace {

constexpr int kExitStopped = 77;  // a training process that a rule stopped
constexpr std::int64_t kHeartbeatSoon = 1'000'000'000;

// Worst first.
int weight(const std::string& outcome) {
  if (outcome == "failed") return 4;
  if (outcome == "stopped_by_rule") return 3;
  if (outcome == "lost" || outcome == "unknown") return 2;
  if (outcome == "completed") return 0;
  return 1;
}

std::string how(const std::optional<int>& code, const std::optional<int>& signal) {
  if (signal) return " was ended by signal " + std::to_string(*signal);
  if (code) return " ended with exit code " + std::to_string(*code);
  return " is gone; nobody knows how it ended";
}

}  // namespace

// What a process came to of which only the exit code is known.
std::string outcome_of(std::optional<int> code) {
  if (!code) return "lost";
  if (*code == kExitStopped) return "stopped_by_rule";
  return *code == 0 ? "completed" : "failed";
}

void worsen(Run& run, const std::string& outcome, std::optional<int> code) {
  if (run.outcome.empty() || weight(outcome) > weight(run.outcome)) run.outcome = outcome;
  if (code && (!run.exit_code || *run.exit_code == 0)) run.exit_code = code;
}

// The node's agent saw a process go. Only of the newest attempt: older ones are over.
void Engine::Impl::on_died(Run& run, const core::Lifecycle& body, std::int64_t time) {
  const std::uint64_t hash = core::name_hash(body.died_worker);
  if (!run.launches.holds(hash, body.died_incarnation)) return;
  const std::optional<int> code = body.signal ? 128 + *body.signal : body.exit_code;
  // What goes while a stop of ours is under way on its node was stopped, whatever it looks like.
  const bool stopped = !body.command_id.empty();
  const std::string outcome = stopped ? "stopped_by_rule" : outcome_of(code);
  const bool open_end = run.outcome.empty() || run.outcome == "unknown" || run.outcome == "lost" ||
                        (stopped && run.outcome == "failed");
  if (run.ended) {
    if (!open_end || (!code && !stopped)) return;  // it has said so itself, or nothing new is known
    run.outcome = outcome;
    run.exit_code = code;
    return finish_again(run, time);
  }
  const auto worker = std::find_if(run.workers.begin(), run.workers.end(), [&](const Worker& one) {
    return one.name_hash == hash && one.incarnation == body.died_incarnation;
  });
  if (worker == run.workers.end() || worker->agent) return;
  if (worker->gone && (!open_end || (!code && !stopped))) return;  // it has said goodbye itself
  const auto number = static_cast<std::uint32_t>(worker - run.workers.begin());
  part->cut.touch_worker(run, number);
  // Its own last word was that it does not know, or how the end looked from inside.
  if (worker->gone) run.outcome.clear();
  worker->gone = true;
  worsen(run, outcome, code);
  if (run.outcome == "stopped_by_rule") lower(run, Operational::job_failed, kNoLane, time);
  run.ended_at = std::max(run.ended_at, time);
  sync(run, number);
  if (outcome == "failed") {
    Finding finding;
    finding.observed = {"exit_code", static_cast<double>(*code)};
    finding.summary = worker->name + how(body.exit_code, body.signal) + ".";
    raise(run, Operational::job_failed, kNoLane, time, std::move(finding));
  }
  advance(run);
  check_end(run);
}

void Engine::Impl::check_end(Run& run) {
  if (run.ended || run.outcome.empty()) return;
  if (run.clock.gone() < run.clock.present()) return;
  if (run.clock.present() < run.world_size && !run.grace_over) return;  // not read yet, perhaps
  finish(run, core::Resolution::job_ended);
}

void Engine::Impl::finish(Run& run, core::Resolution resolution, bool lost) {
  if (run.ended) return;
  if (resolution == core::Resolution::job_ended) {
    advance(run, true);
    flush_rows(run);
  }
  flush_nodes(run);
  if (resolution == core::Resolution::job_ended) end_evaluators(run);
  for (const auto& clock : clock_rules) count_clock(run, clock, true);
  resolve_all(run, resolution, lost);
  run.ended = true;
  run.lost = lost;
  for (std::uint32_t rule = 0; rule < first_own; ++rule) {
    const RuleProgress& progress = run.progress[rule];
    if (progress.state == core::RuleState::issues_found) continue;
    if (resolution != core::Resolution::job_ended) {
      set_state(run, rule, core::RuleState::stopped, std::string(core::to_string(resolution)));
    } else if (progress.state == core::RuleState::no_data) {
      set_state(run, rule, core::RuleState::no_data, "no input arrived that this rule could judge");
    } else {
      set_state(run, rule, core::RuleState::no_issues_found, std::move(summaries[rule]));
    }
  }
  summaries.clear();
  if (lost) worsen(run, "lost", std::nullopt);
  if (resolution == core::Resolution::expired && run.outcome.empty()) run.outcome = "lost";
  if (resolution != core::Resolution::superseded) tell_end(run, run.outcome);
  // Nothing of an ended run is judged again; it is only remembered, so that it does not come back.
  if (resolution == core::Resolution::job_ended && !lost) {
    give_up_parts(run, true);
    run.pending = {};
    run.partial.clear();
    run.nodes.clear();
    run.lives.clear();
    run.clocks.clear();
    run.captured = {};
    run.clock = {};
    run.units = 0;
  }
}

void Engine::Impl::tell_end(Run& run, const std::string& outcome) {
  // A start may have been lost; but who never spoke of itself (JSON) has no end either.
  if (run.id.shard != 0 || (!run.started && !run.beats)) return;
  const std::int64_t time = run.ended_at != 0 ? run.ended_at : run.last_time;
  core::JobEvent event = job_event(run, core::JobPhase::ended, ++run.ends, time);
  event.ended_at = event.time;
  event.outcome = outcome;
  event.exit_code = run.exit_code;
  emit(std::move(event));
  const std::string job = run.job.empty() ? "The job" : run.job;
  Finding finding;
  if (outcome == "failed") {
    ++stats.failed_jobs;
    finding.observed = {"exit_code", static_cast<double>(run.exit_code.value_or(0))};
    finding.summary = job + " failed" +
                      (run.exit_code ? " with exit code " + std::to_string(*run.exit_code) : "") +
                      ".";
    raise(run, Operational::job_failed, kNoLane, time, std::move(finding));
  } else if (outcome == "lost" || outcome == "unknown") {
    ++stats.lost_jobs;
    finding.summary = outcome == "lost"
                          ? job + " is lost: nothing is heard of its processes any more."
                          : job + " ended without closing its hook; how it ended is not known.";
    raise(run, Operational::job_lost, kNoLane, time, std::move(finding));
  }
}

// How a run ended became known after its end.
void Engine::Impl::finish_again(Run& run, std::int64_t time) {
  lower(run, Operational::job_lost, kNoLane, time);
  if (run.outcome == "stopped_by_rule") lower(run, Operational::job_failed, kNoLane, time);
  tell_end(run, run.outcome);
  if (!run.lost) return;
  run.lost = false;
  give_up_parts(run, true);
  run.clock = {};
  run.units = 0;
}

// A job that counted as lost is heard of again: it goes on where it was.
void Engine::Impl::revive(Run& run, std::int64_t time) {
  run.ended = run.lost = false;
  if (run.outcome == "lost") run.outcome.clear();
  run.ended_at = 0;
  ++stats.revived_jobs;
  lower(run, Operational::job_lost, kNoLane, time);
  for (std::uint32_t rule = 0; rule < first_own; ++rule) {
    if (run.progress[rule].state == core::RuleState::no_issues_found) {
      set_state(run, rule, core::RuleState::in_progress);
    }
  }
  run.job_changed = true;
  heartbeat(run,
            std::max(time, run.last_heartbeat == kNever
                               ? time
                               : add(run.last_heartbeat, std::chrono::nanoseconds(kHeartbeatSoon))),
            true);
}

// The parts go to the cut, which keeps them for as long as it needs them.
void Engine::Impl::give_up_parts(Run& run, bool names) {
  auto gone = std::make_unique<Run>();
  gone->id = run.id;
  gone->life = std::exchange(run.life, part->cut.fresh_life());
  gone->head_mark = std::exchange(run.head_mark, {});
  gone->workers = std::exchange(run.workers, {});
  gone->worker_marks = std::exchange(run.worker_marks, {});
  gone->lanes = std::exchange(run.lanes, {});
  gone->lane_marks = std::exchange(run.lane_marks, {});
  gone->evaluators = std::exchange(run.evaluators, {});
  gone->names_life = run.names_life;
  if (names) {
    gone->names = std::exchange(run.names, {});
    gone->name_marks = std::exchange(run.name_marks, {});
    run.names_life = run.life;
    ++run.names_version;
  }
  run.worker_index.clear();
  run.lane_index.clear();
  part->cut.touch_head(run);
  for (const NameTable::Entry& entry : gone->names.entries()) {
    if (!entry.lasting) continue;
    part->cut.touch_name(run, run.names.place(entry.hash));
    run.names.set(entry.hash, entry.name, true);
  }
  part->cut.retire(std::move(gone));
}

// Those of scalars: they go by steps alone, not by workers, which begin anew. Their keys stay with
// what the run gives up, so they are written again.
EvaluatorParts Engine::Impl::take_series(Run& run) {
  EvaluatorParts out(run.evaluators.size());
  for (std::uint32_t i = 0; i < run.evaluators.size(); ++i) {
    EvaluatorPart& from = run.evaluators[i];
    if (!from.evaluator || evaluated[i].program->inputs() != input::kValues) continue;
    std::string bytes;
    Writer writer(bytes);
    from.evaluator->save(writer);
    Loader loader(bytes);
    out[i].evaluator = evaluated[i].program->evaluator();
    out[i].evaluator->load(loader);
    out[i].identity = from.identity;
  }
  return out;
}

void Engine::Impl::supersede(Run& run, std::uint32_t attempt,
                             std::optional<std::int64_t> continues_from) {
  finish(run, core::Resolution::superseded);
  resolve_all(run, core::Resolution::superseded);  // what spoke of its end
  // Without a declared continuation the windows of the attempt before mean nothing any more.
  EvaluatorParts kept = continues_from ? take_series(run) : EvaluatorParts{};
  give_up_parts(run, false);
  Run fresh;
  fresh.id = run.id;
  fresh.life = run.life;
  fresh.names_life = run.names_life;
  fresh.launches = std::move(run.launches);
  fresh.head_mark = run.head_mark;
  fresh.name_marks = std::move(run.name_marks);
  fresh.partition = run.partition;
  fresh.attempt = attempt;
  fresh.first_seen = now;
  fresh.last_arrival = now;
  fresh.last_any = now;
  fresh.progress.resize(all_rules.size());
  // Counted per run: who reads issues takes a smaller number for an older report
  // (docs/events.md).
  for (std::size_t i = 0; i < std::min(fresh.progress.size(), run.progress.size()); ++i) {
    fresh.progress[i].issue_sequence = run.progress[i].issue_sequence;
  }
  fresh.job = run.job;  // until the new attempt's start says otherwise
  fresh.labels = run.labels;
  fresh.names = std::move(run.names);
  fresh.names_version = run.names_version + 1;
  fresh.evaluators = std::move(kept);
  run = std::move(fresh);
  for (const auto& clock : clock_rules) {
    next_check = std::min(next_check, clock.program->due_at(now));
  }
  for (std::uint32_t i = 0; i < run.evaluators.size(); ++i) {
    if (run.evaluators[i].evaluator) part->cut.touch_evaluator(run, i);
  }
}

}  // namespace tocsin::rules
