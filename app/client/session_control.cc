// Session: what the worker says about itself, and how commands change what is captured.
#include <algorithm>
#include <utility>

#include "app/client/attrs.h"
#include "app/client/session.h"
#include "core/json.h"

namespace tocsin::app::client {
namespace {

using core::Lifecycle;
using core::LifecycleEvent;
using core::Value;
using core::ValueMap;

std::string text_of(const Value* value) {
  if (value == nullptr) return {};
  const auto* text = std::get_if<std::string>(&value->storage());
  return text == nullptr ? std::string() : *text;
}

std::optional<std::int64_t> integer_of(const Value* value) {
  if (value == nullptr) return std::nullopt;
  const auto* number = std::get_if<std::int64_t>(&value->storage());
  return number == nullptr ? std::nullopt : std::optional<std::int64_t>(*number);
}

// `plans`: one capture section or a list of them.
std::vector<Value> plans_of(const Value& args) {
  const Value* plans = core::find(args, "plans");
  if (plans == nullptr) return {};
  if (const auto* list = std::get_if<core::ValueList>(&plans->storage())) return *list;
  return {*plans};
}

constexpr auto kMayWait = std::chrono::milliseconds(200);

}  // namespace

void Session::ensure_started() {
  if (started_) return;
  started_ = true;
  send_start(std::nullopt);
}

void Session::send_start(std::optional<std::int64_t> continues_from) {
  send_dictionary(false);
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
  send_lifecycle(start);
}

void Session::send_lifecycle(const Lifecycle& lifecycle) {
  writer_.lifecycle(header(mode_step(), global_step_), ingest::encode_lifecycle(lifecycle));
  send(Lane::control, 1, mode_step(), mode_step());
}

core::Duration Session::tick() {
  const std::lock_guard lock(mutex_);
  const core::Duration now = clock_.monotonic();
  if (ended_) return kHeartbeat;
  if (!started_ && now - opened_ >= kMayWait) ensure_started();
  if (waiting_since_.count() >= 0 && now - waiting_since_ >= kBatchTime) flush_rows();
  if (started_ && now - last_heartbeat_ >= kHeartbeat) {
    last_heartbeat_ = now;
    Lifecycle heartbeat;
    heartbeat.event = LifecycleEvent::heartbeat;
    heartbeat.step = mode_step();
    heartbeat.launch = options_.identity.launch;
    send_lifecycle(heartbeat);
  }
  if (started_ && now - last_dictionary_ >= kDictionaryAgain) {
    last_dictionary_ = now;
    send_dictionary(true);
  }
  for (const Gap& gap : queue_.take_gaps()) {
    Lifecycle report;
    report.event = LifecycleEvent::gap;
    report.lane = to_string(gap.lane);
    report.reason = "queue_full";
    report.frames = gap.frames;
    report.rows = gap.rows;
    report.first_step = gap.first_step;
    report.last_step = gap.last_step;
    send_lifecycle(report);
    // Names may have been among what was dropped.
    if (gap.lane == Lane::control) send_dictionary(true);
  }
  if (waiting_since_.count() >= 0) {
    return std::max(waiting_since_ + kBatchTime - now, core::Duration{0});
  }
  // While training goes on, more rows are to be expected.
  if (std::exchange(ticked_at_, global_step_) != global_step_) return kBatchTime;
  return started_ ? std::max(last_heartbeat_ + kHeartbeat - now, core::Duration{0})
                  : std::max(opened_ + kMayWait - now, core::Duration{0});
}

void Session::delivery_failed(std::string_view why) {
  const std::lock_guard lock(mutex_);
  if (ended_ || !started_) return;
  Lifecycle report;
  report.event = LifecycleEvent::gap;
  report.lane = to_string(Lane::control);
  report.reason = "delivery_failed: " + std::string(why);
  send_lifecycle(report);
  send_dictionary(true);
  send_start(std::nullopt);
}

void Session::govern(core::Duration monotonic) {
  if (!governor_.step(monotonic - step_started_mono_, plan_.smallest_every())) return;
  Lifecycle report;
  report.event = LifecycleEvent::gap;
  report.lane = to_string(Lane::statistics);
  report.reason = "overhead";
  report.first_step = mode_step() + 1;
  send_lifecycle(report);
  Lifecycle applied;
  applied.event = LifecycleEvent::applied;
  applied.version = "governor/" + std::to_string(governor_.stretch());
  applied.effective_step = mode_step() + 1;
  send_lifecycle(applied);
}

void Session::leave(std::string_view reason) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  ensure_started();
  flush_rows();
  Lifecycle leave;
  leave.event = LifecycleEvent::leave;
  leave.reason = std::string(reason);
  send_lifecycle(leave);
}

void Session::end(const Lifecycle& end) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  ensure_started();
  if (step_open_) finish_step(false, 1);
  flush_rows();
  send_lifecycle(end);
  ended_ = true;
}

void Session::send_ack(core::Ack ack) {
  const Identity& identity = options_.identity;
  ack.run = identity.run;
  ack.attempt = identity.attempt;
  ack.rank = identity.rank;
  ack.worker = identity.worker;
  ack.incarnation = incarnation_;
  ack.node = identity.host;
  ack.step = mode_step();
  ack.time = clock_.now();
  QueuedRecord item;
  item.lane = Lane::control;
  item.rows = 1;
  item.first_step = item.last_step = mode_step();
  item.record = ingest::encode_ack(ack, options_.cluster);
  queue_.push(std::move(item));
}

void Session::ack(core::Ack ack) {
  const std::lock_guard lock(mutex_);
  send_ack(std::move(ack));
}

void Session::capture(core::Command command) {
  const std::lock_guard lock(mutex_);
  pending_capture_ = std::move(command);
}

void Session::withdraw_capture() {
  const std::lock_guard lock(mutex_);
  pending_withdrawal_ = true;
}

void Session::refuse_capture(const core::Command& command, std::string_view reason) {
  core::Ack ack;
  ack.command_id = command.command_id;
  ack.revision = command.revision;
  ack.action = command.action;
  ack.phase = "refused";
  ack.reason = std::string(reason);
  ack.version = text_of(core::find(command.args, "version"));
  send_ack(std::move(ack));
}

// Tensors may belong to other collections now; what the dictionary says of them has changed then.
void Session::plan_changed() {
  due_known_ = false;
  for (Name& name : names_) {
    if (name.type != core::DictionaryType::tensor) continue;
    const CollectionMask mask = name.own | plan_.collections_of(name.text, name.role);
    if (mask == name.collections) continue;
    name.collections = mask;
    name.attrs = name_attrs(name.given_attrs, plan_.names(mask));
    name.sent = false;
    unsent_names_ = true;
  }
}

// At a step boundary, so that a step is captured by one plan. What a command asks for comes on top
// of the client's own plan; statistics other than delta and collections that are not built in are
// refused by name.
void Session::apply_pending_capture() {
  if (capture_until_ && mode_step() >= *capture_until_) {
    capture_until_.reset();
    pending_withdrawal_ = true;
  }
  if (std::exchange(pending_withdrawal_, false)) {
    plan_.restore();
    plan_changed();
  }
  if (!pending_capture_) return;
  const core::Command command = *std::exchange(pending_capture_, std::nullopt);
  const auto not_before = integer_of(core::find(command.args, "not_before_step"));
  if (not_before && mode_step() < *not_before) {
    pending_capture_ = command;
    return;
  }
  bool changed = false;
  std::string refused;
  for (const Value& plan : plans_of(command.args)) {
    const auto parsed = parse_capture(core::to_json(plan));
    if (!parsed) return refuse_capture(command, "out_of_bounds");
    const bool common = core::find(plan, "every") != nullptr;
    for (CollectionConfig collection : parsed->collections) {
      if (!collection.every && common) collection.every = parsed->every;
      for (const std::string& what : plan_.extend(collection, changed)) {
        refused += (refused.empty() ? "" : ", ") + what;
      }
    }
  }
  plan_changed();
  if (!refused.empty() && !changed) return refuse_capture(command, "unsupported");
  capture_until_ = integer_of(core::find(command.args, "until_step"));
  send_applied(command, refused);
}

void Session::send_applied(const core::Command& command, const std::string& refused) {
  core::Ack ack;
  ack.command_id = command.command_id;
  ack.revision = command.revision;
  ack.action = command.action;
  ack.phase = "applied";
  ack.reason = refused.empty() ? "" : "without " + refused;
  ack.version = text_of(core::find(command.args, "version"));
  ack.effective_step = mode_step();
  Lifecycle applied;
  applied.event = LifecycleEvent::applied;
  applied.command_id = command.command_id;
  applied.version = ack.version;
  applied.effective_step = mode_step();
  send_lifecycle(applied);
  send_ack(std::move(ack));
}

ValueMap Session::counters() const {
  const std::lock_guard lock(mutex_);
  core::ValueList left_out;
  for (const std::string& name : delta_left_out_) left_out.emplace_back(name);
  return {
      {"run", core::to_text(options_.identity.run)},
      {"job", options_.identity.job},
      {"attempt", std::int64_t{options_.identity.attempt}},
      {"rank", std::int64_t{options_.identity.rank}},
      {"world_size", std::int64_t{options_.identity.world_size}},
      {"worker", options_.identity.worker},
      {"workers", plan_.workers()},
      {"mode", std::string(core::to_string(mode_))},
      {"step", steps_[static_cast<std::size_t>(mode_)]},
      {"global_step", global_step_},
      {"steps", ValueMap{{"train", steps_[1]}, {"eval", steps_[2]}, {"predict", steps_[3]}}},
      {"sampled_steps_total", sampled_steps_},
      {"rows_total", rows_},
      {"frames_total", sequence_ - 1},
      {"errors_total", errors_},
      {"hook_seconds_total", static_cast<double>(hook_time_.count()) * 1e-9},
      {"overhead_share", governor_.share()},
      {"effective_interval", plan_.smallest_every() * governor_.stretch()},
      {"delta_bytes", deltas_.used()},
      {"delta_left_out", std::move(left_out)},
      {"launch", options_.identity.launch},
  };
}

}  // namespace tocsin::app::client
