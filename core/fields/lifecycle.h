// The life of a worker: the JSON of a kind 4 frame.
#pragma once

#include <array>

#include "core/fields/archive.h"
#include "core/lifecycle.h"

namespace tocsin::core {

inline std::string_view to_string(LifecycleEvent event) noexcept {
  constexpr std::array<std::string_view, 8> kNames{"start",   "heartbeat", "preflight", "died",
                                                   "applied", "gap",       "leave",     "end"};
  return kNames[static_cast<std::size_t>(event)];
}

template <>
struct Words<LifecycleEvent> {
  static constexpr LifecycleEvent kAll[] = {LifecycleEvent::start,     LifecycleEvent::heartbeat,
                                            LifecycleEvent::preflight, LifecycleEvent::died,
                                            LifecycleEvent::applied,   LifecycleEvent::gap,
                                            LifecycleEvent::leave,     LifecycleEvent::end};
};

/// Of a process that a node's agent saw go.
template <typename A>
void death_fields(A& io, Of<A, Lifecycle>& life) {
  io.field("worker", life.died_worker, "who died", How::omit_if_empty);
  io.field("incarnation", life.died_incarnation, "which of its starts");
  if (A::kWriting) io.field("pid", life.pid, "process id", How::omit_if_empty);
  io.field("exit_code", life.exit_code, "of the process");
  io.field("signal", life.signal, "that ended it");
}

/// Each event writes its own fields; whatever stands there is read.
template <typename A>
void fields(A& io, Of<A, Lifecycle>& life) {
  using Event = LifecycleEvent;
  constexpr How kOptional = How::omit_if_empty;
  const auto when = [&](auto... events) { return !A::kWriting || ((life.event == events) || ...); };
  io.field("event", life.event, "what happened", How::required);
  if (when(Event::start)) {
    io.field("job", life.job, "name of what is trained", kOptional);
    io.field("labels", life.labels, "labels of the run");
    io.field("framework", life.framework, "name and version", kOptional);
    io.field("version", life.version, "of the client", kOptional);
    io.field("pid", life.pid, "process id", kOptional);
    io.field("pid_start", life.pid_start, "start ticks of the process", kOptional);
    io.field("boot_id", life.boot_id, "boot that `opened` counts from", kOptional);
    io.field("opened", life.opened, "boot-time ns when the client opened", kOptional);
    io.field("host", life.host, "host name", kOptional);
    io.field("node", life.node, "node id", kOptional);
    io.field("launcher", life.launcher, "torchrun, slurm, …", kOptional);
  }
  if (when(Event::start, Event::heartbeat)) {
    io.field("launch", life.launch, "what the ranks of one launch share", kOptional);
  }
  if (when(Event::heartbeat)) {
    io.field("expect_next_in", life.expect_next_in,
             "seconds within which the loop promises to be heard of again", kOptional);
  }
  const bool died = life.event == Event::died;
  if (!died && when(Event::start)) {
    io.field("worker", life.worker_name, "name of the worker", kOptional);
  }
  if (when(Event::start)) {
    io.object("platform", "where it runs", [&](auto& in) {
      in.field("kind", life.platform, "local, slurm, k8s-job, …");
      in.field("ref", life.platform_ref, "the platform's own identity of it", kOptional);
    });
    io.field("continues_from", life.continues_from, "step of the checkpoint it resumed");
    // Its own value: what is common to all plans follows from it.
    std::conditional_t<A::kReading, Value, const Value&> plan = life.capture.value();
    io.field("capture", plan, "the effective capture plan", kOptional);
    if constexpr (A::kReading) life.capture = CapturedPlan(std::move(plan));
  }
  if (when(Event::preflight)) {
    io.field("findings", life.findings, "what looks wrong before the first step", kOptional);
  }
  if (died) death_fields(io, life);
  if (when(Event::applied, Event::died)) {
    io.field("command_id", life.command_id, "the command; died: the stop that was under way",
             kOptional);
  }
  if (when(Event::applied)) {
    if (A::kWriting) io.field("version", life.version, "of the command", kOptional);
    io.field("effective_step", life.effective_step, "step from which on it holds", kOptional);
    io.field("left_out", life.left_out, "what cannot be given, and why", kOptional);
  }
  if (when(Event::gap)) io.field("lane", life.lane, "queue of the client", kOptional);
  if (when(Event::gap, Event::leave)) io.field("reason", life.reason, "why", kOptional);
  if (when(Event::gap)) {
    io.field("frames", life.frames, "frames lost");
    io.field("rows", life.rows, "rows lost");
    io.field("first_step", life.first_step, "first step of them", kOptional);
    io.field("last_step", life.last_step, "last step of them", kOptional);
  }
  if (when(Event::end, Event::died)) {
    io.field("outcome", life.outcome,
             "completed, failed, stopped_by_rule, stopped_by_person or interrupted", kOptional);
  }
  if (when(Event::end)) {
    io.field("exit_code", life.exit_code, "of the process", kOptional);
    io.field("error", life.error, "in words", kOptional);
  }
  io.field("step", life.step, "train step", kOptional);
}

}  // namespace tocsin::core
