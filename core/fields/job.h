// The phases of a run, and what a rule says of itself.
#pragma once

#include "core/fields/archive.h"
#include "core/fields/run.h"
#include "core/fields/words.h"
#include "core/issue.h"

namespace tocsin::core {

template <typename A>
void fields(A& io, Of<A, JobEvent>& job) {
  if constexpr (A::kReading) job.run.attempt = 0;  // what is not said is no attempt
  io.field("phase", job.phase, "started, heartbeat or ended", How::required);
  io.field("number", job.number, "n-th event of this phase in this attempt");
  io.field("run", job.run, "the run");
  io.field("labels", job.labels, "labels of the run");
  io.field("world_size", job.world_size, "workers of this attempt; 0: unknown");
  io.field("rules", job.rules, "rules bound to it");
  io.field("started_at", job.started_at, "when its first worker started");
  io.field("ended_at", job.ended_at, "when it ended");
  io.field("outcome", job.outcome,
           "completed, failed, stopped_by_rule, stopped_by_person, interrupted, unknown or lost",
           How::null_if_empty);
  io.field("exit_code", job.exit_code, "of the worker that ended first with one");
  io.field("step", job.step, "newest train step of the fastest worker");
  io.field("step_seconds", job.step_seconds, "median of a train step");
  io.field("launch", job.launch, "node: `<boot id>/<opened>` of the newest worker started there");
}

template <typename A>
void fields(A& io, Of<A, RuleStatusEvent>& status) {
  if constexpr (A::kReading) status.run.attempt = 0;
  io.field("rule", status.rule, "name of the rule", How::required);
  io.field("rule_type", status.rule_type, "its type");
  io.field("rule_version", status.rule_version, "version of that type");
  io.field("status", status.status, "what it is now", How::required);
  io.field("previous", status.previous, "what it was before");
  io.field("reason", status.reason, "why it changed");
  io.field("missing", status.missing, "inputs it waits for");
  io.field("evaluations", status.evaluations, "outcome to count, when the status became so");
  io.field("summary", status.summary,
           "of a rule that sums up a run: by name a number, a text, or more of these",
           How::omit_if_empty);
  io.field("run", status.run, "the run");
}

}  // namespace tocsin::core
