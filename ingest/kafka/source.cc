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

constexpr milliseconds kSeekTimeout{5'000};

}  // namespace

KafkaSource::KafkaSource(const KafkaContext& context, SourceOptions options)
    : context_(context),
      options_(std::move(options)),
      gaps_(context.telemetry.counter("tocsin_ingest_gaps_total",
                                      "Times a reader found records gone or damaged")),
      rebalances_(context.telemetry.counter("tocsin_ingest_rebalances_total",
                                            "Assignments and revocations of partitions")),
      restore_(context) {}

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
  const auto settings =
      consumer_settings(group, kafka_client_id(grouped ? options_.group : "reader"),
                        options_.partition.has_value(), options_.fetch_wait);
  auto conf = make_kafka_conf(context_.properties, KafkaRole::consumer, settings);
  if (!conf) return conf.error();
  rd_kafka_conf_set_rebalance_cb(conf->get(), on_rebalance);
  rd_kafka_conf_set_error_cb(conf->get(), on_error);
  auto client = KafkaClient::start(std::move(*conf), KafkaRole::consumer, this, context_.log);
  if (!client) return client.error();
  client_ = std::move(*client);
  rd_kafka_poll_set_consumer(client_->get());
  {
    const std::lock_guard lock(wake_mutex_);
    queue_ = rd_kafka_queue_get_consumer(client_->get());
  }
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

KafkaSource::Partition* KafkaSource::find(const core::StreamPartition& where) {
  const auto it = std::find_if(assigned_.begin(), assigned_.end(),
                               [&](const Partition& one) { return one.where == where; });
  return it == assigned_.end() ? nullptr : &*it;
}

KafkaSource::Partition* KafkaSource::find(const rd_kafka_message_t& message) {
  // Records come in runs of one partition.
  if (last_found_ < assigned_.size() && assigned_[last_found_].handle == message.rkt &&
      assigned_[last_found_].where.partition == message.partition) {
    return &assigned_[last_found_];
  }
  if (message.rkt == nullptr) return nullptr;
  const std::string_view topic = context_.short_name(rd_kafka_topic_name(message.rkt));
  for (std::size_t i = 0; i < assigned_.size(); ++i) {
    Partition& one = assigned_[i];
    if (one.where.partition != message.partition || one.where.stream != topic) continue;
    one.handle = message.rkt;
    last_found_ = i;
    return &one;
  }
  return nullptr;
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
  Partition* one = find(message);
  // 2.0.2 repeats records after a resume; and what was assigned may be gone by now.
  if (one == nullptr || message.offset < one->next) return false;
  one->next = message.offset + 1;
  one->at_end = false;
  handler(record_view(context_, message));
  return true;
}

void KafkaSource::take_error(const rd_kafka_message_t& message) {
  Partition* one = find(message);
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
void KafkaSource::report_gap(Partition& partition, const rd_kafka_message_t& message) {
  gaps_.add();
  std::string what = partition.where.stream + "[" + std::to_string(partition.where.partition) +
                     "]: position " + std::to_string(partition.next) + " is gone (" +
                     rd_kafka_message_errstr(&message) + "); going on with the oldest record";
  context_.log.warn("gap_found", {{"topic", partition.where.stream},
                                  {"partition", std::int64_t{partition.where.partition}},
                                  {"offset", partition.next}});
  partition.next = -1;
  auto status = move(partition, RD_KAFKA_OFFSET_BEGINNING);
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
    if (count > 0 || woken_.exchange(false) || left_until(deadline).count() == 0) break;
  }
  return count;
}

void KafkaSource::wake() {
  woken_ = true;
  const std::lock_guard lock(wake_mutex_);
  if (queue_ != nullptr) rd_kafka_queue_yield(queue_);
}

core::Status KafkaSource::move(Partition& partition, std::int64_t offset) {
  partition.at_end = false;
  const Kafka<rd_kafka_topic_t> topic(rd_kafka_topic_new(
      client_->get(), context_.full_name(partition.where.stream).c_str(), nullptr));
  auto error = RD_KAFKA_RESP_ERR_NO_ERROR;
  for (int tries = 0; tries < 3; ++tries) {
    error = rd_kafka_seek(topic.get(), partition.where.partition, offset,
                          static_cast<int>(kSeekTimeout.count()));
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return core::ok();
    // After an offset out of range the partition is stopped, and a stopped one cannot seek.
    if (error == RD_KAFKA_RESP_ERR__STATE) return restart(partition, offset);
  }
  return kafka_error(error, "seeking in " + partition.where.stream + "[" +
                                std::to_string(partition.where.partition) + "]");
}

/// Takes the partition out of the assignment and back in at another offset.
core::Status KafkaSource::restart(Partition& partition, std::int64_t offset) {
  rd_kafka_t* client = client_->get();
  if (std::string_view(rd_kafka_rebalance_protocol(client)) == "EAGER") {
    for (auto& one : assigned_) {
      if (one.next >= 0) one.start = one.next;
    }
    partition.start = offset;
    return assign_all();
  }
  const auto list = partition_list(context_, {&partition.where, 1});
  list->elems[0].offset = offset;
  Kafka<rd_kafka_error_t> error(rd_kafka_incremental_unassign(client, list.get()));
  if (!error) error.reset(rd_kafka_incremental_assign(client, list.get()));
  if (error) return core::unavailable(rd_kafka_error_string(error.get()));
  if (partition.paused) rd_kafka_pause_partitions(client, list.get());
  return core::ok();
}

/// Gives the library all partitions with their starts, and pauses those that are.
core::Status KafkaSource::assign_all() {
  std::vector<core::StreamPartition> all;
  std::vector<core::StreamPartition> paused;
  for (const auto& one : assigned_) {
    all.push_back(one.where);
    if (one.paused) paused.push_back(one.where);
  }
  const auto list = partition_list(context_, all);
  for (std::size_t i = 0; i < assigned_.size(); ++i) list->elems[i].offset = assigned_[i].start;
  const auto error = rd_kafka_assign(client_->get(), list.get());
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return kafka_error(error, "assigning partitions");
  if (!paused.empty())
    rd_kafka_pause_partitions(client_->get(), partition_list(context_, paused).get());
  return core::ok();
}

core::Status KafkaSource::seek(const core::Position& position) {
  Partition* one = find(position.where);
  if (one == nullptr || closed_) {
    return core::not_found(position.where.stream + "[" + std::to_string(position.where.partition) +
                           "] is not assigned");
  }
  const std::int64_t offset = position.next >= 0 ? position.next : RD_KAFKA_OFFSET_BEGINNING;
  one->start = offset;
  one->next = position.next >= 0 ? position.next : -1;
  if (in_assignment_) return core::ok();
  return move(*one, offset);
}

core::Status KafkaSource::pause(std::span<const core::StreamPartition> partitions) {
  std::vector<core::StreamPartition> changed;
  for (const auto& where : partitions) {
    Partition* one = find(where);
    if (one == nullptr || one->paused) continue;
    one->paused = true;
    changed.push_back(where);
  }
  if (changed.empty() || in_assignment_ || closed_) return core::ok();
  const auto error =
      rd_kafka_pause_partitions(client_->get(), partition_list(context_, changed).get());
  return error == 0 ? core::ok() : core::Status(kafka_error(error, "pausing"));
}

core::Status KafkaSource::resume(std::span<const core::StreamPartition> partitions) {
  std::vector<core::StreamPartition> changed;
  for (const auto& where : partitions) {
    Partition* one = find(where);
    if (one == nullptr || !one->paused) continue;
    one->paused = false;
    changed.push_back(where);
  }
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
  return ever_assigned_ && !pending_error_ &&
         std::all_of(assigned_.begin(), assigned_.end(),
                     [](const Partition& one) { return one.at_end; });
}

bool KafkaSource::at_end(const core::StreamPartition& where) const {
  if (pulse_ && !pulse_->steady()) return false;  // cut off: what is there now nobody knows
  return std::any_of(assigned_.begin(), assigned_.end(),
                     [&](const Partition& one) { return one.where == where && one.at_end; });
}

core::Status KafkaSource::read_all(std::string_view topic, std::int32_t partition,
                                   std::optional<core::WallTime> since,
                                   core::RecordHandler handler) {
  if (closed_) return core::Error{core::Code::failed_precondition, "the kafka source is closed"};
  return restore_.read_all(topic, partition, since, handler);
}

void KafkaSource::close(milliseconds deadline) {
  if (closed_) return;
  // Handed over here, on the caller's thread and while the membership is valid; the library's own
  // close has no deadline, so it runs on a thread of its own and finds nothing left to tell.
  if (in_group() && options_.listener != nullptr && !assigned_.empty()) {
    std::vector<core::StreamPartition> all;
    for (const auto& one : assigned_) all.push_back(one.where);
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
  {
    const std::lock_guard lock(wake_mutex_);
    if (queue_ != nullptr) rd_kafka_queue_destroy(queue_);
    queue_ = nullptr;
  }
  client_.reset();
}

}  // namespace tocsin::ingest
