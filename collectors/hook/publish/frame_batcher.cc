#include "collectors/hook/publish/frame_batcher.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/identity.h"
#include "core/topics.h"

namespace tocsin::hook {

FrameBatcher::FrameBatcher(const Identity& identity, std::uint64_t incarnation, NameTable& names,
                           const StepCounter& steps, const core::Clock& clock, SendQueue& queue)
    : identity_(identity),
      incarnation_(incarnation),
      route_key_(core::route_key(identity.run)),
      names_(names),
      steps_(steps),
      clock_(clock),
      queue_(queue) {
  waiting_.summary.reserve(kFrameRows);
  waiting_.scalars.reserve(kFrameRows);
  waiting_.step_ends.reserve(kFrameRows);
}

core::FrameHeader FrameBatcher::header(std::int64_t step, std::int64_t global_step) const {
  core::FrameHeader out;
  out.mode = steps_.mode();
  out.run = identity_.run;
  out.attempt = identity_.attempt;
  out.rank = identity_.rank;
  out.world_size = identity_.world_size;
  out.step = step;
  out.global_step = global_step;
  out.time = core::nanoseconds(clock_.now());
  out.sequence = sequence_;
  out.incarnation = incarnation_;
  out.worker = names_.worker();
  out.pass = steps_.pass();
  out.flags = degraded_ ? core::frame_flag::kDegraded : 0;
  return out;
}

// Finishes the frame in the writer. Its sequence number is used up from here on, also when the
// queue drops it: that is the visible gap.
void FrameBatcher::send(Precedence precedence, std::size_t rows, std::int64_t first_step,
                        std::int64_t last_step) {
  const auto bytes = writer_.finish();
  if (!bytes) {
    ++errors_;
    return;
  }
  ++sequence_;
  rows_ += rows;
  QueuedRecord item;
  item.precedence = precedence;
  item.rows = static_cast<std::uint32_t>(rows);
  item.first_step = first_step;
  item.last_step = last_step;
  item.record.topic = core::topic::kTelemetry;
  item.record.key = route_key_;
  item.record.value.emplace(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  item.record.timestamp = core::nanoseconds(clock_.now());
  if (precedence != Precedence::control) published_ = true;
  queue_.push(std::move(item));
}

// The sending thread sleeps while nothing waits, and is told when something does.
void FrameBatcher::waits() {
  if (waiting_.since.count() >= 0) return;
  waiting_.since = clock_.monotonic();
  queue_.nudge();
}

// The sending thread sleeps for up to kPace, which is long for what ends a training.
void FrameBatcher::hurry() {
  if (!urgent_) queue_.wake();
  urgent_ = true;
}

const Name* FrameBatcher::use(std::uint64_t id) {
  const Name* found = names_.use(id);
  if (found == nullptr) count_error();
  return found;
}

ExtensionRows& FrameBatcher::next_summary() {
  const std::size_t rows = waiting_.summary.size();
  const bool full =
      waiting_.extensions.bytes() + rows * sizeof(core::SummaryRow) >= core::kTargetFrameBytes;
  if (rows == kFrameRows || (rows > 0 && full)) flush();
  waiting_.extensions.begin(static_cast<std::uint32_t>(waiting_.summary.size()));
  return waiting_.extensions;
}

void FrameBatcher::add(const core::SummaryRow& row) {
  if (waiting_.summary.size() == kFrameRows) flush();
  waiting_.summary.push_back(row);
  waits();
  if (row.nan + row.posinf + row.neginf > 0) hurry();
}

void FrameBatcher::add_scalar(const Name& name, double value) {
  if (waiting_.scalars.size() == kFrameRows) flush();
  waiting_.scalars.push_back({name.hash, steps_.step(), steps_.global_step(),
                              core::nanoseconds(clock_.now()), value,
                              core::meta::make(core::Dtype::f64, name.role)});
  if (name.role == core::Role::ledger) ++ledger_scalars_;
  waits();
  if (!std::isfinite(value)) hurry();
}

void FrameBatcher::add_span(std::uint64_t name, std::uint64_t track, std::int64_t start,
                            std::int64_t duration, std::uint64_t args) {
  if (waiting_.spans.size() == kFrameRows) flush();
  waiting_.spans.push_back({name, track, start, duration, steps_.step(), args, 0});
  waits();
}

void FrameBatcher::add_step_end(Moment now, std::uint32_t micro_steps, bool optimizer_skipped) {
  if (waiting_.step_ends.size() == kFrameRows) flush();
  const bool published = published_ || !waiting_.summary.empty();
  // What was logged in earlier steps goes out before these statistics: a rule of one row judges on
  // arrival, and the first thing that went wrong is to be its reason.
  if (!waiting_.summary.empty()) flush();
  const std::int64_t began = steps_.began().wall;
  waiting_.step_ends.push_back({steps_.step(), steps_.global_step(), began,
                                std::max(now.wall, began), micro_steps,
                                optimizer_skipped ? core::meta::kOptimizerSkipped : 0});
  logged_at_step_ = logged_scalars();
  waits();
  // Making frames is the sending thread's work, which looks every kPace; here only when it is held
  // up.
  if (published || now.monotonic - waiting_.since >= kLongestWait) flush();
  step_begins();
}

void FrameBatcher::dictionary(Tell which) {
  names_.tell(which, [this](const std::vector<core::DictionaryEntry>& entries) {
    writer_.dictionary(header(steps_.step(), steps_.global_step()), entries);
    send(Precedence::control, entries.size(), steps_.step(), steps_.step());
  });
}

void FrameBatcher::lifecycle(const core::Lifecycle& lifecycle) {
  writer_.lifecycle(header(steps_.step(), steps_.global_step()),
                    ingest::encode_lifecycle(lifecycle));
  send(Precedence::control, 1, steps_.step(), steps_.step());
}

// Ends of earlier steps go out before rows of the present one; add_step_end() sends the rows of its
// own step before it adds its end.
void FrameBatcher::flush() {
  dictionary(Tell::fresh);
  flush_scalars();
  flush_spans();
  flush_step_ends();
  flush_summary();
  waiting_.since = core::Duration{-1};
  urgent_ = false;
}

void FrameBatcher::flush_if_due(core::Duration now) {
  const auto left = due_in(now);
  if (!left || left->count() > 0) return;
  looked_ = now;
  flush();
}

std::optional<core::Duration> FrameBatcher::due_in(core::Duration now) const {
  if (waiting_.since.count() < 0) return std::nullopt;
  const core::Duration pace = urgent_ ? kUrgentPace : kPace;
  const core::Duration due = std::max(waiting_.since + kBatchTime, looked_ + pace);
  return std::max(due - now, core::Duration{0});
}

void FrameBatcher::flush_summary() {
  if (waiting_.summary.empty()) return;
  dictionary(Tell::fresh);
  writer_.summary(header(steps_.step(), steps_.global_step()), waiting_.summary);
  waiting_.extensions.write(writer_);
  send(Precedence::statistics, waiting_.summary.size(), steps_.step(), steps_.step());
  waiting_.summary.clear();
}

void FrameBatcher::flush_scalars() {
  if (waiting_.scalars.empty()) return;
  const core::ScalarRow& last = waiting_.scalars.back();
  writer_.scalars(header(last.step, last.global_step), waiting_.scalars);
  scalar_rows_ += waiting_.scalars.size();
  send(Precedence::scalars, waiting_.scalars.size(), waiting_.scalars.front().step, last.step);
  waiting_.scalars.clear();
}

void FrameBatcher::flush_spans() {
  if (waiting_.spans.empty()) return;
  writer_.spans(header(steps_.step(), steps_.global_step()), waiting_.spans);
  send(Precedence::statistics, waiting_.spans.size(), waiting_.spans.front().step,
       waiting_.spans.back().step);
  waiting_.spans.clear();
}

void FrameBatcher::flush_step_ends() {
  if (waiting_.step_ends.empty()) return;
  const core::StepEndRow& last = waiting_.step_ends.back();
  writer_.step_ends(header(last.step, last.global_step), waiting_.step_ends);
  send(Precedence::control, waiting_.step_ends.size(), waiting_.step_ends.front().step, last.step);
  waiting_.step_ends.clear();
}

}  // namespace tocsin::hook
