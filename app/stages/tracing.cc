#include "app/stages/tracing.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/topics.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostSpansWaiting = 20'000;
constexpr std::size_t kSpansPerParcel = 512;
constexpr std::size_t kMostEarly = 10'000;
constexpr core::Duration kMessageComes = 5s;
constexpr core::Duration kFirstRetry = 1s;
constexpr core::Duration kLastRetry = 1min;

core::Counter& span_counter(core::Telemetry& telemetry, std::string_view result) {
  return telemetry.counter("tocsin_router_spans_total", "spans of messages, by what became of them",
                           {{"result", result}});
}

}  // namespace

TracingStage::TracingStage(MakeCourier courier, core::Log& log, core::Telemetry& telemetry)
    : make_courier_(std::move(courier)),
      log_(log),
      sent_(span_counter(telemetry, "sent")),
      dropped_(span_counter(telemetry, "dropped")) {
  wiring_.name = "tracing";
  wiring_.part = "router";
  wiring_.topics = {core::topic::kRouterOutbox, core::topic::kRouterDeliveries};
  wiring_.newest_only = true;
  wiring_.leader = true;
  wiring_.writes = false;
  wiring_.fetch_wait = 200ms;  // what comes ends it at once
  wiring_.patience = 200ms;    // spans are sent later and in batches
}

core::Status TracingStage::open(const Instant& /*now*/) {
  spans_.clear();
  waiting_.clear();
  early_.clear();
  under_way_ = false;
  retry_at_ = backoff_ = {};
  courier_ = make_courier_();
  return core::ok();
}

// What cannot be read is told by who reads it for its work.
std::optional<Refusal> TracingStage::handle(const core::RecordView& record,
                                            const StageContext& context) {
  if (record.tombstone) return std::nullopt;
  if (record.header("ce_type") == ingest::event_type::kDelivery) {
    auto delivery = ingest::decode_delivery(record);
    if (!delivery) return std::nullopt;
    if (spans_.knows(delivery->notification_id) || early_.size() >= kMostEarly) {
      if (auto span = spans_.of(*delivery)) wait_for_sending(std::move(*span));
    } else {
      early_.push_back({std::move(*delivery), context.now.steady + kMessageComes});
    }
  } else if (auto notification = ingest::open_notification(record)) {
    for (actions::Span& span : spans_.of(std::move(*notification))) {
      wait_for_sending(std::move(span));
    }
  }
  return std::nullopt;
}

void TracingStage::wait_for_sending(actions::Span span) {
  if (waiting_.size() >= kMostSpansWaiting) {
    waiting_.pop_front();
    drop(1, trouble_.empty() ? "they come faster than they are taken" : trouble_);
  }
  waiting_.push_back(std::move(span));
}

/// Said once for each reason: a collector that is away for a night fills no log.
void TracingStage::drop(std::size_t count, const std::string& why) {
  dropped_.add(static_cast<double>(count));
  if (said_ == why) return;
  said_ = why;
  log_.warn("spans_dropped", {{"reason", why}});
}

void TracingStage::release_early(core::Duration now) {
  std::deque<Early> still;
  for (Early& one : early_) {
    if (one.until > now && !spans_.knows(one.delivery.notification_id)) {
      still.push_back(std::move(one));
    } else if (auto span = spans_.of(one.delivery)) {
      wait_for_sending(std::move(*span));
    }
  }
  early_ = std::move(still);
}

void TracingStage::take_answer(const Instant& now) {
  auto answer = courier_->take();
  if (!answer) return;
  under_way_ = false;
  const std::size_t count = answer->spans.size();
  const std::string& words = answer->answer.words;
  switch (answer->answer.taken) {
    case actions::SpansTaken::all:
      sent_.add(static_cast<double>(count));
      backoff_ = {};
      if (!trouble_.empty()) log_.info("spans_sent_again", {});
      trouble_.clear();
      said_.clear();
      if (!words.empty()) log_.warn("spans_rejected", {{"reason", words}});
      break;
    case actions::SpansTaken::refused:
      drop(count, words);
      break;
    case actions::SpansTaken::later:
      if (trouble_.empty()) log_.warn("spans_not_sent", {{"reason", words}});
      trouble_ = words.empty() ? "the collector cannot be reached" : words;
      backoff_ = backoff_ == core::Duration{} ? kFirstRetry : std::min(2 * backoff_, kLastRetry);
      retry_at_ = now.steady + backoff_;
      waiting_.insert(waiting_.begin(), std::make_move_iterator(answer->spans.begin()),
                      std::make_move_iterator(answer->spans.end()));
      break;
  }
}

std::optional<core::Duration> TracingStage::tick(const StageTick& tick) {
  if (courier_ == nullptr) return std::nullopt;  // we end
  release_early(tick.now.steady);
  take_answer(tick.now);
  if (under_way_ || waiting_.empty()) return std::nullopt;
  if (retry_at_ > tick.now.steady) return retry_at_;
  const auto count = static_cast<std::ptrdiff_t>(std::min(waiting_.size(), kSpansPerParcel));
  std::vector<actions::Span> parcel(std::make_move_iterator(waiting_.begin()),
                                    std::make_move_iterator(waiting_.begin() + count));
  waiting_.erase(waiting_.begin(), waiting_.begin() + count);
  under_way_ = true;
  courier_->submit(std::move(parcel));
  return std::nullopt;
}

StageOutput TracingStage::take(const Instant& /*now*/) { return {}; }

// Another leader tells from now on.
void TracingStage::finish(const Instant& /*now*/) {
  courier_.reset();
  under_way_ = false;
  waiting_.clear();
  early_.clear();
}

}  // namespace tocsin::app
