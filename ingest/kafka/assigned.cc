#include "ingest/kafka/assigned.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "ingest/kafka/consumer.h"
#include "ingest/kafka/deadline.h"

namespace tocsin::ingest {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kSeekTimeout{5'000};

}  // namespace

KafkaAssigned* KafkaAssignments::find(const core::StreamPartition& where) {
  const auto it = std::find_if(all_.begin(), all_.end(),
                               [&](const KafkaAssigned& one) { return one.where == where; });
  return it == all_.end() ? nullptr : &*it;
}

KafkaAssigned* KafkaAssignments::find(const rd_kafka_message_t& message) {
  // Records come in runs of one partition.
  if (last_found_ < all_.size() && all_[last_found_].handle == message.rkt &&
      all_[last_found_].where.partition == message.partition) {
    return &all_[last_found_];
  }
  if (message.rkt == nullptr) return nullptr;
  const std::string_view topic = context_.short_name(rd_kafka_topic_name(message.rkt));
  for (std::size_t i = 0; i < all_.size(); ++i) {
    KafkaAssigned& one = all_[i];
    if (one.where.partition != message.partition || one.where.stream != topic) continue;
    one.handle = message.rkt;
    last_found_ = i;
    return &one;
  }
  return nullptr;
}

KafkaAssigned& KafkaAssignments::add(core::StreamPartition where) {
  KafkaAssigned& one = all_.emplace_back();
  one.where = std::move(where);
  return one;
}

void KafkaAssignments::forget(std::span<const core::StreamPartition> gone) {
  std::erase_if(all_, [&](const KafkaAssigned& one) {
    return std::find(gone.begin(), gone.end(), one.where) != gone.end();
  });
  last_found_ = 0;
}

std::vector<core::StreamPartition> KafkaAssignments::set_paused(
    std::span<const core::StreamPartition> partitions, bool paused) {
  std::vector<core::StreamPartition> changed;
  for (const auto& where : partitions) {
    KafkaAssigned* one = find(where);
    if (one == nullptr || one->paused == paused) continue;
    one->paused = paused;
    changed.push_back(where);
  }
  return changed;
}

std::vector<core::StreamPartition> KafkaAssignments::names() const {
  std::vector<core::StreamPartition> out;
  for (const KafkaAssigned& one : all_) out.push_back(one.where);
  return out;
}

std::vector<core::StreamPartition> KafkaAssignments::next_names(std::size_t most) {
  std::vector<core::StreamPartition> out;
  for (std::size_t i = 0; i < std::min(most, all_.size()); ++i) {
    out.push_back(all_[++last_named_ % all_.size()].where);
  }
  return out;
}

bool KafkaAssignments::all_at_end() const {
  return std::all_of(all_.begin(), all_.end(), [](const KafkaAssigned& one) { return one.at_end; });
}

bool KafkaAssignments::at_end(const core::StreamPartition& where) const {
  return std::any_of(all_.begin(), all_.end(),
                     [&](const KafkaAssigned& one) { return one.where == where && one.at_end; });
}

core::Status KafkaAssignments::move(rd_kafka_t* client, KafkaAssigned& partition,
                                    std::int64_t offset) {
  partition.at_end = false;
  const Kafka<rd_kafka_topic_t> topic(
      rd_kafka_topic_new(client, context_.full_name(partition.where.stream).c_str(), nullptr));
  auto error = RD_KAFKA_RESP_ERR_NO_ERROR;
  for (int tries = 0; tries < 3; ++tries) {
    error = rd_kafka_seek(topic.get(), partition.where.partition, offset,
                          static_cast<int>(kSeekTimeout.count()));
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return core::ok();
    // After an offset out of range the partition is stopped, and a stopped one cannot seek.
    if (error == RD_KAFKA_RESP_ERR__STATE) return restart(client, partition, offset);
  }
  return kafka_error(error, "seeking in " + partition.where.stream + "[" +
                                std::to_string(partition.where.partition) + "]");
}

/// Takes the partition out of the assignment and back in at another offset.
core::Status KafkaAssignments::restart(rd_kafka_t* client, KafkaAssigned& partition,
                                       std::int64_t offset) {
  if (std::string_view(rd_kafka_rebalance_protocol(client)) == "EAGER") {
    for (auto& one : all_) {
      if (one.next >= 0) one.start = one.next;
    }
    partition.start = offset;
    return assign(client);
  }
  const auto list = partition_list(context_, {&partition.where, 1});
  list->elems[0].offset = offset;
  Kafka<rd_kafka_error_t> error(rd_kafka_incremental_unassign(client, list.get()));
  if (!error) error.reset(rd_kafka_incremental_assign(client, list.get()));
  if (error) return core::unavailable(rd_kafka_error_string(error.get()));
  if (partition.paused) rd_kafka_pause_partitions(client, list.get());
  return core::ok();
}

core::Status KafkaAssignments::assign(rd_kafka_t* client) {
  std::vector<core::StreamPartition> all;
  std::vector<core::StreamPartition> paused;
  for (const auto& one : all_) {
    all.push_back(one.where);
    if (one.paused) paused.push_back(one.where);
  }
  const auto list = partition_list(context_, all);
  for (std::size_t i = 0; i < all_.size(); ++i) list->elems[i].offset = all_[i].start;
  const auto error = rd_kafka_assign(client, list.get());
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return kafka_error(error, "assigning partitions");
  if (!paused.empty()) rd_kafka_pause_partitions(client, partition_list(context_, paused).get());
  return core::ok();
}

core::Result<std::vector<core::Position>> committed_positions(
    const KafkaContext& context, rd_kafka_t* client, std::span<const core::Position> positions,
    milliseconds timeout) {
  std::vector<core::StreamPartition> partitions;
  for (const auto& position : positions) partitions.push_back(position.where);
  const auto list = partition_list(context, partitions);
  const auto deadline = Clock::now() + timeout;
  for (;;) {
    const auto error = rd_kafka_committed(client, list.get(), ms_until(deadline));
    auto first = error;
    for (int i = 0; first == RD_KAFKA_RESP_ERR_NO_ERROR && i < list->cnt; ++i) {
      first = list->elems[i].err;
    }
    if (first == RD_KAFKA_RESP_ERR_NO_ERROR) break;
    if (left_until(deadline).count() == 0 || kafka_code(first) == core::Code::permission_denied) {
      return kafka_error(first, "reading the group's committed positions");
    }
  }
  std::vector<core::Position> found;
  for (int i = 0; i < list->cnt; ++i) {
    const std::int64_t offset = list->elems[i].offset;
    found.push_back({partitions[static_cast<std::size_t>(i)], offset >= 0 ? offset : -1});
  }
  return found;
}

}  // namespace tocsin::ingest
