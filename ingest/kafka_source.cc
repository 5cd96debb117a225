#include "ingest/kafka_source.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace tocsin::ingest {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kCommittedTimeout{10'000};
constexpr milliseconds kMetadataTimeout{5'000};
constexpr milliseconds kSeekTimeout{5'000};
constexpr milliseconds kReadAllPatience{30'000};
constexpr int kBackoffVersion = 0x02020000;  // fetch.queue.backoff.ms exists from 2.2

milliseconds left_until(Clock::time_point deadline) {
  return std::max(milliseconds{0},
                  std::chrono::duration_cast<milliseconds>(deadline - Clock::now()));
}

std::optional<std::string_view> header_of(const void* native, std::string_view name) {
  const auto* message = static_cast<const rd_kafka_message_t*>(native);
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return {};
  const std::string terminated(name);
  const void* value = nullptr;
  std::size_t size = 0;
  if (rd_kafka_header_get_last(headers, terminated.c_str(), &value, &size) !=
      RD_KAFKA_RESP_ERR_NO_ERROR) {
    return {};
  }
  return std::string_view(static_cast<const char*>(value), size);
}

using Settings = std::vector<std::pair<std::string_view, std::string>>;

/// streaming-on-kafka §6.13.
Settings consumer_settings(const std::string& group, const std::string& client_id, bool small,
                           milliseconds fetch_wait) {
  Settings settings = {
      {"group.id", group},
      {"client.id", client_id},
      {"enable.auto.commit", "false"},
      {"enable.auto.offset.store", "false"},
      {"isolation.level", "read_committed"},
      {"auto.offset.reset", "error"},
      {"enable.partition.eof", "true"},
      {"partition.assignment.strategy", "cooperative-sticky"},
      {"session.timeout.ms", "10000"},
      {"heartbeat.interval.ms", "2500"},
      {"max.poll.interval.ms", "120000"},
      {"socket.timeout.ms", "10000"},
      {"socket.nagle.disable", "true"},
      {"socket.keepalive.enable", "true"},
      {"reconnect.backoff.max.ms", "2000"},
      {"allow.auto.create.topics", "false"},
      {"fetch.wait.max.ms", std::to_string(fetch_wait.count())},
      {"fetch.error.backoff.ms", "100"},
      {"queued.min.messages", "1000000"},
  };
  if (rd_kafka_version() >= kBackoffVersion) {
    settings.emplace_back("fetch.queue.backoff.ms", "10");
    settings.emplace_back("queued.max.messages.kbytes", small ? "16384" : "65536");
  } else {
    // Until 2.2 a full queue means a pause of a whole second: room for two seconds' worth.
    settings.emplace_back("queued.max.messages.kbytes", small ? "16384" : "524288");
  }
  return settings;
}

}  // namespace

KafkaSource::KafkaSource(const KafkaContext& context, SourceOptions options)
    : context_(context),
      options_(std::move(options)),
      gaps_(context.telemetry.counter("tocsin_ingest_gaps_total",
                                      "Times a reader found records gone or damaged")),
      rebalances_(context.telemetry.counter("tocsin_ingest_rebalances_total",
                                            "Assignments and revocations of partitions")) {}

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

Kafka<rd_kafka_topic_partition_list_t> KafkaSource::list_of(
    std::span<const core::StreamPartition> partitions) const {
  Kafka<rd_kafka_topic_partition_list_t> list(
      rd_kafka_topic_partition_list_new(static_cast<int>(partitions.size())));
  for (const auto& where : partitions) {
    rd_kafka_topic_partition_list_add(list.get(), context_.full_name(where.stream).c_str(),
                                      where.partition);
  }
  return list;
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

// ── Assignment ───────────────────────────────────────────────────────────────────────────────

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
    Partition* one = find(fresh[static_cast<std::size_t>(i)]);
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
  if (!paused.empty()) rd_kafka_pause_partitions(client, list_of(paused).get());
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
    if (find(where) != nullptr) continue;
    Partition one;
    one.where = where;
    one.paused = true;
    if (options_.start == Start::end) one.start = RD_KAFKA_OFFSET_END;
    assigned_.push_back(std::move(one));
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
    Partition* one = find(position.where);
    if (one == nullptr || position.next < 0) continue;
    one->next = one->start = position.next;
  }
  if (options_.listener == nullptr) {
    for (const auto& position : positions) {
      if (Partition* one = find(position.where)) one->paused = false;
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
    Partition* one = find(where);
    if (one == nullptr) continue;
    const bool wants_to_run = !one->paused;
    one->paused = true;
    if (auto status = move(*one, one->start); !status) return status;
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
  const auto is_gone = [&](const core::StreamPartition& where) {
    return std::find(gone.begin(), gone.end(), where) != gone.end();
  };
  std::erase_if(assigned_, [&](const Partition& one) { return is_gone(one.where); });
  std::erase_if(unannounced_, is_gone);
  last_found_ = 0;
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
  return assign_all();
}

core::Result<std::vector<core::Position>> KafkaSource::committed(
    std::span<const core::Position> positions, milliseconds timeout) const {
  std::vector<core::StreamPartition> partitions;
  for (const auto& position : positions) partitions.push_back(position.where);
  const auto list = list_of(partitions);
  const auto deadline = Clock::now() + timeout;
  for (;;) {
    const auto error = rd_kafka_committed(client_->get(), list.get(),
                                          static_cast<int>(left_until(deadline).count()));
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

core::RecordView KafkaSource::view_of(const rd_kafka_message_t& message) const {
  core::RecordView view;
  view.topic = view.stream = context_.short_name(rd_kafka_topic_name(message.rkt));
  view.partition = message.partition;
  view.offset = message.offset;
  const std::int64_t time = rd_kafka_message_timestamp(&message, nullptr);
  view.timestamp = time > 0 ? time * 1'000'000 : 0;
  if (message.key != nullptr) {
    view.key = std::string_view(static_cast<const char*>(message.key), message.key_len);
  }
  view.tombstone = message.payload == nullptr;
  if (!view.tombstone) {
    view.value = {static_cast<const std::byte*>(message.payload), message.len};
  }
  view.native = &message;
  view.find_header = header_of;
  return view;
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
  handler(view_of(message));
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
    const int wait = count == 0 ? static_cast<int>(left_until(deadline).count()) : 0;
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
  const auto list = list_of({&partition.where, 1});
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
  const auto list = list_of(all);
  for (std::size_t i = 0; i < assigned_.size(); ++i) list->elems[i].offset = assigned_[i].start;
  const auto error = rd_kafka_assign(client_->get(), list.get());
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return kafka_error(error, "assigning partitions");
  if (!paused.empty()) rd_kafka_pause_partitions(client_->get(), list_of(paused).get());
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
  const auto error = rd_kafka_pause_partitions(client_->get(), list_of(changed).get());
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
  const auto error = rd_kafka_resume_partitions(client_->get(), list_of(changed).get());
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

// ── Restoring and leaving ────────────────────────────────────────────────────────────────────

core::Result<rd_kafka_t*> KafkaSource::restore_client() {
  if (restore_) return restore_->get();
  const auto settings =
      consumer_settings("tocsin-restore", kafka_client_id("restore"), false, milliseconds{10});
  auto conf = make_kafka_conf(context_.properties, KafkaRole::consumer, settings);
  if (!conf) return conf.error();
  auto client = KafkaClient::start(std::move(*conf), KafkaRole::consumer, this, context_.log);
  if (!client) return client.error();
  restore_ = std::move(*client);
  rd_kafka_poll_set_consumer(restore_->get());
  return restore_->get();
}

core::Status KafkaSource::read_all(std::string_view topic, std::int32_t partition,
                                   std::optional<core::WallTime> since,
                                   core::RecordHandler handler) {
  if (closed_) return core::Error{core::Code::failed_precondition, "the kafka source is closed"};
  auto client = restore_client();
  if (!client) return client.error();
  const core::StreamPartition where{std::string(topic), partition};
  const auto list = list_of({&where, 1});
  list->elems[0].offset = RD_KAFKA_OFFSET_BEGINNING;
  if (since) {
    list->elems[0].offset = std::max<std::int64_t>(
        0, std::chrono::floor<milliseconds>(since->time_since_epoch()).count());
    const auto asked = rd_kafka_offsets_for_times(
        *client, list.get(), static_cast<int>(milliseconds(kReadAllPatience).count()));
    const auto error = asked != 0 ? asked : list->elems[0].err;
    if (error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
        error == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION ||
        error == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC) {
      return context_.missing(topic);
    }
    if (error != 0) return kafka_error(error, "looking for a time in " + where.stream);
    if (list->elems[0].offset < 0) return core::ok();  // everything is older
  }
  if (const auto error = rd_kafka_assign(*client, list.get()); error != 0) {
    return kafka_error(error, "assigning " + where.stream);
  }
  core::Status result = core::ok();
  auto deadline = Clock::now() + kReadAllPatience;
  for (;;) {
    const Kafka<rd_kafka_message_t> message(rd_kafka_consumer_poll(*client, 100));
    if (!message) {
      if (Clock::now() < deadline) continue;
      result = core::Error{
          core::Code::deadline_exceeded,
          "reading " + where.stream + " from " + context_.address + ": nothing came for 30 s"};
      break;
    }
    // The event, not the high watermark: control records of transactions occupy offsets too.
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) break;
    if (message->err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
        message->err == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION) {
      result = context_.missing(topic);
      break;
    }
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      result = kafka_error(message->err, "reading " + where.stream);
      if (!result.error().retryable() || Clock::now() >= deadline) break;
      result = core::ok();
      continue;
    }
    deadline = Clock::now() + kReadAllPatience;
    handler(view_of(*message));
  }
  rd_kafka_assign(*client, nullptr);
  return result;
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
  restore_.reset();
  pulse_.reset();
  {
    const std::lock_guard lock(wake_mutex_);
    if (queue_ != nullptr) rd_kafka_queue_destroy(queue_);
    queue_ = nullptr;
  }
  client_.reset();
}

}  // namespace tocsin::ingest
