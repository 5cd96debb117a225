#include "app/stages/deliver.h"

#include <algorithm>
#include <utility>

#include "app/view/dead_letter_records.h"
#include "app/view/events_log.h"
#include "core/topics.h"
#include "ingest/ingest.h"

namespace tocsin::app {

DeliverStage::DeliverStage(DeliverOptions options, CallerFactory callers,
                           std::function<bool()> may_start, actions::DeliveryLanes::Random random,
                           core::Log& log, core::Telemetry& telemetry)
    : options_(std::move(options)),
      callers_(std::move(callers)),
      may_start_(std::move(may_start)),
      random_(std::move(random)),
      log_(log),
      telemetry_(telemetry),
      threads_(telemetry.gauge("tocsin_router_delivery_threads", "threads that carry calls out")) {
  wiring_.name = "deliver";
  wiring_.part = "router";
  wiring_.group = options_.topic_prefix + "-deliver";
  wiring_.topics = {core::topic::kRouterOutbox, core::topic::kRouterControl};
  wiring_.transactional_id = options_.topic_prefix + "-deliver";
  wiring_.writer = "deliver";
  wiring_.state_topic = core::topic::kRouterDeliveries;
  wiring_.state = StateScope::whole;
  wiring_.leader = true;
  wiring_.fetch_wait = std::chrono::milliseconds(100);  // what comes ends it at once
  wiring_.batch = 256;
}

DeliverStage::~DeliverStage() = default;

core::Status DeliverStage::open(const Instant& now) {
  since_.reset();
  if (!std::exchange(too_short_, false)) since_ = now.wall - kHistory;
  // Calls under way belong to lanes that are gone; their threads end with them.
  if (caller_ && caller_->in_flight() > 0) retired_.push_back(std::move(caller_));
  lanes_ = std::make_unique<actions::DeliveryLanes>(options_.lanes, random_, telemetry_);
  caller_ = callers_();
  started_ = ending_ = false;
  unreported_.clear();
  outbox_.clear();
  orders_read_.reset();
  return core::ok();
}

std::optional<core::WallTime> DeliverStage::state_since(const Instant& /*now*/) const {
  return since_;
}

core::Status DeliverStage::restore(std::int32_t /*partition*/, const core::RecordView& record) {
  const auto delivery = ingest::decode_delivery(record);
  if (!delivery) return delivery.error();
  lanes_->restore(*delivery);
  return core::ok();
}

core::Result<std::vector<core::Position>> DeliverStage::restored(
    std::int32_t /*partition*/, std::span<const core::Position> committed, const Instant& /*now*/) {
  std::vector<core::Position> out;
  for (const core::Position& one : committed) {
    if (one.where.stream == core::topic::kRouterControl) out.push_back({one.where, 0});
  }
  return out;
}

void DeliverStage::started(std::int32_t partition, const Instant& /*now*/) {
  outbox_.insert(partition);
  started_ = true;
}

std::optional<Refusal> DeliverStage::handle(const core::RecordView& record,
                                            const StageContext& context) {
  if (record.topic == core::topic::kRouterControl) return obey(record, context);
  // Kafka deletes by whole segments and clocks can be wrong: of this one nobody knows whether it
  // was delivered. Nor is what stands behind it taken: positions would pass it.
  too_short_ = too_short_ || (since_ && core::wall_time(record.timestamp) < *since_ + kClockDoubt);
  if (too_short_) return std::nullopt;
  auto notification = ingest::open_notification(record);
  if (!notification) return Refusal{"bad_notification", notification.error().message};
  lanes_->enqueue(std::move(*notification), context.now.wall,
                  core::Position{{std::string(record.stream), record.partition}, record.offset},
                  std::string(record.header(actions::kReplayHeader).value_or("")));
  return std::nullopt;
}

// Keys of other kinds are the router's, which also refuses those of none.
std::optional<Refusal> DeliverStage::obey(const core::RecordView& record,
                                          const StageContext& context) {
  orders_read_ = core::Position{{std::string(record.stream), record.partition}, record.offset + 1};
  const std::string_view key = record.key.value_or("");
  if (!actions::is_endpoint_key(key)) return std::nullopt;
  const auto value = record.tombstone ? std::nullopt : std::optional(record.text());
  const auto order = actions::read_endpoint_order(key, value);
  if (!order) return Refusal{"bad_control", order.error().message};
  // What is done once was done before the restart.
  if (context.replaying && !order->lasts()) return std::nullopt;
  const bool known = lanes_->order(*order, context.now.wall);
  if (!context.replaying) {
    log_.info("endpoint_ordered", {{"integration", order->integration},
                                   {"do", std::string(to_string(order->deed))},
                                   {"by", order->by},
                                   {"comment", order->comment},
                                   {"known", known}});
  }
  return std::nullopt;
}

void DeliverStage::collect(core::WallTime now) {
  for (auto& [attempt, outcome] : caller_->take()) {
    if (outcome) {
      lanes_->finished(attempt, *outcome, now);
    } else {
      lanes_->not_started(attempt, now);
    }
  }
  std::erase_if(retired_, [](const auto& caller) {
    (void)caller->take();  // what came too late is told by the next attempt's record
    return caller->in_flight() == 0;
  });
}

std::optional<core::Duration> DeliverStage::tick(const StageTick& tick) {
  const core::WallTime now = tick.now.wall;
  if (tick.now.steady - measured_ >= std::chrono::seconds(1)) {
    measured_ = tick.now.steady;
    lanes_->measure(now);
    std::size_t threads = caller_->threads();
    for (const auto& caller : retired_) threads += caller->threads();
    threads_.set(static_cast<double>(threads));
    for (const std::int32_t partition : outbox_) {
      const auto read = tick.read_until(partition);
      const core::Duration behind =
          read && !tick.live(partition) ? tick.now.steady - *read : core::Duration::zero();
      telemetry_
          .gauge("tocsin_router_outbox_lag_seconds",
                 "how far behind the newest decision delivery is; 0: it has read all",
                 {{"stage", "deliver"}, {"partition", std::to_string(partition)}})
          .set(std::chrono::duration<double>(behind).count());
    }
  }
  const auto deadline = lanes_->next_deadline(now);
  if (!deadline || !started_ || ending_) return std::nullopt;
  return tick.now.steady + std::max<core::Duration>(*deadline - now, std::chrono::milliseconds(1));
}

StageOutput DeliverStage::take(const Instant& now) {
  StageOutput out;
  if (!lanes_) return out;
  collect(now.wall);
  if (started_ && !ending_ && may_start_()) {
    while (auto attempt = lanes_->next(now.wall)) caller_->submit(std::move(*attempt));
  }
  auto batch = lanes_->take();
  for (auto& delivery : batch.deliveries) {
    out.records.push_back({0, ingest::encode_delivery(delivery, now.wall, options_.cluster)});
    unreported_.add(std::move(delivery));
  }
  for (const auto& issue : batch.issues) out.records.push_back({0, ingest::encode_issue(issue)});
  for (auto& record : batch.records) out.records.push_back({0, std::move(record)});
  for (const auto& one : batch.dead) {
    out.records.push_back({0, dead_letter_record(*one.notification, one.end, now.wall)});
  }
  out.positions = std::move(batch.positions);
  if (orders_read_) out.positions->push_back(*std::exchange(orders_read_, std::nullopt));
  return out;
}

void DeliverStage::committed(const Instant& /*now*/) {
  unreported_.committed([this](const core::Delivery& delivery) { log_delivery(log_, delivery); });
}

void DeliverStage::finish(const Instant& /*now*/) { ending_ = true; }

bool DeliverStage::busy() const { return caller_ && caller_->in_flight() > 0; }

}  // namespace tocsin::app
