#include "app/client/sender.h"

#include <algorithm>
#include <utility>

namespace tocsin::app::client {
namespace {

using std::chrono::milliseconds;

constexpr auto kTryAgainAfter = std::chrono::seconds(1);
constexpr auto kCheckDelivery = std::chrono::seconds(5);
constexpr auto kLongestWait = std::chrono::seconds(5);  // woken earlier by whatever comes

// A record is offered again when the other side may take it later.
bool worth_waiting(const core::Error& error) {
  return error.retryable() || error.code == core::Code::not_found;
}

}  // namespace

Sender::Sender(Endpoints& endpoints, Session& session, SendQueue& queue, const core::Clock& clock,
               Trouble& trouble)
    : endpoints_(endpoints), session_(session), queue_(queue), clock_(clock), trouble_(trouble) {}

bool Sender::open() {
  if (publisher_ != nullptr) return true;
  const core::Duration now = clock_.monotonic();
  if (now < try_again_) return false;
  try_again_ = now + kTryAgainAfter;
  auto opened = endpoints_.publisher();
  if (!opened) {
    trouble_.set(opened.error().message);
    return false;
  }
  trouble_.clear();
  try_again_ = core::Duration{0};
  publisher_ = *std::move(opened);
  return true;
}

// A record that the publisher took and could not deliver in its own time is told of here only.
void Sender::check_delivery() {
  const core::Duration now = clock_.monotonic();
  if (publisher_ == nullptr || now < check_again_) return;
  check_again_ = now + kCheckDelivery;
  const auto delivered = publisher_->flush(milliseconds{0});
  if (delivered) {
    confirmed_ = sent_.load();
    unconfirmed_.confirmed();
  }
  if (delivered || delivered.error().code == core::Code::deadline_exceeded) return;
  // Which ones it was the publisher does not say: all that were not confirmed may be gone.
  lost_ += sent_ - confirmed_;
  confirmed_ = sent_.load();
  trouble_.set(delivered.error().message);
  session_.delivery_failed(delivered.error().message);
}

core::Duration Sender::turn() {
  check_delivery();
  // Before the look, so that what comes after it is not slept over.
  queue_.going_idle(true);
  const core::Duration next = session_.tick();
  if (next <= Session::kBatchTime) queue_.going_idle(false);
  stuck_ = !open() || !publish_all();
  if (!stuck_) return std::min<core::Duration>(next, kLongestWait);
  const core::Duration again = try_again_ - clock_.monotonic();
  return std::min<core::Duration>(next, std::max<core::Duration>(again, kStuckWait));
}

bool Sender::publish_all() {
  if (clock_.monotonic() < try_again_ && stuck_) return false;
  while (auto item = queue_.pop()) {
    const auto published = publisher_->publish(item->record);
    if (published) {
      ++sent_;
      if (endpoints_.spool) unconfirmed_.keep(item->record);
      continue;
    }
    trouble_.set(published.error().message);
    if (!worth_waiting(published.error())) {
      queue_.count_lost(*item);
      continue;
    }
    // A missing topic will not appear within milliseconds; a full queue may empty.
    const bool full = published.error().code == core::Code::resource_exhausted;
    try_again_ =
        clock_.monotonic() + (full ? core::Duration(kStuckWait) : core::Duration(kTryAgainAfter));
    queue_.put_back(*std::move(item));
    return false;
  }
  return true;
}

bool Sender::flush(core::Duration timeout) {
  session_.flush();
  if (!open() || !publish_all()) return false;
  const auto left = std::chrono::duration_cast<milliseconds>(std::max(timeout, core::Duration{0}));
  const bool delivered = publisher_->flush(left).has_value();
  if (delivered) {
    confirmed_ = sent_.load();
    unconfirmed_.confirmed();
  }
  return delivered;
}

std::uint64_t Sender::spool_left() {
  if (!endpoints_.spool) return 0;
  constexpr auto kFlush = milliseconds(1500);
  Spool spool(endpoints_.spool_directory, endpoints_.spool);
  const auto again = unconfirmed_.take();
  bool kept = true;
  for (const core::OutRecord& record : again) kept = kept && spool.add(record);
  while (auto item = queue_.pop()) {
    if (kept && spool.add(item->record)) continue;
    kept = false;
    queue_.count_lost(*item);
  }
  if (!spool.flush(kFlush)) kept = false;
  if (!kept) trouble_.set("spool " + spool.directory() + ": " + spool.trouble());
  if (!kept && spool.records() == 0) return 0;
  // Those may have arrived all the same; they are told as spooled, not as unconfirmed.
  confirmed_ += std::min<std::uint64_t>(again.size(), sent_ - confirmed_);
  return spool.records();
}

}  // namespace tocsin::app::client
