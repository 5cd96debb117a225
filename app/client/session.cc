// What the training thread calls; frames are made in session_frames.cc, control in
// session_control.cc.
#include "app/client/session.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "app/client/attrs.h"
#include "app/client/tensor_math.h"
#include "collectors/collectors.h"

namespace tocsin::app::client {
namespace {

using core::Dtype;
using core::Mode;
using core::Role;

Role role_by_name(core::DictionaryType type, std::string_view name) {
  if (type == core::DictionaryType::scalar) return core::scalar_role(name);
  if (type != core::DictionaryType::tensor) return Role::other;
  if (name.starts_with("gradient/")) return Role::gradient;
  if (name.ends_with("bias")) return Role::bias;
  return name.find("weight") != std::string_view::npos ? Role::weight : Role::other;
}

}  // namespace

Session::Session(SessionOptions options, CapturePlan plan, const core::Clock& clock,
                 SendQueue& queue)
    : options_(std::move(options)),
      plan_(std::move(plan)),
      clock_(clock),
      queue_(queue),
      incarnation_(options_.incarnation),
      route_key_(core::route_key(options_.identity.run)),
      step_started_(core::nanoseconds(clock.now())),
      step_started_mono_(clock.monotonic()),
      opened_(clock.monotonic()),
      deltas_(plan_.config().delta_memory),
      governor_(plan_.config().overhead) {
  sparse_[0].stat = core::SparseStat::delta_l2;
  sparse_[1].stat = core::SparseStat::prev_l2;
  sparse_[2].stat = core::SparseStat::delta_from_step;
  sparse_[3].stat = core::SparseStat::first_bad_index;
  summary_.reserve(kFrameRows);
  scalars_.reserve(kFrameRows);
  step_ends_.reserve(kFrameRows);
  entered_[static_cast<std::size_t>(mode_)] = 1;
  last_heartbeat_ = opened_;
  last_dictionary_ = opened_;

  Name worker;
  worker.type = core::DictionaryType::worker;
  worker.text = options_.identity.worker;
  worker.hash = worker_hash_ = core::name_hash(worker.text);
  worker.attrs = worker_attrs(options_.identity.job, options_.labels);
  by_hash_[worker.hash] = 0;
  names_.push_back(std::move(worker));
}

Session::Name* Session::find(std::uint64_t id) {
  const auto at = by_hash_.find(id);
  return at == by_hash_.end() ? nullptr : &names_[at->second];
}

std::uint64_t Session::name(std::string_view text, const NameInfo& info) {
  const std::lock_guard lock(mutex_);
  Name made;
  made.type = info.type;
  made.dtype = info.dtype;
  made.text = std::string(text);
  made.hash = core::name_hash(text);
  made.dims = info.dims;
  made.role = info.role.value_or(role_by_name(info.type, text));
  made.given_attrs = info.attrs;
  if (info.type == core::DictionaryType::tensor) {
    if (!info.collection.empty()) made.own = plan_.bit(info.collection);
    made.collections = made.own | plan_.collections_of(text, made.role);
    due_known_ = false;
  }
  made.attrs = name_attrs(info.attrs, plan_.names(made.collections));
  unsent_names_ = true;
  const std::uint64_t hash = made.hash;
  if (Name* known = find(hash)) {
    *known = std::move(made);
  } else {
    by_hash_[hash] = names_.size();
    names_.push_back(std::move(made));
  }
  return hash;
}

std::uint64_t Session::collection(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const CollectionMask bit = plan_.bit(name);
  if (bit == 0) return 0;
  const std::uint64_t id = core::name_hash(name);
  collection_ids_[id] = bit;
  due_known_ = false;
  return id;
}

void Session::set_mode(Mode mode) {
  const std::lock_guard lock(mutex_);
  if (mode == mode_ || static_cast<std::size_t>(mode) >= steps_.size()) return;
  // What was logged in an evaluation without step() still makes one batch.
  if (step_open_ && mode_ != Mode::train) finish_step(false, 1);
  flush_rows();
  published_this_step_ = false;
  mode_ = mode;
  const auto index = static_cast<std::size_t>(mode);
  passes_[index] = entered_[index]++;
  step_started_ = core::nanoseconds(clock_.now());
  step_started_mono_ = clock_.monotonic();
  due_known_ = false;
}

CollectionMask Session::due_now() {
  if (!due_known_) {
    due_ = plan_.due(mode_, mode_step(), governor_.stretch(), clock_.monotonic());
    due_known_ = true;
  }
  return due_;
}

CollectionMask Session::mask_of(std::uint64_t collection) const {
  if (collection == 0) return ~CollectionMask{0};
  const auto at = collection_ids_.find(collection);
  return at == collection_ids_.end() ? 0 : at->second;
}

bool Session::due(std::uint64_t collection) {
  const std::lock_guard lock(mutex_);
  const CollectionMask mask = due_now() & mask_of(collection);
  // From here to the end of tensors() the caller works for us: the governor counts it.
  if (mask != 0 && sampling_since_.count() < 0) sampling_since_ = clock_.monotonic();
  return mask != 0;
}

bool Session::due_at(std::uint64_t collection, std::uint32_t ahead) {
  const std::lock_guard lock(mutex_);
  const core::Duration now = clock_.monotonic();
  const CollectionMask mask =
      plan_.due(mode_, mode_step() + ahead, governor_.stretch(), now) & mask_of(collection);
  if (mask != 0 && sampling_since_.count() < 0) sampling_since_ = now;
  return mask != 0;
}

std::size_t Session::tensors(std::span<const LentTensor> tensors) {
  const std::lock_guard lock(mutex_);
  const core::Duration from = sampling_since_.count() >= 0 ? sampling_since_ : clock_.monotonic();
  ensure_started();
  const CollectionMask due = due_now();
  if ((due & plan_.with_delta()) != 0) admit_deltas(tensors);
  std::size_t written = 0;
  for (const LentTensor& tensor : tensors) {
    const Name* known = find(tensor.id);
    if (known == nullptr) {
      ++errors_;
      continue;
    }
    if ((known->collections & due) == 0) continue;
    if (reduce_one(tensor, *known)) ++written;
  }
  if (tensors.size() >= 16) flush_rows();  // one call for all parameters: nothing more will come
  sampling_since_ = core::Duration{-1};
  const core::Duration cost = clock_.monotonic() - from;
  governor_.sampled(cost);
  hook_time_ += cost;
  return written;
}

bool Session::reduce_one(const LentTensor& tensor, const Name& name) {
  const std::uint64_t count = elements(tensor.shape);
  if (count == 0 && (tensor.flags & core::meta::kEmptyHere) == 0) return false;
  if (summary_.size() == kFrameRows) flush_summary();
  const Layout layout = layout_of(tensor.shape, tensor.strides);
  const Dtype dtype = tensor.dtype == Dtype::unknown ? name.dtype : tensor.dtype;
  core::SummaryRow row =
      layout == Layout::strided
          ? collectors::reduce_strided(dtype, tensor.data, tensor.shape, tensor.strides)
          : collectors::reduce(dtype, tensor.data, count);
  row.name = name.hash;
  row.meta |= core::meta::make(dtype, name.role, tensor.flags);
  const auto index = static_cast<std::uint32_t>(summary_.size());
  if (layout != Layout::strided && (name.collections & due_ & plan_.with_delta()) != 0) {
    add_delta(tensor, count, index);
  }
  if (row.non_finite() > 0 && layout == Layout::contiguous) {
    const std::int64_t bad = first_bad_index(dtype, tensor.data, count);
    if (bad >= 0) {
      sparse_[3].rows.push_back(index);
      sparse_[3].values.push_back(static_cast<double>(bad));
    }
  }
  summary_.push_back(row);
  step_open_ = true;
  rows_wait(clock_.monotonic());
  return true;
}

// Smallest tensors first, so that the largest are the ones left out when memory ends.
void Session::admit_deltas(std::span<const LentTensor> tensors) {
  std::vector<std::pair<std::size_t, const Name*>> wanted;
  for (const LentTensor& tensor : tensors) {
    const Name* known = find(tensor.id);
    if (known == nullptr || (known->collections & due_ & plan_.with_delta()) == 0) continue;
    if (deltas_.find(tensor.id) != nullptr || delta_refused_.count(tensor.id) != 0) continue;
    wanted.emplace_back(elements(tensor.shape) * core::size_of(tensor.dtype), known);
  }
  std::sort(wanted.begin(), wanted.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [bytes, known] : wanted) {
    if (bytes == 0 || deltas_.find(known->hash) != nullptr) continue;
    if (!deltas_.admit(known->hash, bytes)) {
      delta_refused_[known->hash] = true;
      delta_left_out_.push_back(known->text);
    }
  }
}

void Session::add_delta(const LentTensor& tensor, std::uint64_t count, std::uint32_t row) {
  DeltaStore::Previous* slot = deltas_.find(tensor.id);
  if (slot == nullptr) return;
  const std::size_t bytes = count * core::size_of(tensor.dtype);
  if (slot->step < 0 || slot->bytes.size() != bytes) {
    deltas_.store(*slot, tensor.data, bytes, mode_step());
    return;
  }
  const collectors::DeltaNorms norms =
      delta_and_store(tensor.dtype, tensor.data, slot->bytes, count);
  const std::array<double, 3> values{norms.delta_l2, norms.prev_l2,
                                     static_cast<double>(slot->step)};
  for (std::size_t i = 0; i < values.size(); ++i) {
    sparse_[i].rows.push_back(row);
    sparse_[i].values.push_back(values[i]);
  }
  slot->step = mode_step();
}

std::size_t Session::statistics(std::span<const core::SummaryRow> rows) {
  const std::lock_guard lock(mutex_);
  const core::Duration from = clock_.monotonic();
  ensure_started();
  std::size_t written = 0;
  for (const core::SummaryRow& given : rows) {
    const Name* known = find(given.name);
    if (known == nullptr) {
      ++errors_;
      continue;
    }
    if (summary_.size() == kFrameRows) flush_summary();
    core::SummaryRow row = given;
    if ((row.meta & 0xff) == 0) row.meta |= static_cast<std::uint64_t>(known->dtype);
    if ((row.meta >> 8 & 0xff) == 0) row.meta |= static_cast<std::uint64_t>(known->role) << 8;
    summary_.push_back(row);
    ++written;
  }
  if (written > 0) {
    step_open_ = true;
    rows_wait(from);
  }
  sampling_since_ = core::Duration{-1};
  const core::Duration cost = clock_.monotonic() - from;
  governor_.sampled(cost);
  hook_time_ += cost;
  return written;
}

void Session::scalars(std::span<const std::uint64_t> ids, std::span<const double> values) {
  const std::lock_guard lock(mutex_);
  const Every& every = plan_.config().scalars;
  if (every.time.count() == 0 && mode_step() % every.steps != 0) return;
  ensure_started();
  const std::int64_t now = core::nanoseconds(clock_.now());
  for (std::size_t i = 0; i < ids.size() && i < values.size(); ++i) {
    const Name* known = find(ids[i]);
    if (known == nullptr) {
      ++errors_;
      continue;
    }
    if (scalars_.size() == kFrameRows) flush_rows();
    scalars_.push_back({ids[i], mode_step(), global_step_, now, values[i],
                        core::meta::make(Dtype::f64, known->role)});
  }
  step_open_ = true;
  rows_wait(clock_.monotonic());
}

void Session::span(std::uint64_t name, std::uint64_t track, std::int64_t start,
                   std::int64_t duration, std::uint64_t args) {
  const std::lock_guard lock(mutex_);
  ensure_started();
  if (spans_.size() == kFrameRows) flush_rows();
  spans_.push_back({name, track, start, duration, mode_step(), args, 0});
  rows_wait(clock_.monotonic());
}

// The sending thread sleeps while nothing waits, and is told when something does.
void Session::rows_wait(core::Duration now) {
  if (waiting_since_.count() >= 0) return;
  waiting_since_ = now;
  queue_.nudge();
}

void Session::step_end(bool optimizer_skipped, std::uint32_t micro_steps) {
  const std::lock_guard lock(mutex_);
  finish_step(optimizer_skipped, micro_steps);
}

void Session::finish_step(bool optimizer_skipped, std::uint32_t micro_steps) {
  ensure_started();
  const std::int64_t now = core::nanoseconds(clock_.now());
  const core::Duration monotonic = clock_.monotonic();
  if (step_ends_.size() == kFrameRows) flush_rows();
  const bool published = published_this_step_ || !summary_.empty();
  flush_summary();
  step_ends_.push_back({mode_step(), global_step_, step_started_, std::max(now, step_started_),
                        micro_steps, optimizer_skipped ? core::meta::kOptimizerSkipped : 0});
  rows_wait(monotonic);
  // Making frames is the sending thread's work, which looks every kBatchTime; here only when it is
  // held up, so that rows wait 100 ms at most.
  if (published || monotonic - waiting_since_ >= 5 * kBatchTime) flush_rows();
  if (due_known_ && due_ != 0) ++sampled_steps_;
  if (mode_ == Mode::train) govern(monotonic);
  ++mode_step();
  ++global_step_;
  step_started_ = now;
  step_started_mono_ = monotonic;
  step_open_ = false;
  published_this_step_ = false;
  due_known_ = false;
  sampling_since_ = core::Duration{-1};
  apply_pending_capture();
}

void Session::resume(const std::array<std::int64_t, 4>& steps, std::int64_t global_step,
                     std::optional<std::int64_t> continues_from) {
  const std::lock_guard lock(mutex_);
  flush_rows();
  for (std::size_t i = 0; i < steps.size(); ++i) steps_[i] = std::max<std::int64_t>(steps[i], 0);
  global_step_ = std::max<std::int64_t>(global_step, 0);
  due_known_ = false;
  started_ = true;
  send_start(continues_from);
}

std::int64_t Session::step() const {
  const std::lock_guard lock(mutex_);
  return steps_[static_cast<std::size_t>(mode_)];
}

}  // namespace tocsin::app::client
