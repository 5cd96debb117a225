#include "ingest/kafka/producer.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/identity.h"
#include "ingest/kafka/deadline.h"

namespace tocsin::ingest {
namespace {

using std::chrono::milliseconds;

/// docs/transports.md.
std::vector<std::pair<std::string_view, std::string>> producer_settings(
    const PublisherOptions& options, const std::string& transactional_id) {
  std::vector<std::pair<std::string_view, std::string>> settings = {
      {"client.id", kafka_client_id(options.writer.empty() ? "producer" : options.writer)},
      {"acks", "all"},
      {"enable.idempotence", "true"},
      {"compression.type", "lz4"},
      // Else records without a key would not be given to our partitioner.
      {"sticky.partitioning.linger.ms", "0"},
      {"linger.ms", std::to_string(options.linger.count())},
      {"queue.buffering.max.kbytes",
       std::to_string(std::max<std::uint64_t>(1024, options.max_queued_bytes / 1024))},
      {"queue.buffering.max.messages", std::to_string(options.max_queued_records)},
      {"message.max.bytes", std::to_string(10 << 20)},  // the topics' own limits are lower
      {"socket.nagle.disable", "true"},
      {"socket.keepalive.enable", "true"},
      {"reconnect.backoff.max.ms", "2000"},
      {"allow.auto.create.topics", "false"},
      {"topic.metadata.propagation.max.ms", "3000"},
  };
  if (transactional_id.empty()) {
    settings.emplace_back("retry.backoff.ms", "50");
    settings.emplace_back("socket.timeout.ms", "10000");
    settings.emplace_back("message.timeout.ms", "120000");
    return settings;
  }
  // Some transactional calls of 2.0.2 mind this time-out more than the one they are given.
  const auto half =
      std::clamp(options.commit_timeout / 2, milliseconds{1000}, milliseconds{10'000});
  settings.emplace_back("socket.timeout.ms", std::to_string(half.count()));
  settings.emplace_back("transactional.id", transactional_id);
  // A transaction that follows another at once is refused (CONCURRENT_TRANSACTIONS) until the
  // coordinator has marked the first one's partitions, a few milliseconds; then this long is
  // waited.
  settings.emplace_back("retry.backoff.ms", "10");
  settings.emplace_back("transaction.timeout.ms", "15000");
  settings.emplace_back("message.timeout.ms", "8000");
  return settings;
}

constexpr std::size_t kRecordOverhead = 512;  // of a batch and a record's headers, generously

// What travels beside a record: 31 bits of the hash of another partition key than its own key, a
// bit that says so, and the round in which it was queued.
constexpr std::uintptr_t kOtherKey = 0x80000000U;
constexpr unsigned kRoundBit = 32;
static_assert(sizeof(std::uintptr_t) == 8);

}  // namespace

KafkaProducer::KafkaProducer(const KafkaContext& context)
    : context_(context),
      delivered_(context.telemetry.counter("tocsin_ingest_published_records_total",
                                           "Records a publisher was given",
                                           {{"outcome", "delivered"}})),
      failed_(context.telemetry.counter("tocsin_ingest_published_records_total",
                                        "Records a publisher was given", {{"outcome", "failed"}})) {
}

core::Result<std::unique_ptr<KafkaProducer>> KafkaProducer::open(
    const KafkaContext& context, const PublisherOptions& options,
    const std::string& transactional_id) {
  std::unique_ptr<KafkaProducer> producer(new KafkaProducer(context));
  const auto settings = producer_settings(options, transactional_id);
  auto conf = make_kafka_conf(context.properties, KafkaRole::producer, settings);
  if (!conf) return conf.error();
  // Always: without it, 2.0.2 waits in slices of 10 ms when a transaction flushes.
  rd_kafka_conf_set_dr_msg_cb(conf->get(), on_delivery);
  auto client =
      KafkaClient::start(std::move(*conf), KafkaRole::producer, producer.get(), context.log);
  if (!client) return client.error();
  producer->client_ = std::move(*client);
  return producer;
}

void KafkaProducer::on_delivery(rd_kafka_t* /*client*/, const rd_kafka_message_t* message,
                                void* opaque) noexcept {
  auto* owner = static_cast<KafkaProducer*>(KafkaClient::owner(opaque));
  if (owner != nullptr) owner->delivered(*message);
}

void KafkaProducer::delivered(const rd_kafka_message_t& message) {
  {
    const core::MutexLock lock(mutex_);
    --on_the_way_[reinterpret_cast<std::uintptr_t>(message._private) >> kRoundBit];
  }
  if (message.err == RD_KAFKA_RESP_ERR_NO_ERROR) {
    delivered_.add();
    return;
  }
  failed_.add();
  const std::string_view name = context_.short_name(rd_kafka_topic_name(message.rkt));
  const bool missing = kafka_code(message.err) == core::Code::not_found;
  const core::MutexLock lock(mutex_);
  if (missing) {
    if (const auto it = topics_.find(name); it != topics_.end()) it->second.missing = true;
  }
  if (failure_) return;
  failure_ = missing ? context_.missing(name)
                     : kafka_error(message.err, "delivering to " + std::string(name));
  // Given up, not still on its way: that is what flush() says by a time-out.
  if (failure_->code == core::Code::deadline_exceeded) failure_->code = core::Code::unavailable;
}

/// librdkafka runs this when it knows how many partitions there are, so produce() need not wait.
std::int32_t KafkaProducer::choose_partition(const rd_kafka_topic_t* /*topic*/, const void* key,
                                             std::size_t key_size, std::int32_t count,
                                             void* /*opaque*/, void* message_opaque) noexcept {
  const auto beside = reinterpret_cast<std::uintptr_t>(message_opaque);
  if ((beside & kOtherKey) != 0) {
    return static_cast<std::int32_t>((beside & (kOtherKey - 1)) %
                                     static_cast<std::uint32_t>(count));
  }
  return core::partition_for({static_cast<const char*>(key), key_size}, count);
}

core::Result<KafkaProducer::Topic*> KafkaProducer::topic(std::string_view name) {
  if (const auto it = topics_.find(name); it != topics_.end()) return &it->second;
  const TopicSpec* spec = context_.find(name);
  if (spec == nullptr) {
    return core::not_found("topic " + std::string(name) + " is not one of Tocsin's");
  }
  // Not a new one: that would know nothing of message.timeout.ms and whatever else was set.
  rd_kafka_topic_conf_t* conf = rd_kafka_default_topic_conf_dup(client_->get());
  rd_kafka_topic_conf_set_partitioner_cb(conf, choose_partition);
  Topic topic;
  topic.handle.reset(rd_kafka_topic_new(client_->get(), spec->full_name.c_str(), conf));
  if (!topic.handle) return kafka_error(rd_kafka_last_error(), "topic " + spec->full_name);
  for (const auto& [key, value] : spec->settings) {
    if (key == "max.message.bytes") topic.max_bytes = std::stoul(value);
  }
  return &topics_.emplace(std::string(name), std::move(topic)).first->second;
}

core::Status KafkaProducer::produce(const core::OutRecord& record) {
  auto status = produce_unserved(record);
  rd_kafka_poll(client_->get(), 0);
  return status;
}

core::Status KafkaProducer::produce_unserved(const core::OutRecord& record) {
  rd_kafka_topic_t* handle = nullptr;
  std::size_t round = 0;
  {
    const core::MutexLock lock(mutex_);
    auto found = topic(record.topic);
    if (!found) return found.error();
    const std::size_t size = record.key.size() + (record.value ? record.value->size() : 0);
    if (size + kRecordOverhead > (*found)->max_bytes) {
      return core::invalid_argument("a record of " + std::to_string(size) + " bytes; topic " +
                                    record.topic + " takes " +
                                    std::to_string((*found)->max_bytes - kRecordOverhead));
    }
    // Told once; the next call tries again, for the topic may have been created since.
    if (std::exchange((*found)->missing, false)) return context_.missing(record.topic);
    handle = (*found)->handle.get();
    round = round_;
    ++on_the_way_[round];
  }
  rd_kafka_headers_t* headers = nullptr;
  if (!record.headers.empty()) {
    headers = rd_kafka_headers_new(record.headers.size());
    for (const auto& [name, value] : record.headers) {
      rd_kafka_header_add(headers, name.data(), static_cast<ssize_t>(name.size()), value.data(),
                          static_cast<ssize_t>(value.size()));
    }
  }
  std::uintptr_t beside = static_cast<std::uintptr_t>(round) << kRoundBit;
  if (!record.partition_key.empty()) beside |= core::murmur2(record.partition_key) | kOtherKey;
  const std::int32_t partition = record.partition.value_or(RD_KAFKA_PARTITION_UA);
  // An empty value is not a null one: it needs an address.
  const void* value = record.value ? record.value->data() : nullptr;
  std::array<rd_kafka_vu_t, 7> fields{};
  fields[0].vtype = RD_KAFKA_VTYPE_RKT;
  fields[0].u.rkt = handle;
  fields[1].vtype = RD_KAFKA_VTYPE_PARTITION;
  fields[1].u.i32 = partition;
  fields[2].vtype = RD_KAFKA_VTYPE_VALUE;
  fields[2].u.mem = {const_cast<void*>(value), record.value ? record.value->size() : 0};
  fields[3].vtype = RD_KAFKA_VTYPE_KEY;
  fields[3].u.mem = {record.key.empty() ? nullptr : const_cast<char*>(record.key.data()),
                     record.key.size()};
  fields[4].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
  fields[4].u.i = RD_KAFKA_MSG_F_COPY;
  fields[5].vtype = RD_KAFKA_VTYPE_TIMESTAMP;
  fields[5].u.i64 = record.timestamp / 1'000'000;
  fields[6].vtype = RD_KAFKA_VTYPE_OPAQUE;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an opaque number travels as librdkafka wants it
  fields[6].u.ptr = reinterpret_cast<void*>(beside);
  std::vector<rd_kafka_vu_t> with_headers;
  const rd_kafka_vu_t* all = fields.data();
  std::size_t count = fields.size();
  if (headers != nullptr) {
    with_headers.assign(fields.begin(), fields.end());
    rd_kafka_vu_t field{};
    field.vtype = RD_KAFKA_VTYPE_HEADERS;
    field.u.headers = headers;
    with_headers.push_back(field);
    all = with_headers.data();
    count = with_headers.size();
  }
  const Kafka<rd_kafka_error_t> error(rd_kafka_produceva(client_->get(), all, count));
  if (!error) return core::ok();
  {
    const core::MutexLock lock(mutex_);
    --on_the_way_[round];
  }
  if (headers != nullptr) rd_kafka_headers_destroy(headers);
  const auto code = rd_kafka_error_code(error.get());
  if (kafka_code(code) == core::Code::not_found) return context_.missing(record.topic);
  return core::Error{kafka_code(code),
                     "topic " + record.topic + ": " + rd_kafka_error_string(error.get())};
}

void KafkaProducer::serve(milliseconds timeout) {
  rd_kafka_poll(client_->get(), static_cast<int>(timeout.count()));
}

std::optional<core::Error> KafkaProducer::take_failure() {
  const core::MutexLock lock(mutex_);
  return std::exchange(failure_, std::nullopt);
}

core::Status KafkaProducer::flush(milliseconds timeout) {
  const auto error = rd_kafka_flush(client_->get(), static_cast<int>(timeout.count()));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return core::Error{core::Code::deadline_exceeded,
                       std::to_string(rd_kafka_outq_len(client_->get())) +
                           " records are not delivered to " + context_.address + " yet"};
  }
  if (auto failure = take_failure()) return std::move(*failure);
  return core::ok();
}

core::Status KafkaProducer::deliver(std::chrono::steady_clock::time_point deadline) {
  std::size_t waited = 0;
  bool both = false;  // an earlier call gave up on its round
  {
    const core::MutexLock lock(mutex_);
    waited = round_;
    both = on_the_way_[1 - waited] != 0;
    if (!both) round_ = 1 - waited;
  }
  for (;;) {
    std::size_t left = 0;
    {
      const core::MutexLock lock(mutex_);
      left = on_the_way_[waited] + (both ? on_the_way_[1 - waited] : 0);
    }
    if (left == 0) break;
    if (ms_until(deadline) == 0) {
      return core::Error{
          core::Code::deadline_exceeded,
          std::to_string(left) + " records are not delivered to " + context_.address + " yet"};
    }
    rd_kafka_poll(client_->get(), ms_until(deadline));
  }
  if (auto failure = take_failure()) return std::move(*failure);
  return core::ok();
}

void KafkaProducer::purge() {
  rd_kafka_purge(client_->get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT |
                                     RD_KAFKA_PURGE_F_NON_BLOCKING);
  rd_kafka_poll(client_->get(), 0);
}

core::Status KafkaProducer::learn_partitions(milliseconds timeout) {
  const auto metadata = kafka_metadata(client_->get(), timeout, context_.address);
  if (!metadata) return metadata.error();
  const core::MutexLock lock(mutex_);
  for (int i = 0; i < (*metadata)->topic_cnt; ++i) {
    const auto& found = (*metadata)->topics[i];
    if (found.partition_cnt == 0) continue;
    const std::string name(context_.short_name(found.topic));
    if (context_.full_name(name) == found.topic) known_partitions_[name] = found.partition_cnt;
  }
  return core::ok();
}

core::Result<std::int32_t> KafkaProducer::partitions(std::string_view name, milliseconds timeout) {
  for (const bool asked : {false, true}) {
    {
      const core::MutexLock lock(mutex_);
      const auto it = known_partitions_.find(name);
      if (it != known_partitions_.end()) return it->second;
      if (asked || context_.find(name) == nullptr) return context_.missing(name);
    }
    if (auto status = learn_partitions(timeout); !status) return status.error();
  }
  return context_.missing(name);
}

bool KafkaProducer::knows(std::string_view name) {
  const core::MutexLock lock(mutex_);
  return known_partitions_.contains(name);
}

core::Status KafkaProducer::warm_up(std::string_view name, milliseconds timeout) {
  rd_kafka_topic_t* handle = nullptr;
  {
    const core::MutexLock lock(mutex_);
    auto found = topic(name);
    if (!found) return found.error();
    if ((*found)->warm) return core::ok();
    handle = (*found)->handle.get();
  }
  if (auto count = partitions(name, timeout); !count) return count.error();
  const rd_kafka_metadata_t* metadata = nullptr;
  const auto error =
      rd_kafka_metadata(client_->get(), 0, handle, &metadata, static_cast<int>(timeout.count()));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return kafka_error(error, "kafka at " + context_.address);
  }
  rd_kafka_metadata_destroy(metadata);
  const core::MutexLock lock(mutex_);
  topics_.find(name)->second.warm = true;
  return core::ok();
}

}  // namespace tocsin::ingest
