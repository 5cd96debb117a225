#include "collectors/hook/publish/sender.h"

#include <algorithm>
#include <utility>

#include "core/topics.h"

namespace tocsin::hook {
namespace {

using std::chrono::milliseconds;

constexpr auto kTryAgainAfter = std::chrono::seconds(1);
constexpr auto kCheckDelivery = std::chrono::seconds(5);
constexpr auto kSpoolFlush = milliseconds(1000);
constexpr auto kLastFlush = milliseconds(1500);
constexpr auto kConfirm = milliseconds(1000);
constexpr auto kLongestWait = std::chrono::seconds(5);  // woken earlier by whatever comes

// A record is offered again when the other side may take it later.
bool worth_waiting(const core::Error& error) {
  return error.retryable() || error.code == core::Code::not_found;
}

// A missing topic will not appear within milliseconds; a full queue may empty.
core::Duration wait_for(const core::Error& error) {
  return error.code == core::Code::resource_exhausted ? core::Duration(Sender::kStuckWait)
                                                      : core::Duration(kTryAgainAfter);
}

}  // namespace

Sender::Sender(Endpoints& endpoints, Session& session, SendQueue& queue, const core::Clock& clock,
               Trouble& trouble)
    : endpoints_(endpoints),
      session_(session),
      queue_(queue),
      clock_(clock),
      trouble_(trouble),
      spool_(endpoints.spool) {}

bool Sender::open() {
  if (publisher_ != nullptr) return true;
  const core::Duration now = clock_.monotonic();
  if (now < try_again_) return false;
  try_again_ = now + kTryAgainAfter;
  auto opened = endpoints_.publisher();
  if (!opened) {
    trouble_.set(opened.error().message);
    if (!away_since_) away_since_ = now;
    return false;
  }
  trouble_.clear();
  away_since_.reset();
  try_again_ = core::Duration{0};
  settled_at_ = clock_.monotonic();
  publisher_ = *std::move(opened);
  return true;
}

// Everything that was sent is delivered.
void Sender::settle() {
  confirmed_ += sent_ - settled_;
  settled_ = sent_.load();
  settled_at_ = clock_.monotonic();
  unconfirmed_.confirmed();
  spool_.confirmed();
}

// A record that the publisher took and could not deliver in its own time is told of here only.
void Sender::check_delivery() {
  const core::Duration now = clock_.monotonic();
  if (publisher_ == nullptr || now < check_again_) return;
  check_again_ = now + kCheckDelivery;
  const auto delivered = publisher_->flush(milliseconds{0});
  if (delivered) return settle();
  const core::Error& why = delivered.error();
  if (why.code == core::Code::deadline_exceeded) {
    // While rows come something is always on its way: only who does not answer is away.
    const bool doubtful = now - settled_at_ >= kPatience && spool_.there() && endpoints_.answers;
    if (doubtful && !endpoints_.answers()) go_away(why.message);
    return;
  }
  if (spool_.there() && why.retryable()) return go_away(why.message);
  // Which ones it was the publisher does not say: all that were not confirmed may be gone.
  lost_ += sent_ - settled_;
  settled_ = sent_.load();
  unconfirmed_.confirmed();
  spool_.confirmed();
  trouble_.set(why.message);
  session_.delivery_failed(why.message);
}

// What is not confirmed is in the spool again, in its place; what is no telemetry waits in memory.
void Sender::take_back() {
  std::uint64_t kept = spool_.rewind();
  for (core::OutRecord& record : unconfirmed_.take()) {
    if (record.topic != core::topic::kTelemetry) {
      if (acks_.size() < kMostAcks) acks_.push_back(std::move(record));
      ++kept;
    } else if (spool_.add(record)) {
      ++kept;
    }
  }
  const std::uint64_t open = sent_ - settled_;
  lost_ += open - std::min(open, kept);
  settled_ = sent_.load();
}

// The publisher goes with what it holds: all of that is taken back. Its other users (commands) keep
// it until they are through.
void Sender::go_away(const std::string& why) {
  const std::uint64_t lost = lost_;
  take_back();
  publisher_.reset();
  const core::Duration now = clock_.monotonic();
  away_since_ = now - kPatience;
  try_again_ = now + kTryAgainAfter;
  stuck_ = true;
  trouble_.set(why);
  if (lost_ != lost) session_.delivery_failed(why);
}

void Sender::queue_to_spool() {
  while (auto item = queue_.pop()) {
    if (item->record.topic != core::topic::kTelemetry) {
      if (acks_.size() < kMostAcks) acks_.push_back(std::move(item->record));
      continue;
    }
    if (spool_.add(item->record)) continue;
    // What finds no room there stays in the queue, which knows what to drop.
    queue_.put_back(*std::move(item));
    break;
  }
  (void)spool_.flush(kSpoolFlush);
}

// The other side answers again: what waits on the disk goes first, and what has come meanwhile behind it.
bool Sender::come_back() {
  if (clock_.monotonic() < try_again_ && stuck_) return false;
  queue_to_spool();
  core::Status why;
  const auto all = spool_.replay([&](const core::OutRecord& record) {
    why = core::ok();
    if (!publish(record, why)) return why;
    return core::ok();
  });
  if (!all) {
    lost_ += spool_.abandon();
    trouble_.set("spool " + spool_.directory() + ": " + all.error().message);
    session_.delivery_failed(all.error().message);
    return true;
  }
  if (!*all) {
    try_again_ = clock_.monotonic() + (why ? core::Duration(kStuckWait) : wait_for(why.error()));
    if (!why) trouble_.set(why.error().message);
    return false;
  }
  if (!publisher_->flush(kConfirm)) return false;
  settle();
  return spool_.waiting() == 0;
}

core::Duration Sender::turn() {
  check_delivery();
  // Before the look, so that what comes after it is not slept over.
  queue_.going_idle(true);
  const core::Duration next = session_.tick();
  if (next <= Session::kPace) queue_.going_idle(false);
  stuck_ = !send();
  if (!stuck_) return std::min<core::Duration>(next, kLongestWait);
  const core::Duration again = try_again_ - clock_.monotonic();
  return std::min<core::Duration>(next, std::max<core::Duration>(again, kStuckWait));
}

bool Sender::send() {
  if (!open()) {
    const bool long_enough = away_since_ && clock_.monotonic() - *away_since_ >= kPatience;
    if (spool_.there() && long_enough) queue_to_spool();
    return false;
  }
  if (spool_.waiting() > 0 && !come_back()) return false;
  return publish_all();
}

// False: it may be taken later, `why` says when. What can never be taken is counted and passed over.
bool Sender::publish(const core::OutRecord& record, core::Status& why) {
  why = publisher_->publish(record);
  if (why) {
    ++sent_;
    return true;
  }
  if (worth_waiting(why.error())) return false;
  trouble_.set(why.error().message);
  ++lost_;
  return true;
}

bool Sender::publish_all() {
  if (clock_.monotonic() < try_again_ && stuck_) return false;
  core::Status why;
  while (!acks_.empty()) {
    if (!publish(acks_.front(), why)) break;
    acks_.pop_front();
  }
  while (auto item = queue_.pop()) {
    const auto published = publisher_->publish(item->record);
    if (published) {
      ++sent_;
      if (spool_.there()) unconfirmed_.keep(item->record);
      continue;
    }
    trouble_.set(published.error().message);
    if (!worth_waiting(published.error())) {
      queue_.count_lost(*item);
      continue;
    }
    try_again_ = clock_.monotonic() + wait_for(published.error());
    queue_.put_back(*std::move(item));
    return false;
  }
  return true;
}

bool Sender::flush(core::Duration timeout) {
  session_.flush();
  if (!send()) return false;
  const auto left = std::chrono::duration_cast<milliseconds>(std::max(timeout, core::Duration{0}));
  const bool delivered = publisher_->flush(left).has_value();
  if (delivered) settle();
  return delivered;
}

void Sender::release() {
  publisher_.reset();
  spool_.release();
}

void Sender::spool_left() {
  if (!spool_.there()) return;
  take_back();
  while (auto item = queue_.pop()) {
    if (item->record.topic != core::topic::kTelemetry || spool_.add(item->record)) continue;
    queue_.count_lost(*item);
  }
  const bool written = spool_.flush(kLastFlush);
  if (written && spool_.trouble().empty()) return;
  trouble_.set("spool " + spool_.directory() + ": " +
               (spool_.trouble().empty() ? "the disk is slow" : spool_.trouble()));
}

}  // namespace tocsin::hook
