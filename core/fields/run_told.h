// What a message says of a run, and of the stop that it was asked for.
#pragma once

#include "core/fields/archive.h"
#include "core/fields/run.h"
#include "core/run_told.h"

namespace tocsin::core {

template <typename A>
void fields(A& io, Of<A, Checkpoint>& checkpoint) {
  io.field("path", checkpoint.path, "where, as the run names it");
  io.field("host", checkpoint.host, "host that the path is on");
  io.field("bytes", checkpoint.bytes, "size");
  io.field("step", checkpoint.step, "train step of the rank that saved it");
}

template <typename A>
void fields(A& io, Of<A, StopAnswers>& answers) {
  io.field("asked", answers.asked, "ranks of the run; 0: not known");
  io.field("heard", answers.heard, "ranks that answered");
  io.field("accepted", answers.accepted, "ranks whose training loop took it");
  io.field("stopped", answers.stopped, "ranks that stopped");
  io.field("refused", answers.refused, "ranks that refused");
}

template <typename A>
void fields(A& io, Of<A, StopTold>& stop) {
  io.field("command_id", stop.command_id, "id of the command");
  io.field("requested_by", stop.requested_by, "router (for a rule), or who asked");
  io.field("rule", stop.rule, "rule whose issue asked; empty: a person did");
  io.field("mode", stop.mode, "stop, checkpoint_then_stop or pause");
  io.field("state", stop.state,
           "requested, cooperative, checkpointing, stopped, refused, failed or expired");
  io.field("reason", stop.reason, "why it was asked, or why it was refused or failed");
  io.field("requested_at", stop.requested_at, "when it was asked");
  io.field("step", stop.step, "train step at which the run left");
  io.field("checkpoint", stop.checkpoint, "what the run saved before it stopped");
  io.field("checkpoint_failure", stop.checkpoint_failure, "why no checkpoint was saved");
  io.field("exit_code", stop.exit_code, "of the first rank that named one");
  io.field("answers", stop.answers, "what the ranks said");
}

template <typename A>
void fields(A& io, Of<A, RunTold>& told) {
  io.field("run", told.run, "the run");
  io.field("labels", told.labels, "labels of the run");
  io.field("outcome", told.outcome, "how it ended; empty: it goes on, as far as is known");
  io.field("exit_code", told.exit_code, "of the worker that ended first with one");
  io.field("step", told.step, "newest train step");
  io.field("started_at", told.started_at, "when its first worker started");
  io.field("ended_at", told.ended_at, "when it ended");
  io.field("hosts", told.hosts, "where its workers run");
  io.field("world_size", told.world_size, "ranks; 0: not known");
  io.field("report", told.report, "where its page lies");
  io.field("stop", told.stop, "the stop that it was asked for");
}

}  // namespace tocsin::core
