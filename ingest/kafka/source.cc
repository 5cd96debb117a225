#include "ingest/kafka/source.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "ingest/kafka/consumer.h"
#include "ingest/kafka/deadline.h"

namespace tocsin::ingest {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

}  // namespace

KafkaSource::KafkaSource(const KafkaContext& context, SourceOptions options)
    : context_(context),
      options_(std::move(options)),
      gaps_(context.telemetry.counter("tocsin_ingest_gaps_total",
                                      "Times a reader found records gone or damaged")),
      rebalances_(context.telemetry.counter("tocsin_ingest_rebalances_total",
                                            "Assignments and revocations of partitions")),
      restore_(context),
      assigned_(context) {}

core::Result<std::unique_ptr<KafkaSource>> KafkaSource::open(const KafkaContext& context,
                                                             SourceOptions options) {
  for (const auto& topic : options.topics) {
    if (context.find(topic) == nullptr) {
      return core::not_found("topic " + topic + " is not one of Tocsin's");
    }
  }
  std::unique_ptr<KafkaSource> source(new KafkaSource(context, std::move(options)));
  if (auto status = source->start_client(); !status) return status.error();
  return source;
}

core::Status KafkaSource::start_client() {
  const bool grouped = !options_.group.empty();
  // The library wants a group even from those who never join one.
  const std::string group = grouped ? options_.group : "tocsin-reader";
  const auto settings = consumer_settings(
      group, kafka_client_id(grouped ? options_.group : "reader"), options_.fetch_wait);
  auto conf = make_kafka_conf(context_.properties, KafkaRole::consumer, settings);
  if (!conf) return conf.error();
  rd_kafka_conf_set_rebalance_cb(conf->get(), on_rebalance);
  rd_kafka_conf_set_error_cb(conf->get(), on_error);
  auto client = KafkaClient::start(std::move(*conf), KafkaRole::consumer, this, context_.log);
  if (!client) return client.error();
  client_ = std::move(*client);
  rd_kafka_poll_set_consumer(client_->get());
  wake_.open(client_->get());
  if (!grouped) return core::ok();
  Kafka<rd_kafka_topic_partition_list_t> topics(
      rd_kafka_topic_partition_list_new(static_cast<int>(options_.topics.size())));
  for (const auto& topic : options_.topics) {
    rd_kafka_topic_partition_list_add(topics.get(), context_.full_name(topic).c_str(),
                                      RD_KAFKA_PARTITION_UA);
  }
  const auto error = rd_kafka_subscribe(client_->get(), topics.get());
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return kafka_error(error, "subscribing");
  return core::ok();
}

/// Without close() the owner is not told: it may be half destroyed itself.
KafkaSource::~KafkaSource() { leave(milliseconds{2000}); }

rd_kafka_t* KafkaSource::group_client() const noexcept {
  return closed_ || options_.group.empty() || !client_ ? nullptr : client_->get();
}

// ── Reading ──────────────────────────────────────────────────────────────────────────────────

void KafkaSource::on_error(rd_kafka_t* client, int error, const char* reason,
                           void* opaque) noexcept {
  auto* owner = static_cast<KafkaSource*>(KafkaClient::owner(opaque));
  if (owner == nullptr) return;
  auto& self = *owner;
  const auto code = static_cast<rd_kafka_resp_err_t>(error);
  if (code == RD_KAFKA_RESP_ERR__FATAL) {
    std::array<char, 512> text{};
    rd_kafka_fatal_error(client, text.data(), text.size());
    self.pending_error_ = core::Error{core::Code::failed_precondition, text.data()};
    return;
  }
  // Single connections come and go; what matters is that nobody answers, or that we may not.
  const bool matters = code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN ||
                       kafka_code(code) == core::Code::permission_denied;
  if (matters) {
    self.pending_error_ =
        core::Error{kafka_code(code), "kafka at " + self.context_.address + ": " + reason};
  }
}

bool KafkaSource::take(rd_kafka_message_t& message, core::RecordHandler handler) {
  if (message.err != RD_KAFKA_RESP_ERR_NO_ERROR) {
    take_error(message);
    return false;
  }
  if (prefetch_.wants(message)) read_on();
  KafkaAssigned* one = assigned_.find(message);
  // 2.0.2 repeats records after a resume; and what was assigned may be gone by now.
  if (one == nullptr || message.offset < one->next) return false;
  one->next = message.offset + 1;
  one->at_end = false;
  handler(record_view(context_, message));
  return true;
}

void KafkaSource::read_on() {
  const auto some = partition_list(context_, assigned_.next_names(KafkaPrefetch::kPartitions));
  prefetch_.ask(client_->get(), *some);
}

void KafkaSource::take_error(const rd_kafka_message_t& message) {
  KafkaAssigned* one = assigned_.find(message);
  if (message.err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
    if (one != nullptr) one->at_end = true;
    return;
  }
  if (message.err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET && one != nullptr) {
    report_gap(*one, message);
    return;
  }
  if (message.err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART && message.rkt != nullptr) {
    pending_error_ = context_.missing(context_.short_name(rd_kafka_topic_name(message.rkt)));
    return;
  }
  pending_error_ = kafka_error(message.err, "reading from " + context_.address);
}

/// The position is no longer there: on with the oldest record there is, and say so.
void KafkaSource::report_gap(KafkaAssigned& partition, const rd_kafka_message_t& message) {
  gaps_.add();
  std::string what = partition.where.stream + "[" + std::to_string(partition.where.partition) +
                     "]: position " + std::to_string(partition.next) + " is gone (" +
                     rd_kafka_message_errstr(&message) + "); going on with the oldest record";
  context_.log.warn("gap_found", {{"topic", partition.where.stream},
                                  {"partition", std::int64_t{partition.where.partition}},
                                  {"offset", partition.next}});
  partition.next = -1;
  const auto status = assigned_.move(client_->get(), partition, RD_KAFKA_OFFSET_BEGINNING);
  if (!status) what += "; seeking failed: " + status.error().message;
  pending_error_ = core::Error{core::Code::data_loss, std::move(what)};
}

core::Result<std::size_t> KafkaSource::poll(milliseconds timeout, std::size_t max_records,
                                            core::RecordHandler handler) {
  if (closed_) {
    return core::Error{core::Code::failed_precondition, "the kafka source is closed"};
  }
  const auto deadline = Clock::now() + timeout;
  if (options_.group.empty() && !ever_assigned_) {
    if (auto status = assign_without_group(); !status) return status.error();
  }
  if (auto status = announce_late(); !status) return status.error();
  std::size_t count = 0;
  while (count < std::max<std::size_t>(max_records, 1)) {
    if (pending_error_ && count == 0) return *std::exchange(pending_error_, std::nullopt);
    if (pending_error_) break;  // after what was handed out
    const int wait = count == 0 ? ms_until(deadline) : 0;
    const Kafka<rd_kafka_message_t> message(rd_kafka_consumer_poll(client_->get(), wait));
    if (message && max_records > 0) {
      count += take(*message, handler) ? 1 : 0;
      continue;
    }
    if (pending_error_) continue;
    if (count > 0 || wake_.woken() || left_until(deadline).count() == 0) break;
  }
  return count;
}

void KafkaSource::wake() { wake_.wake(); }

core::Status KafkaSource::seek(const core::Position& position) {
  KafkaAssigned* one = assigned_.find(position.where);
  if (one == nullptr || closed_) {
    return core::not_found(position.where.stream + "[" + std::to_string(position.where.partition) +
                           "] is not assigned");
  }
  const std::int64_t offset = position.next >= 0 ? position.next : RD_KAFKA_OFFSET_BEGINNING;
  one->start = offset;
  one->next = position.next >= 0 ? position.next : -1;
  if (in_assignment_) return core::ok();
  return assigned_.move(client_->get(), *one, offset);
}

core::Status KafkaSource::pause(std::span<const core::StreamPartition> partitions) {
  const auto changed = assigned_.set_paused(partitions, true);
  if (changed.empty() || in_assignment_ || closed_) return core::ok();
  const auto error =
      rd_kafka_pause_partitions(client_->get(), partition_list(context_, changed).get());
  return error == 0 ? core::ok() : core::Status(kafka_error(error, "pausing"));
}

core::Status KafkaSource::resume(std::span<const core::StreamPartition> partitions) {
  const auto changed = assigned_.set_paused(partitions, false);
  if (changed.empty() || in_assignment_ || closed_) return core::ok();
  const auto error =
      rd_kafka_resume_partitions(client_->get(), partition_list(context_, changed).get());
  return error == 0 ? core::ok() : core::Status(kafka_error(error, "resuming"));
}

std::vector<core::Position> KafkaSource::positions() const {
  std::vector<core::Position> positions;
  for (const auto& one : assigned_) positions.push_back({one.where, one.next});
  return positions;
}

bool KafkaSource::at_end() const {
  return ever_assigned_ && !pending_error_ && assigned_.all_at_end();
}

bool KafkaSource::at_end(const core::StreamPartition& where) const {
  if (pulse_ && !pulse_->steady()) return false;  // cut off: what is there now nobody knows
  return assigned_.at_end(where);
}

core::Status KafkaSource::read_all(std::string_view topic, std::int32_t partition,
                                   std::optional<core::WallTime> since,
                                   core::RecordHandler handler) {
  if (closed_) return core::Error{core::Code::failed_precondition, "the kafka source is closed"};
  return restore_.read_all(topic, partition, since, handler);
}

core::Result<std::vector<core::Position>> KafkaSource::committed(
    std::span<const core::Position> positions, milliseconds timeout) const {
  return committed_positions(context_, client_->get(), positions, timeout);
}

void KafkaSource::close(milliseconds deadline) {
  if (closed_) return;
  // Handed over here, on the caller's thread and while the membership is valid; the library's own
  // close has no deadline, so it runs on a thread of its own and finds nothing left to tell.
  if (in_group() && options_.listener != nullptr && !assigned_.empty()) {
    const std::vector<core::StreamPartition> all = assigned_.names();
    const bool lost = rd_kafka_assignment_lost(client_->get()) != 0;
    lost ? options_.listener->lost(all) : options_.listener->revoked(all);
  }
  leave(deadline);
}

void KafkaSource::leave(milliseconds deadline) {
  if (std::exchange(closed_, true) || !client_) return;
  if (in_group()) client_->leave_group(deadline, ever_assigned_);
  assigned_.clear();
  restore_.close();
  pulse_.reset();
  wake_.close();
  client_.reset();
}

}  // namespace tocsin::ingest
