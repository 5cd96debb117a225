// KafkaSource: which partitions are ours, and where they start.
#include <algorithm>
#include <string_view>
#include <utility>

#include "ingest/kafka/consumer.h"
#include "ingest/kafka/deadline.h"
#include "ingest/kafka/source.h"

namespace tocsin::ingest {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kCommittedTimeout{10'000};

}  // namespace

void KafkaSource::on_rebalance(rd_kafka_t* client, rd_kafka_resp_err_t error,
                               rd_kafka_topic_partition_list_t* list, void* opaque) noexcept {
  auto* owner = static_cast<KafkaSource*>(KafkaClient::owner(opaque));
  if (owner == nullptr) {  // closing: the owner was told already
    KafkaClient::decline(client, opaque);
    return;
  }
  auto& self = *owner;
  self.rebalances_.add();
  if (error == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
    self.on_assigned(*list);
    return;
  }
  if (error == RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS) {
    self.on_revoked(*list);
    return;
  }
  self.context_.log.warn("kafka_rebalance_failed", {{"reason", rd_kafka_err2str(error)}});
  rd_kafka_assign(client, nullptr);
}

void KafkaSource::on_assigned(rd_kafka_topic_partition_list_t& list) {
  rd_kafka_t* client = client_->get();
  ever_assigned_ = true;
  std::vector<core::StreamPartition> fresh;
  for (int i = 0; i < list.cnt; ++i) {
    const auto& element = list.elems[i];
    fresh.push_back({std::string(context_.short_name(element.topic)), element.partition});
  }
  const bool cooperative = std::string_view(rd_kafka_rebalance_protocol(client)) == "COOPERATIVE";
  if (!cooperative) assigned_.clear();
  auto status = start_partitions(fresh);
  if (!status) {
    context_.log.warn("committed_positions_unread", {{"reason", status.error().message}});
    unannounced_.insert(unannounced_.end(), fresh.begin(), fresh.end());
  }
  // Explicit offsets: in 2.0.2 a seek right after the assignment is not to be relied on.
  std::vector<core::StreamPartition> paused;
  for (int i = 0; i < list.cnt; ++i) {
    KafkaAssigned* one = assigned_.find(fresh[static_cast<std::size_t>(i)]);
    if (one == nullptr) continue;
    list.elems[i].offset = one->start;
    if (one->paused) paused.push_back(one->where);
  }
  if (cooperative) {
    const Kafka<rd_kafka_error_t> error(rd_kafka_incremental_assign(client, &list));
    if (error) pending_error_ = core::unavailable(rd_kafka_error_string(error.get()));
  } else if (const auto error = rd_kafka_assign(client, &list); error != 0) {
    pending_error_ = kafka_error(error, "assigning partitions");
  }
  // Still inside the callback: nothing is handed out in between.
  if (!paused.empty()) rd_kafka_pause_partitions(client, partition_list(context_, paused).get());
  feel_pulse();
}

void KafkaSource::feel_pulse() {
  std::vector<KafkaPulse::Topic> topics;
  for (const auto& one : assigned_) {
    topics.emplace_back(context_.full_name(one.where.stream), one.where.partition);
  }
  if (!pulse_) pulse_ = std::make_unique<KafkaPulse>(client_->get());
  pulse_->watch(std::move(topics));
}

/// Makes entries for new partitions and lets the owner say where they start.
core::Status KafkaSource::start_partitions(std::vector<core::StreamPartition> partitions) {
  std::vector<core::Position> asked;
  for (const auto& where : partitions) {
    asked.push_back({where, -1});
    if (assigned_.find(where) != nullptr) continue;
    KafkaAssigned& one = assigned_.add(where);
    one.paused = true;
    if (options_.start == Start::end) one.start = RD_KAFKA_OFFSET_END;
  }
  if (options_.start == Start::committed_or_beginning && !options_.group.empty()) {
    auto positions = committed(asked, kCommittedTimeout);
    if (!positions) return positions.error();
    asked = std::move(*positions);
  }
  hand_to_owner(asked);
  return core::ok();
}

void KafkaSource::hand_to_owner(std::span<const core::Position> positions) {
  for (const auto& position : positions) {
    KafkaAssigned* one = assigned_.find(position.where);
    if (one == nullptr || position.next < 0) continue;
    one->next = one->start = position.next;
  }
  if (options_.listener == nullptr) {
    for (const auto& position : positions) {
      if (KafkaAssigned* one = assigned_.find(position.where)) one->paused = false;
    }
    return;
  }
  in_assignment_ = true;
  options_.listener->assigned(positions);
  in_assignment_ = false;
}

/// Tells the owner about partitions whose committed positions could not be read when they came.
core::Status KafkaSource::announce_late() {
  if (unannounced_.empty()) return core::ok();
  auto late = std::exchange(unannounced_, {});
  if (auto status = start_partitions(late); !status) {
    unannounced_ = std::move(late);
    return status;
  }
  std::vector<core::StreamPartition> resumed;
  for (const auto& where : late) {
    KafkaAssigned* one = assigned_.find(where);
    if (one == nullptr) continue;
    const bool wants_to_run = !one->paused;
    one->paused = true;
    if (auto status = assigned_.move(client_->get(), *one, one->start); !status) return status;
    if (wants_to_run) resumed.push_back(where);
  }
  return resume(resumed);
}

void KafkaSource::on_revoked(rd_kafka_topic_partition_list_t& list) {
  rd_kafka_t* client = client_->get();
  std::vector<core::StreamPartition> gone;
  for (int i = 0; i < list.cnt; ++i) {
    const auto& element = list.elems[i];
    gone.push_back({std::string(context_.short_name(element.topic)), element.partition});
  }
  if (options_.listener != nullptr) {
    if (rd_kafka_assignment_lost(client) != 0) {
      options_.listener->lost(gone);
    } else {
      options_.listener->revoked(gone);
    }
  }
  assigned_.forget(gone);
  std::erase_if(unannounced_, [&](const core::StreamPartition& where) {
    return std::find(gone.begin(), gone.end(), where) != gone.end();
  });
  feel_pulse();
  if (std::string_view(rd_kafka_rebalance_protocol(client)) == "COOPERATIVE") {
    const Kafka<rd_kafka_error_t> error(rd_kafka_incremental_unassign(client, &list));
    if (error) {
      context_.log.warn("kafka_unassign_failed", {{"reason", rd_kafka_error_string(error.get())}});
    }
  } else {
    rd_kafka_assign(client, nullptr);
  }
}

core::Status KafkaSource::assign_without_group() {
  std::vector<core::StreamPartition> all;
  if (options_.partition) {
    for (const auto& topic : options_.topics) all.push_back({topic, *options_.partition});
  } else {
    const auto metadata = kafka_metadata(client_->get(), kMetadataTimeout, context_.address);
    if (!metadata) return metadata.error();
    for (const auto& topic : options_.topics) {
      const std::string full = context_.full_name(topic);
      const auto* begin = (*metadata)->topics;
      const auto* end = begin + (*metadata)->topic_cnt;
      const auto* it = std::find_if(
          begin, end, [&](const rd_kafka_metadata_topic_t& one) { return one.topic == full; });
      if (it == end || it->partition_cnt == 0) return context_.missing(topic);
      for (int partition = 0; partition < it->partition_cnt; ++partition) {
        all.push_back({topic, partition});
      }
    }
  }
  ever_assigned_ = true;
  if (auto status = start_partitions(all); !status) return status;
  return assigned_.assign(client_->get());
}

}  // namespace tocsin::ingest
