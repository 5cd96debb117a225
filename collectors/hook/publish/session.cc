#include "collectors/hook/publish/session.h"

#include <utility>
#include <vector>

#include "collectors/collectors.h"
#include "collectors/hook/capture/tensor_math.h"
#include "collectors/hook/publish/attrs.h"

namespace tocsin::hook {
namespace {

using core::Dtype;
using core::Mode;
using core::ValueMap;

Moment moment_of(const core::Clock& clock) {
  return {core::nanoseconds(clock.now()), clock.monotonic()};
}

// One call for all parameters: nothing more will come.
constexpr std::size_t kManyTensors = 16;
constexpr CollectionMask kAnyCollection = ~CollectionMask{0};

}  // namespace

Session::Session(SessionOptions options, CapturePlan plan, const core::Clock& clock,
                 SendQueue& queue, RawQueue* raw)
    : options_(std::move(options)),
      clock_(clock),
      steps_(moment_of(clock)),
      capture_(std::move(plan), clock),
      statistics_({capture_.plan().config().delta_memory}),
      names_(options_.identity.worker, worker_attrs(options_.identity.job, options_.labels)),
      frames_(options_.identity, options_.incarnation, names_, steps_, clock, queue),
      announcer_(options_, capture_.plan(), frames_, steps_, clock, queue),
      raw_(raw, frames_, steps_, announcer_) {
  statistics_.follow(capture_.plan().requests());
}

Moment Session::moment() const { return moment_of(clock_); }

const Name* Session::known(std::uint64_t id) {
  const Name* found = names_.use(id);
  if (found == nullptr) frames_.count_error();
  return found;
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
  steps_.enter(mode, moment());
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
  admit(tensors, due);
  const CollectionMask raw = raw_.of(capture_.plan(), kAnyCollection);
  std::size_t written = 0;
  CollectionMask of = 0;
  for (const LentTensor& tensor : tensors) {
    const Name* name = known(tensor.id);
    const CollectionMask wanted = tensor.off_grid ? kAnyCollection : due;
    if (name == nullptr || (name->collections & wanted) == 0) continue;
    if (!reduce(tensor, *name, wanted)) continue;
    ++written;
    of |= name->collections & wanted;
    if ((name->collections & wanted & raw) != 0 || (tensor.raw && raw_.on())) {
      raw_.copy(tensor, *name);
    }
  }
  raw_.sent();
  if (written > 0) steps_.touch();
  if (tensors.size() >= kManyTensors) frames_.flush();
  capture_.measured(since, of);
  return written;
}

bool Session::reduce(const LentTensor& tensor, const Name& name, CollectionMask due) {
  const std::uint64_t count = elements(tensor.shape);
  if (count == 0 && (tensor.flags & core::meta::kEmptyHere) == 0) return false;
  const Layout layout = layout_of(tensor.shape, tensor.strides);
  const Dtype dtype = tensor.dtype == Dtype::unknown ? name.dtype : tensor.dtype;
  core::SummaryRow row =
      layout == Layout::strided
          ? collectors::reduce_strided(dtype, tensor.data, tensor.shape, tensor.strides)
          : collectors::reduce(dtype, tensor.data, count);
  row.name = name.hash;
  row.meta |= core::meta::make(dtype, name.role, tensor.flags);
  measure(tensor, name, layout, due, row);
  frames_.add(row);
  return true;
}

// What is measured beyond the columns goes out with the row that is added next.
void Session::measure(const LentTensor& tensor, const Name& name, Layout layout, CollectionMask due,
                      core::SummaryRow& row) {
  const StatisticMask asked = capture_.plan().statistics_of(name.collections & due);
  collectors::TensorSample sample;
  sample.id = tensor.id;
  sample.dtype = core::meta::dtype(row.meta);
  sample.data = tensor.data;
  sample.count = row.count;
  sample.shape = tensor.shape;
  sample.row_major = layout == Layout::contiguous;
  sample.step = steps_.step();
  sample.row = row;
  sample.role = name.role;
  sample.op_type = name.op_type;
  sample.global_step = steps_.global_step();
  const bool in_pieces = layout == Layout::strided;
  if (asked != 0 && (in_pieces || (!sample.row_major && (asked & statistics_.in_order()) != 0))) {
    if (!gather(tensor.data, core::size_of(sample.dtype), tensor.shape, tensor.strides,
                gathered_)) {
      ++not_gathered_;
      if (in_pieces) return;
    } else {
      sample.data = gathered_.data();
      sample.row_major = true;
    }
  } else if (in_pieces) {
    return;
  }
  ExtensionRows& out = frames_.next_summary();
  statistics_.measure(sample, asked, out);
  if (out.is_approximate()) row.meta |= core::meta::kApproximate;
}

void Session::admit(std::span<const LentTensor> tensors, CollectionMask due) {
  const StatisticMask any = capture_.plan().statistics_of(kAnyCollection);
  if (any == 0) return;
  std::vector<collectors::Wish> wishes;
  for (const LentTensor& tensor : tensors) {
    const CollectionMask wanted = tensor.off_grid ? kAnyCollection : due;
    if (wanted == 0) continue;
    const Name* name = names_.find(tensor.id);
    if (name == nullptr) continue;
    const StatisticMask asked = capture_.plan().statistics_of(name->collections & wanted);
    if (asked == 0 || !statistics_.is_new(tensor.id, asked)) continue;
    wishes.push_back({tensor.id, elements(tensor.shape) * core::size_of(tensor.dtype), name->text});
  }
  if (!wishes.empty()) statistics_.admit(wishes, any);
}

std::size_t Session::statistics(std::span<const core::SummaryRow> rows) {
  const core::MutexLock lock(mutex_);
  const core::Duration since = clock_.monotonic();
  announcer_.ensure_started();
  std::size_t written = 0;
  CollectionMask of = 0;
  for (core::SummaryRow row : rows) {
    const Name* name = known(row.name);
    if (name == nullptr) continue;
    if ((row.meta & 0xff) == 0) row.meta |= static_cast<std::uint64_t>(name->dtype);
    if ((row.meta >> 8 & 0xff) == 0) row.meta |= static_cast<std::uint64_t>(name->role) << 8;
    frames_.add(row);
    of |= name->collections;
    ++written;
  }
  if (written > 0) steps_.touch();
  capture_.measured(since, of);
  return written;
}

void Session::scalars(std::span<const std::uint64_t> ids, std::span<const double> values) {
  const core::MutexLock lock(mutex_);
  const bool due = capture_.scalars_due(steps_.step());
  for (std::size_t i = 0; i < ids.size() && i < values.size(); ++i) {
    if (add_scalar(ids[i], values[i], due)) steps_.touch();
  }
}

bool Session::add_scalar(std::uint64_t name, double value, bool due) {
  // The ledger has a budget of its own, and no grid.
  const Name* found = due ? nullptr : names_.find(name);
  if (!due && (found == nullptr || found->role != core::Role::ledger)) return false;
  announcer_.ensure_started();
  if (found = known(name); found != nullptr) frames_.add_scalar(*found, value);
  return true;
}

void Session::span(std::uint64_t name, std::uint64_t track, std::int64_t start,
                   std::int64_t duration, std::uint64_t args) {
  const core::MutexLock lock(mutex_);
  add_span(name, track, start, duration, args);
}

void Session::add_span(std::uint64_t name, std::uint64_t track, std::int64_t start,
                       std::int64_t duration, std::uint64_t args) {
  announcer_.ensure_started();
  if (track == 0) {
    if (phase_track_ == 0) {
      NameInfo info;
      info.type = core::DictionaryType::track;
      phase_track_ = names_.put("phase", info, capture_.plan());
    }
    track = phase_track_;
  }
  for (const std::uint64_t id : {name, track, args}) {
    if (id != 0) names_.use(id);
  }
  frames_.add_span(name, track, start, duration, args);
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
    for (const ScalarValue& scalar : scalars) add_scalar(scalar.name, scalar.value, due);
  }
  for (const PhaseTime& time : times) {
    if (time.duration < -1) {
      frames_.count_error();
    } else {
      add_span(time.name, 0, time.start, time.duration, 0);
    }
  }
  finish_step(optimizer_skipped, micro_steps);
  return capture_.may_be_due(steps_);
}

void Session::finish_step(bool optimizer_skipped, std::uint32_t micro_steps) {
  announcer_.ensure_started();
  begun_ = true;
  const Moment now = moment();
  frames_.add_step_end(now, micro_steps, optimizer_skipped);
  if (capture_.step_ends(steps_, now.monotonic)) {
    const Governor::Stretch& stretch = capture_.governor().stretch();
    frames_.set_degraded(stretch.costly > 1 || stretch.small > 1);
    announcer_.stretched(stretch.costly, capture_.thinned());
  }
  steps_.next(now);
  train_step_ = steps_.of(Mode::train);
  CaptureChange change = capture_.step_begins(steps_.step());
  if (change.plan) {
    statistics_.follow(capture_.plan().requests());
    names_.regroup(capture_.plan());
    ++plan_changes_;
  }
  for (core::Ack& answer : change.answers) announcer_.answered(std::move(answer));
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
  statistics_.follow(capture_.plan().requests());
  names_.regroup(capture_.plan());
  ++plan_changes_;
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

std::int64_t Session::step() const {
  const core::MutexLock lock(mutex_);
  return steps_.step();
}

}  // namespace tocsin::hook
