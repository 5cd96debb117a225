// Session: from rows that wait to frames on the queue.
#include <algorithm>
#include <utility>

#include "app/client/session.h"

namespace tocsin::app::client {
namespace {

// Dictionary frames end well before the size a record may have.
constexpr std::size_t kDictionaryBytes = core::kTargetFrameBytes;

}  // namespace

core::FrameHeader Session::header(std::int64_t step, std::int64_t global_step) {
  core::FrameHeader out;
  const Identity& identity = options_.identity;
  out.mode = mode_;
  out.run = identity.run;
  out.attempt = identity.attempt;
  out.rank = identity.rank;
  out.world_size = identity.world_size;
  out.step = step;
  out.global_step = global_step;
  out.time = core::nanoseconds(clock_.now());
  out.sequence = sequence_;
  out.incarnation = incarnation_;
  out.worker = worker_hash_;
  out.pass = passes_[static_cast<std::size_t>(mode_)];
  out.flags = governor_.stretch() > 1 ? core::frame_flag::kDegraded : 0;
  return out;
}

// Finishes the frame in the writer. Its sequence number is used up from here on, also when the
// queue drops it: that is the visible gap.
void Session::send(Lane lane, std::size_t rows, std::int64_t first_step, std::int64_t last_step) {
  const auto bytes = writer_.finish();
  if (!bytes) {
    ++errors_;
    return;
  }
  ++sequence_;
  rows_ += rows;
  QueuedRecord item;
  item.lane = lane;
  item.rows = static_cast<std::uint32_t>(rows);
  item.first_step = first_step;
  item.last_step = last_step;
  item.record.topic = "telemetry";
  item.record.key = route_key_;
  item.record.value.emplace(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  item.record.timestamp = core::nanoseconds(clock_.now());
  if (lane != Lane::control) published_this_step_ = true;
  queue_.push(std::move(item));
}

void Session::send_dictionary(bool again) {
  if (!unsent_names_ && !again) return;
  std::vector<core::DictionaryEntry> entries;
  std::size_t bytes = 0;
  const auto send_entries = [&] {
    if (entries.empty()) return;
    writer_.dictionary(header(mode_step(), global_step_), entries);
    send(Lane::control, entries.size(), mode_step(), mode_step());
    entries.clear();
    bytes = 0;
  };
  for (Name& name : names_) {
    if (name.sent && !again) continue;
    name.sent = true;
    core::DictionaryEntry entry;
    entry.hash = name.hash;
    entry.type = name.type;
    entry.dtype = name.dtype;
    entry.role = name.role;
    entry.dims_bytes = std::as_bytes(std::span<const std::int64_t>(name.dims));
    entry.name = name.text;
    entry.attrs = name.attrs;
    entries.push_back(entry);
    bytes += 32 + entry.dims_bytes.size() + entry.name.size() + entry.attrs.size();
    if (bytes >= kDictionaryBytes || entries.size() >= kFrameRows) send_entries();
  }
  send_entries();
  unsent_names_ = false;
}

// Ends of earlier steps go out before rows of the present one; finish_step() sends the rows of its
// own step before it adds its end.
void Session::flush_rows() {
  send_dictionary(false);
  flush_scalars();
  flush_spans();
  flush_step_ends();
  flush_summary();
  waiting_since_ = core::Duration{-1};
}

void Session::flush_summary() {
  if (summary_.empty()) return;
  send_dictionary(false);
  writer_.summary(header(mode_step(), global_step_), summary_);
  for (Sparse& sparse : sparse_) {
    if (!sparse.rows.empty()) writer_.sparse_column(sparse.stat, {}, sparse.rows, sparse.values);
    sparse.rows.clear();
    sparse.values.clear();
  }
  send(Lane::statistics, summary_.size(), mode_step(), mode_step());
  summary_.clear();
}

void Session::flush_scalars() {
  if (scalars_.empty()) return;
  const core::ScalarRow& last = scalars_.back();
  writer_.scalars(header(last.step, last.global_step), scalars_);
  send(Lane::scalars, scalars_.size(), scalars_.front().step, last.step);
  scalars_.clear();
}

void Session::flush_spans() {
  if (spans_.empty()) return;
  writer_.spans(header(mode_step(), global_step_), spans_);
  send(Lane::statistics, spans_.size(), spans_.front().step, spans_.back().step);
  spans_.clear();
}

void Session::flush_step_ends() {
  if (step_ends_.empty()) return;
  const core::StepEndRow& last = step_ends_.back();
  writer_.step_ends(header(last.step, last.global_step), step_ends_);
  send(Lane::control, step_ends_.size(), step_ends_.front().step, last.step);
  step_ends_.clear();
}

void Session::flush() {
  const std::lock_guard lock(mutex_);
  flush_rows();
}

}  // namespace tocsin::app::client
