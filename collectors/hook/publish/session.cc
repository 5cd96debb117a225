#include "collectors/hook/publish/session.h"

#include <utility>
#include <vector>

#include "collectors/hook/publish/attrs.h"
#include "collectors/hook/publish/session_counters.h"
#include "core/limits.h"
#include "core/mutex.h"

namespace tocsin::hook {
namespace {

using core::Mode;
using core::ValueMap;

Moment moment_of(const core::Clock& clock) {
  return {core::nanoseconds(clock.now()), clock.monotonic()};
}

// One call for all parameters: nothing more will come.
constexpr std::size_t kManyTensors = 16;

}  // namespace

Session::Session(SessionOptions options, CapturePlan plan, const core::Clock& clock,
                 SendQueue& queue, RawQueue* raw)
    : options_(std::move(options)),
      clock_(clock),
      steps_(moment_of(clock)),
      capture_(std::move(plan), clock),
      names_(options_.identity.worker, worker_attrs(options_.identity.job, options_.labels)),
      frames_(options_.identity, options_.incarnation, names_, steps_, clock, queue),
      announcer_(options_, capture_.plan(), frames_, steps_, clock, queue),
      rows_(capture_.plan(), names_, steps_, frames_),
      values_(capture_.plan(), names_, frames_, announcer_),
      raw_(raw, frames_, steps_, announcer_) {}

std::uint64_t Session::name(std::string_view text, const NameInfo& info) {
  const core::MutexLock lock(mutex_);
  if (info.type == core::DictionaryType::tensor) capture_.forget_due();
  return names_.put(text, info, capture_.plan());
}

std::uint64_t Session::collection(std::string_view name) {
  const core::MutexLock lock(mutex_);
  return capture_.collection(names_.fit(name, core::limit::kHostBytes));
}

bool Session::wanted(std::string_view name, std::optional<core::Role> role) const {
  const core::MutexLock lock(mutex_);
  const core::Role known = role.value_or(role_by_name(core::DictionaryType::tensor, name));
  return capture_.plan().collections_of(name, known) != 0;
}

void Session::set_mode(Mode mode) {
  const core::MutexLock lock(mutex_);
  if (!steps_.may_enter(mode)) return;
  // What was logged in an evaluation without step() still makes one batch.
  if (steps_.open() && steps_.mode() != Mode::train) finish_step(false, 1);
  frames_.flush();
  frames_.step_begins();
  steps_.enter(mode, moment_of(clock_));
  capture_.forget_due();
}

bool Session::due(std::uint64_t collection) {
  const core::MutexLock lock(mutex_);
  return capture_.wants(collection, steps_);
}

bool Session::due_at(std::uint64_t collection, std::uint32_t ahead) {
  const core::MutexLock lock(mutex_);
  return capture_.wants_at(collection, ahead, steps_);
}

void Session::due_of(std::span<const std::uint64_t> ids, std::uint32_t ahead,
                     std::span<std::uint8_t> due) {
  const core::MutexLock lock(mutex_);
  const CollectionMask mask = capture_.due_ahead(ahead, steps_);
  for (std::size_t i = 0; i < ids.size() && i < due.size(); ++i) {
    const Name* name = names_.find(ids[i]);
    const CollectionMask wanted = name == nullptr ? 0 : name->collections & mask;
    due[i] = wanted == 0 ? 0 : raw_.of(capture_.plan(), wanted) == 0 ? 1 : 3;
  }
}

std::size_t Session::tensors(std::span<const LentTensor> tensors) {
  const core::MutexLock lock(mutex_);
  const core::Duration since = capture_.measuring_since();
  announcer_.ensure_started();
  const CollectionMask due = capture_.due(steps_);
  rows_.admit(tensors, due);
  const CollectionMask raw = raw_.of(capture_.plan(), kAnyCollection);
  std::size_t written = 0;
  std::uint64_t elements = 0;  // bytes of them
  CollectionMask of = 0;
  for (const LentTensor& tensor : tensors) {
    const Name* name = frames_.use(tensor.id);
    const CollectionMask wanted = tensor.off_grid ? kAnyCollection : due;
    if (name == nullptr || (name->collections & wanted) == 0) continue;
    if (!rows_.add(tensor, *name, wanted)) continue;
    ++written;
    of |= name->collections & wanted;
    if ((name->collections & wanted & raw) != 0 || (tensor.raw && raw_.on())) {
      elements += raw_.copy(tensor, *name);
    }
  }
  raw_.sent();
  if (written > 0) steps_.touch();
  if (tensors.size() >= kManyTensors) frames_.flush();
  capture_.measured(since, of);
  capture_.took(written * sizeof(core::SummaryRow) + elements);
  return written;
}

std::size_t Session::statistics(std::span<const core::SummaryRow> rows) {
  const core::MutexLock lock(mutex_);
  const core::Duration since = clock_.monotonic();
  announcer_.ensure_started();
  std::size_t written = 0;
  CollectionMask of = 0;
  for (core::SummaryRow row : rows) {
    const Name* name = frames_.use(row.name);
    if (name == nullptr) continue;
    if ((row.meta & 0xff) == 0) row.meta |= static_cast<std::uint64_t>(name->dtype);
    if ((row.meta >> 8 & 0xff) == 0) row.meta |= static_cast<std::uint64_t>(name->role) << 8;
    frames_.add(row);
    of |= name->collections;
    ++written;
  }
  if (written > 0) steps_.touch();
  capture_.measured(since, of);
  capture_.took(written * sizeof(core::SummaryRow));
  return written;
}

void Session::scalars(std::span<const std::uint64_t> ids, std::span<const double> values) {
  const core::MutexLock lock(mutex_);
  const bool due = capture_.scalars_due(steps_.step());
  for (std::size_t i = 0; i < ids.size() && i < values.size(); ++i) {
    if (values_.scalar(ids[i], values[i], due)) steps_.touch();
  }
}

void Session::span(std::uint64_t name, std::uint64_t track, std::int64_t start,
                   std::int64_t duration, std::uint64_t args) {
  const core::MutexLock lock(mutex_);
  values_.span(name, track, start, duration, args);
}

void Session::step_end(bool optimizer_skipped, std::uint32_t micro_steps) {
  const core::MutexLock lock(mutex_);
  finish_step(optimizer_skipped, micro_steps);
}

bool Session::step_next(std::span<const ScalarValue> scalars, std::span<const PhaseTime> times,
                        bool optimizer_skipped, std::uint32_t micro_steps) {
  const core::MutexLock lock(mutex_);
  if (!scalars.empty()) {
    const bool due = capture_.scalars_due(steps_.step());
    for (const ScalarValue& scalar : scalars) values_.scalar(scalar.name, scalar.value, due);
  }
  for (const PhaseTime& time : times) {
    if (time.duration < -1) {
      frames_.count_error();
    } else {
      values_.span(time.name, 0, time.start, time.duration, 0);
    }
  }
  finish_step(optimizer_skipped, micro_steps);
  return capture_.may_be_due(steps_);
}

void Session::finish_step(bool optimizer_skipped, std::uint32_t micro_steps) {
  announcer_.ensure_started();
  begun_ = true;
  const Moment now = moment_of(clock_);
  frames_.add_step_end(now, micro_steps, optimizer_skipped);
  if (capture_.step_ends(steps_, now.monotonic)) {
    const Governor::Stretch& stretch = capture_.governor().stretch();
    frames_.set_degraded(stretch.costly > 1 || stretch.small > 1);
    announcer_.stretched(stretch.costly, capture_.thinned());
  }
  steps_.next(now);
  train_step_ = steps_.of(Mode::train);
  CaptureChange change = capture_.step_begins(steps_.step());
  if (change.plan) plan_changed();
  for (core::Ack& answer : change.answers) announcer_.answered(std::move(answer));
}

void Session::plan_changed() {
  rows_.follow_plan();
  names_.regroup(capture_.plan());
  ++plan_changes_;
}

void Session::resume(const StepCounter::Steps& steps, std::int64_t global_step,
                     std::optional<std::int64_t> continues_from) {
  const core::MutexLock lock(mutex_);
  frames_.flush();
  steps_.resume(steps, global_step);
  train_step_ = steps_.of(Mode::train);
  capture_.forget_due();
  announcer_.start(continues_from);
}

ValueMap Session::collections() const {
  const core::MutexLock lock(mutex_);
  ValueMap out;
  for (const auto& [config, bit] : capture_.plan().all()) {
    core::ValueList tensors;
    names_.each([&, mask = bit](const Name& name) {
      if ((name.collections & mask) != 0) tensors.emplace_back(name.text);
    });
    out.emplace_back(config->name,
                     ValueMap{{"config", to_value(*config)}, {"tensors", std::move(tensors)}});
  }
  return out;
}

core::Status Session::define(const std::vector<CollectionConfig>& collections) {
  const core::MutexLock lock(mutex_);
  if (begun_ || steps_.open()) {
    return core::Error{core::Code::failed_precondition,
                       "collections change before the first step, and this run has begun"};
  }
  if (auto ok = capture_.define(collections); !ok) return ok;
  plan_changed();
  announcer_.start_again();
  return core::ok();
}

core::Duration Session::tick() {
  const core::MutexLock lock(mutex_);
  return announcer_.tick();
}

void Session::delivery_failed(std::string_view why) {
  const core::MutexLock lock(mutex_);
  announcer_.delivery_failed(why);
}

void Session::flush() {
  const core::MutexLock lock(mutex_);
  frames_.flush();
}

void Session::preflight(core::Value findings) {
  const core::MutexLock lock(mutex_);
  announcer_.preflight(std::move(findings));
}

void Session::progress(double expect_next_in) {
  const core::MutexLock lock(mutex_);
  if (!announcer_.ended()) announcer_.progress(expect_next_in);
}

std::string_view Session::wrong_calls() const {
  const core::MutexLock lock(mutex_);
  return announcer_.wrong_calls();
}

void Session::leave(std::string_view reason) {
  const core::MutexLock lock(mutex_);
  if (!announcer_.ended()) announcer_.leave(reason);
}

void Session::end(const core::Lifecycle& end) {
  const core::MutexLock lock(mutex_);
  if (announcer_.ended()) return;
  if (steps_.open()) finish_step(false, 1);
  announcer_.end(end);
}

void Session::ack(core::Ack ack) {
  const core::MutexLock lock(mutex_);
  announcer_.ack(std::move(ack));
}

void Session::capture(core::Command command) {
  const core::MutexLock lock(mutex_);
  capture_.ask(std::move(command));
}

void Session::withdraw_capture(const std::string& slot) {
  const core::MutexLock lock(mutex_);
  capture_.withdraw(slot);
}

void Session::judged(core::Duration cost) {
  const core::MutexLock lock(mutex_);
  capture_.worked(cost);
}

ValueMap Session::counters() const {
  const core::MutexLock lock(mutex_);
  return session_counters(options_.identity, steps_, capture_, names_, frames_, rows_);
}

std::int64_t Session::step() const {
  const core::MutexLock lock(mutex_);
  return steps_.step();
}

}  // namespace tocsin::hook
