#include "collectors/hook/publish/announcer.h"

#include <algorithm>
#include <utility>

namespace tocsin::hook {
namespace {

using core::Lifecycle;
using core::LifecycleEvent;

// A first step may take minutes; readers hear of the worker before it ends.
constexpr auto kMayWait = std::chrono::milliseconds(200);

Lifecycle gap(Precedence precedence, std::string reason) {
  Lifecycle out;
  out.event = LifecycleEvent::gap;
  out.lane = to_string(precedence);
  out.reason = std::move(reason);
  return out;
}

}  // namespace

Announcer::Announcer(const SessionOptions& options, const CapturePlan& plan, FrameBatcher& frames,
                     const StepCounter& steps, const core::Clock& clock, SendQueue& queue)
    : options_(options),
      plan_(plan),
      frames_(frames),
      steps_(steps),
      clock_(clock),
      queue_(queue),
      opened_(clock.monotonic()),
      last_heartbeat_(opened_),
      last_dictionary_(opened_) {}

void Announcer::ensure_started() {
  if (!started_) start(std::nullopt);
}

void Announcer::start(std::optional<std::int64_t> continues_from) {
  started_ = true;
  continues_from_ = continues_from;
  frames_.dictionary(Tell::fresh);
  const Identity& identity = options_.identity;
  Lifecycle start;
  start.event = LifecycleEvent::start;
  start.job = identity.job;
  start.labels = options_.labels;
  start.framework = options_.framework;
  start.version = options_.version;
  start.pid = identity.pid;
  start.pid_start = identity.pid_start;
  start.boot_id = identity.boot_id;
  if (identity.opened > 0) start.opened = identity.opened;
  start.host = identity.host;
  start.node = identity.host;
  start.launcher = identity.launcher;
  start.launch = identity.launch;
  start.platform = identity.platform;
  start.platform_ref = identity.platform_ref;
  start.continues_from = continues_from;
  start.worker_name = identity.worker;
  start.capture = plan_.describe();
  frames_.lifecycle(start);
}

void Announcer::start_again() {
  if (started_ && !ended_) start(continues_from_);
}

void Announcer::tell_gaps() {
  for (const Gap& lost : queue_.take_gaps()) {
    Lifecycle report = gap(lost.precedence, "queue_full");
    report.frames = lost.frames;
    report.rows = lost.rows;
    report.first_step = lost.first_step;
    report.last_step = lost.last_step;
    frames_.lifecycle(report);
    // Names may have been among what was dropped.
    if (lost.precedence == Precedence::control) frames_.dictionary(Tell::all);
  }
}

void Announcer::look_at_calls(core::Duration since) {
  const auto found = cadence_.look(frames_.logged_scalars(), steps_.global_step(),
                                   std::chrono::duration<double>(since).count());
  if (found.kind.empty()) return;
  wrong_calls_ = found.kind;
  preflight(
      core::ValueList{core::ValueMap{{"kind", std::string(found.kind)}, {"count", found.count}}});
}

core::Duration Announcer::tick() {
  const core::Duration now = clock_.monotonic();
  if (ended_) return kHeartbeat;
  if (!started_ && now - opened_ >= kMayWait) ensure_started();
  frames_.flush_if_due(now);
  if (started_ && now - last_heartbeat_ >= kHeartbeat) {
    look_at_calls(now - last_heartbeat_);
    last_heartbeat_ = now;
    Lifecycle heartbeat;
    heartbeat.event = LifecycleEvent::heartbeat;
    heartbeat.step = steps_.step();
    heartbeat.launch = options_.identity.launch;
    frames_.lifecycle(heartbeat);
  }
  if (started_ && now - last_dictionary_ >= kDictionaryAgain) {
    last_dictionary_ = now;
    frames_.dictionary(Tell::used);
  }
  tell_gaps();
  if (const auto waiting = frames_.due_in(now)) return *waiting;
  // While training goes on, more rows are to be expected.
  if (std::exchange(ticked_at_, steps_.global_step()) != steps_.global_step()) {
    return FrameBatcher::kPace;
  }
  return started_ ? std::max(last_heartbeat_ + kHeartbeat - now, core::Duration{0})
                  : std::max(opened_ + kMayWait - now, core::Duration{0});
}

void Announcer::delivery_failed(std::string_view why) {
  if (ended_ || !started_) return;
  frames_.lifecycle(gap(Precedence::control, "delivery_failed: " + std::string(why)));
  frames_.dictionary(Tell::all);
  start(std::nullopt);
}

void Announcer::skipped_raw(std::string_view reason) {
  Lifecycle report = gap(Precedence::raw, std::string(reason));
  report.first_step = steps_.step();
  frames_.lifecycle(report);
}

void Announcer::stretched(std::int64_t factor, core::ValueMap thinned) {
  Lifecycle report = gap(Precedence::statistics, "overhead");
  report.first_step = steps_.step() + 1;
  frames_.lifecycle(report);
  Lifecycle applied;
  applied.event = LifecycleEvent::applied;
  applied.version = "governor/" + std::to_string(factor);
  applied.effective_step = steps_.step() + 1;
  applied.left_out = std::move(thinned);
  frames_.lifecycle(applied);
}

void Announcer::answered(core::Ack ack) {
  if (ack.phase == "applied") {
    Lifecycle applied;
    applied.event = LifecycleEvent::applied;
    applied.command_id = ack.command_id;
    applied.version = ack.version;
    applied.effective_step = ack.effective_step;
    frames_.lifecycle(applied);
  }
  this->ack(std::move(ack));
}

void Announcer::ack(core::Ack ack) {
  const Identity& identity = options_.identity;
  ack.run = identity.run;
  ack.attempt = identity.attempt;
  ack.rank = identity.rank;
  ack.worker = identity.worker;
  ack.incarnation = options_.incarnation;
  ack.node = identity.host;
  ack.step = steps_.step();
  ack.time = clock_.now();
  QueuedRecord item;
  item.precedence = Precedence::control;
  item.rows = 1;
  item.first_step = item.last_step = steps_.step();
  item.record = ingest::encode_ack(ack, options_.cluster);
  queue_.push(std::move(item));
}

void Announcer::preflight(core::Value findings) {
  ensure_started();
  Lifecycle preflight;
  preflight.event = LifecycleEvent::preflight;
  preflight.findings = std::move(findings);
  frames_.lifecycle(preflight);
}

void Announcer::progress(double expect_next_in) {
  ensure_started();
  Lifecycle heartbeat;
  heartbeat.event = LifecycleEvent::heartbeat;
  heartbeat.step = steps_.step();
  heartbeat.launch = options_.identity.launch;
  heartbeat.expect_next_in = expect_next_in;
  frames_.lifecycle(heartbeat);
}

void Announcer::leave(std::string_view reason) {
  ensure_started();
  frames_.flush();
  Lifecycle leave;
  leave.event = LifecycleEvent::leave;
  leave.reason = std::string(reason);
  frames_.lifecycle(leave);
}

void Announcer::end(const Lifecycle& end) {
  ensure_started();
  frames_.flush();
  frames_.lifecycle(end);
  ended_ = true;
}

}  // namespace tocsin::hook
