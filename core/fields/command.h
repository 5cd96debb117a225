// Commands to a run, and its answers.
#pragma once

#include "core/command.h"
#include "core/fields/archive.h"

namespace tocsin::core {

template <typename A>
void fields(A& io, Of<A, CommandReason>& reason) {
  io.field("rule", reason.rule, "rule of the issue");
  io.field("issue_key", reason.issue_key, "the issue");
  io.field("episode", reason.episode, "its episode");
  io.field("event_id", reason.event_id, "the event that caused the command");
  io.field("summary", reason.summary, "one sentence");
}

/// The run of a command or an ack. An attempt that is not said reads as 0, which is nobody's.
template <typename A, typename Uid, typename Attempt, typename More>
void run_fields(A& io, Uid& uid, Attempt& attempt, More&& more) {
  if constexpr (A::kReading) attempt = 0;
  io.object("run", "the run", [&](auto& in) {
    in.field("uid", uid, "its UUID", How::null_if_empty);
    in.field("attempt", attempt, "the attempt that is meant", How::null_if_empty);
    more(in);
  });
}

template <typename A>
void fields(A& io, Of<A, Command>& command) {
  io.field("command_id", command.command_id, "the same for all requests of one attempt",
           How::required);
  io.field("action", command.action,
           "the slot: stop, capture, `capture/<asker>`, profile, `adjust/<name>` or agent",
           How::required);
  run_fields(io, command.run, command.attempt, [&](auto& in) {
    in.field("launch", command.launch, "the job's `launch` as the writer has read it",
             How::omit_if_empty);
  });
  io.field("ranks", AllOr{command.ranks}, "all, or a list of ranks");
  io.field("revision", command.revision, "grows per slot");
  io.field("issued_at", command.issued_at, "when it was written");
  io.field("expires_at", command.expires_at, "from when on nobody obeys it");
  io.field("requested_by", command.requested_by, "who wants it");
  io.field("reason", command.reason, "why");
  io.field("dry_run", command.dry_run, "answer, but do nothing");
  if constexpr (A::kWriting) {
    io.field("args", command.args.is_null() ? Value(ValueMap{}) : command.args);
  } else {
    io.field("args", command.args, "what the action needs");
  }
}

template <typename A>
void fields(A& io, Of<A, Ack>& ack) {
  constexpr How kOptional = How::omit_if_empty;
  io.field("command_id", ack.command_id, "the command", How::required);
  io.field("revision", ack.revision, "its revision");
  io.field("action", ack.action, "its slot");
  io.field("phase", ack.phase,
           "received, accepted, checkpointing, checkpoint_done, checkpoint_failed, stopping, "
           "stopped, applied, ended or refused",
           How::required);
  run_fields(io, ack.run, ack.attempt, [](auto&) {});
  io.field("rank", ack.rank, "who answers");
  io.field("worker", ack.worker, "its name");
  io.field("incarnation", ack.incarnation, "wall nanoseconds when its client opened");
  io.field("node", ack.node, "where it runs", kOptional);
  io.field("step", ack.step, "its train step");
  io.field("time", ack.time, "when it answered");
  io.field("reason", ack.reason, "why it refused or failed", kOptional);
  if (!A::kWriting || !ack.checkpoint_path.empty()) {
    io.object("checkpoint", "the checkpoint it saved", [&](auto& in) {
      in.field("path", ack.checkpoint_path, "where");
      in.field("bytes", ack.checkpoint_bytes, "how large");
    });
  }
  io.field("version", ack.version, "version of what was applied", kOptional);
  io.field("effective_step", ack.effective_step, "step from which on it holds", kOptional);
  io.field("exit_code", ack.exit_code, "what the script ends with, or what its parent saw",
           kOptional);
}

}  // namespace tocsin::core
