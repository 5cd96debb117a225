#include "app/deliver_role.h"

#include <algorithm>
#include <random>
#include <thread>

#include "app/events_log.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBatch = 256;
constexpr core::Duration kFirstBackoff = 50ms;
constexpr core::Duration kMaxBackoff = 5s;
constexpr const char* kDeliveries = "router-deliveries";

}  // namespace

DeliverRole::DeliverRole(ingest::Transport& transport, DeliverRoleOptions options,
                         const Actions& actions, actions::IssueMetrics& issue_metrics,
                         core::Clock& clock, core::Log& log, core::Telemetry& telemetry)
    : transport_(transport),
      options_(std::move(options)),
      actions_(actions),
      issue_metrics_(issue_metrics),
      clock_(clock),
      log_(log),
      telemetry_(telemetry),
      wall_anchor_(clock.now()),
      monotonic_anchor_(clock.monotonic()) {}

DeliverRole::~DeliverRole() = default;

core::WallTime DeliverRole::now() const {
  return wall_anchor_ + (clock_.monotonic() - monotonic_anchor_);
}

core::Status DeliverRole::open() {
  auto random = std::make_shared<std::mt19937_64>(std::random_device{}());
  lanes_ = std::make_unique<actions::DeliveryLanes>(
      options_.lanes, [random] { return std::uniform_real_distribution<double>(0, 1)(*random); },
      telemetry_);
  ingest::SourceOptions source;
  source.group = options_.topic_prefix + "-deliver";
  source.topics = {"router-outbox"};
  source.listener = this;
  source.own_writer = "deliver";
  auto opened = transport_.source(source);
  if (!opened) return opened.error();
  source_ = std::move(*opened);
  ingest::PublisherOptions publisher;
  publisher.writer = "deliver";
  publisher.transactional_id = options_.topic_prefix + "-deliver";
  publisher.source = source_.get();
  publisher.durable = true;
  auto made = transport_.publisher(publisher);
  if (!made) return made.error();
  publisher_ = std::move(*made);
  return core::ok();
}

void DeliverRole::run(const std::stop_token& stop) {
  actions::PoolOptions pool;
  pool.action = [this](std::string_view integration) -> core::Action* {
    const auto found = actions_.find(std::string(integration));
    return found == actions_.end() ? nullptr : found->second.get();
  };
  pool_ = std::make_unique<actions::DeliveryPool>(std::move(pool));
  while (!stop.stop_requested()) {
    const bool busy = lanes_->in_flight() > 0;
    const auto deadline = lanes_->next_deadline(now());
    auto wait = busy ? std::chrono::milliseconds(5) : std::chrono::milliseconds(100);
    if (deadline) {
      wait = std::clamp(std::chrono::ceil<std::chrono::milliseconds>(*deadline - now()), 1ms, wait);
    }
    const auto polled =
        source_->poll(wait, kBatch, [this](const core::RecordView& record) { handle(record); });
    if (!polled && polled.error().code == core::Code::failed_precondition) {
      start_over(polled.error());
    } else if (!polled) {
      log_.warn("source_failed", {{"error", polled.error().message}});
      std::this_thread::sleep_for(100ms);
    }
    restore_if_assigned();
    collect_finished();
    start_attempts();
    gather();
    commit_or_keep();
  }
  // Calls in flight get a moment to end, so that their result is recorded and not repeated.
  const core::Duration end = clock_.monotonic() + options_.shutdown_grace;
  while (lanes_->in_flight() > 0 && clock_.monotonic() < end) {
    collect_finished();
    std::this_thread::sleep_for(5ms);
  }
  collect_finished();
  gather();
  if (const auto status = commit(); !status)
    log_.warn("last_commit_failed", {{"error", status.error().message}});
  ready_ = false;
  source_->close(5s);
  pool_.reset();
}

void DeliverRole::handle(const core::RecordView& record) {
  auto notification = ingest::decode_notification(record);
  if (!notification) {
    pending_.push_back(
        ingest::dead_letter(record, "bad_notification", notification.error().message, "deliver"));
    return;
  }
  lanes_->enqueue(std::move(*notification), now(),
                  core::Position{{std::string(record.stream), record.partition}, record.offset});
}

void DeliverRole::start_attempts() {
  if (!restored_) return;
  while (auto attempt = lanes_->next(now())) pool_->submit(std::move(*attempt));
}

void DeliverRole::collect_finished() {
  for (const auto& [attempt, outcome] : pool_->take()) {
    if (outcome) lanes_->finished(attempt, *outcome, now());
  }
}

void DeliverRole::gather() {
  auto batch = lanes_->take();
  const core::WallTime time = clock_.now();
  for (auto& delivery : batch.deliveries) {
    pending_.push_back(ingest::encode_delivery(delivery, time, options_.cluster));
    unreported_.push_back(std::move(delivery));
  }
  for (const auto& issue : batch.issues) pending_.push_back(ingest::encode_issue(issue));
  for (auto& position : batch.positions) {
    const auto same =
        std::find_if(pending_positions_.begin(), pending_positions_.end(),
                     [&](const core::Position& other) { return other.where == position.where; });
    if (same != pending_positions_.end()) {
      same->next = std::max(same->next, position.next);
    } else {
      pending_positions_.push_back(std::move(position));
    }
  }
}

core::Status DeliverRole::commit() {
  if (pending_.empty() && pending_positions_.empty()) return core::ok();
  const auto status = publisher_->commit(pending_, pending_positions_);
  if (!status) return status;
  pending_.clear();
  pending_positions_.clear();
  for (const auto& delivery : unreported_) log_delivery(log_, delivery);
  unreported_.clear();
  return status;
}

void DeliverRole::commit_or_keep() {
  if (clock_.monotonic() < retry_at_) return;
  const auto status = commit();
  if (status) {
    retry_at_ = backoff_ = {};
    ready_ = restored_;
    return;
  }
  ready_ = false;
  if (status.error().code == core::Code::failed_precondition) {
    start_over(status.error());
    return;
  }
  backoff_ = std::min(std::max(backoff_ * 2, kFirstBackoff), kMaxBackoff);
  retry_at_ = clock_.monotonic() + backoff_;
  log_.warn("commit_failed", {{"error", status.error().message}});
}

void DeliverRole::assigned(std::span<const core::Position> committed) {
  for (const auto& position : committed) waiting_.push_back(position.where);
  if (committed.empty()) waiting_.push_back({});
}

void DeliverRole::restore_if_assigned() {
  if (waiting_.empty()) return;
  if (!restored_) {
    const auto partitions = publisher_->partitions(kDeliveries);
    if (!partitions) {
      log_.warn("restore_failed", {{"error", partitions.error().message}});
      std::this_thread::sleep_for(100ms);
      return;
    }
    for (std::int32_t partition = 0; partition < *partitions; ++partition) {
      const auto read =
          source_->read_all(kDeliveries, partition, [&](const core::RecordView& record) {
            if (const auto delivery = ingest::decode_delivery(record)) lanes_->restore(*delivery);
          });
      if (!read) {
        log_.warn("restore_failed", {{"error", read.error().message}});
        std::this_thread::sleep_for(100ms);
        return;
      }
    }
    restored_ = true;
  }
  std::erase_if(waiting_,
                [](const core::StreamPartition& partition) { return partition.stream.empty(); });
  if (const auto status = source_->resume(waiting_); !status) {
    log_.warn("resume_failed", {{"error", status.error().message}});
    return;
  }
  waiting_.clear();
}

void DeliverRole::start_over(const core::Error& error) {
  log_.warn("deliverer_restarted", {{"error", error.message}});
  // Calls in flight end first: their results belong to lanes that are about to go.
  while (lanes_->in_flight() > 0) {
    collect_finished();
    std::this_thread::sleep_for(5ms);
  }
  source_->close(2s);
  publisher_.reset();
  source_.reset();
  pending_.clear();
  pending_positions_.clear();
  unreported_.clear();
  waiting_.clear();
  restored_ = false;
  retry_at_ = backoff_ = {};
  while (true) {
    const auto status = open();
    if (status) return;
    log_.error("deliver_open_failed", {{"error", status.error().message}});
    std::this_thread::sleep_for(500ms);
  }
}

void DeliverRole::revoked(std::span<const core::StreamPartition> partitions) {
  collect_finished();
  gather();
  if (const auto status = commit(); !status)
    log_.warn("revoke_commit_failed", {{"error", status.error().message}});
  lost(partitions);
}

// A lane belongs to whoever holds its partition. What is still in flight may be repeated once by
// the new owner, with the same id.
void DeliverRole::lost(std::span<const core::StreamPartition>) {
  pending_.clear();
  pending_positions_.clear();
  unreported_.clear();
}

}  // namespace tocsin::app
