#include "app/api/stream_poll.h"

#include "core/json.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kPollBytes = 64 * 1024;

}  // namespace

HttpStream::Piece StreamPoll::take() {
  const core::MutexLock lock(hub_->mutex_);
  hub_->heard(this);
  const bool lost = !hub_->ring_.empty() && sent_ + 1 < hub_->ring_.front().number;
  if (lost) {  // while it waited for the io thread
    reset_ = "what came since is not kept";
    sent_ = hub_->newest_;
  }
  std::string events;
  while (!hub_->ring_.empty() && sent_ < hub_->ring_.back().number && events.size() < kPollBytes) {
    const auto& event =
        hub_->ring_[static_cast<std::size_t>(sent_ + 1 - hub_->ring_.front().number)];
    sent_ = event.number;
    if (!filter_.takes(event.type, event.runs)) continue;
    events += (events.empty() ? "" : ",") + StreamHub::as_json(event);
  }
  if (events.empty() && reset_.empty() && !at_once_) return {};
  return {body(events), true};
}

std::string StreamPoll::idle() const { return body({}); }

std::string StreamPoll::body(std::string_view events) const {
  return "{\"store\":" + core::to_json(hub_->store_) +
         ",\"cursor\":" + core::to_json(hub_->store_ + "-" + std::to_string(sent_)) +
         ",\"as_of\":" + core::to_json(core::to_rfc3339(hub_->clock_.now())) +
         ",\"reset\":" + (reset_.empty() ? "null" : core::to_json(reset_)) + ",\"events\":[" +
         std::string(events) + "]}\n";
}

}  // namespace tocsin::app
