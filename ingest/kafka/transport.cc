#include "ingest/kafka/transport.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "core/mutex.h"
#include "ingest/kafka/deadline.h"
#include "ingest/kafka/foreign_topics.h"
#include "ingest/kafka/leaders.h"
#include "ingest/kafka/lease.h"
#include "ingest/kafka/publisher.h"
#include "ingest/kafka/source.h"
#include "ingest/kafka/topic_settings.h"

namespace tocsin::ingest {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kAdminTimeout{20'000};

struct AdminDeleter {
  void operator()(rd_kafka_NewTopic_t* topic) const noexcept { rd_kafka_NewTopic_destroy(topic); }
  void operator()(rd_kafka_AdminOptions_t* options) const noexcept {
    rd_kafka_AdminOptions_destroy(options);
  }
  void operator()(rd_kafka_queue_t* queue) const noexcept { rd_kafka_queue_destroy(queue); }
  void operator()(rd_kafka_event_t* event) const noexcept { rd_kafka_event_destroy(event); }
};
template <typename T>
using Admin = std::unique_ptr<T, AdminDeleter>;

core::Result<Admin<rd_kafka_NewTopic_t>> new_topic(const TopicSpec& spec) {
  std::array<char, 512> text{};
  Admin<rd_kafka_NewTopic_t> topic(rd_kafka_NewTopic_new(
      spec.full_name.c_str(), spec.partitions, spec.replication, text.data(), text.size()));
  if (!topic) return core::invalid_argument("topic " + spec.full_name + ": " + text.data());
  for (const auto& [name, value] : spec.settings) {
    rd_kafka_NewTopic_set_config(topic.get(), name.c_str(), value.c_str());
  }
  return topic;
}

class KafkaTransport final : public Transport, public core::TopicSettings {
 public:
  KafkaTransport(KafkaContext context, bool create)
      : context_(std::move(context)), create_(create) {}

  core::Result<std::unique_ptr<core::RecordSource>> source(SourceOptions options) override {
    auto source = KafkaSource::open(context_, std::move(options));
    if (!source) return source.error();
    return std::unique_ptr<core::RecordSource>(std::move(*source));
  }

  core::Result<std::unique_ptr<core::RecordPublisher>> publisher(
      PublisherOptions options) override {
    auto publisher = KafkaPublisher::open(context_, std::move(options));
    if (!publisher) return publisher.error();
    return std::unique_ptr<core::RecordPublisher>(std::move(*publisher));
  }

  core::Result<std::unique_ptr<core::Lease>> lease(std::string_view name) override {
    return std::unique_ptr<core::Lease>(std::make_unique<KafkaLease>(context_, std::string(name)));
  }

  core::Status ensure_topics() override {
    auto states = topic_states();
    if (!states) return states.error();
    std::vector<TopicSpec> missing;
    for (auto& state : *states) {
      if (!state.partitions) missing.push_back(std::move(state.wanted));
    }
    if (missing.empty()) return core::ok();
    if (!create_) return refuse(missing);
    if (auto status = create(missing); !status) return status;
    return wait_for(missing);
  }

  core::Result<std::vector<TopicState>> topic_states() override {
    auto client = admin();
    if (!client) return client.error();
    const auto metadata = kafka_metadata(*client, kMetadataTimeout, context_.address);
    if (!metadata) return metadata.error();
    const auto found = ready_partitions(**metadata);
    std::vector<TopicState> states;
    for (const auto& topic : context_.plan) {
      const auto it = found.find(topic.full_name);
      states.push_back({topic, it == found.end() ? std::nullopt : std::optional(it->second)});
    }
    return states;
  }

  core::Result<std::vector<core::TopicComparison>> compare() override {
    auto client = admin();
    if (!client) return client.error();
    return compare_kafka_settings(*client, context_);
  }

  core::Status apply(const std::vector<core::TopicComparison>& comparisons) override {
    auto client = admin();
    if (!client) return client.error();
    return apply_kafka_settings(*client, context_, comparisons);
  }

  core::Status ping(milliseconds timeout) override {
    auto client = admin();
    if (!client) return client.error();
    const rd_kafka_metadata_t* metadata = nullptr;
    const auto error =
        rd_kafka_metadata(*client, 0, nullptr, &metadata, static_cast<int>(timeout.count()));
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
      rd_kafka_metadata_destroy(metadata);
      return core::ok();
    }
    auto what = kafka_error(error, "kafka at " + context_.address);
    if (what.code == core::Code::deadline_exceeded) what.code = core::Code::unavailable;
    return what;
  }

  core::Status allow_topics(const std::vector<std::string>& names) override {
    auto topics = foreign_topics(names, context_.prefix);
    if (!topics) return topics.error();
    context_.foreign = std::move(*topics);
    return core::ok();
  }

  core::Status try_record(const core::OutRecord& record) override { return trial_.take(record); }

  core::Status apply_retention(core::WallTime /*now*/) override { return core::ok(); }
  [[nodiscard]] bool is_kafka() const override { return true; }
  [[nodiscard]] std::string describe() const override { return "kafka " + context_.address; }

 private:
  /// Topics whose partitions all have a leader.
  static std::map<std::string, std::int32_t> ready_partitions(const rd_kafka_metadata_t& metadata) {
    std::map<std::string, std::int32_t> ready;
    for (int i = 0; i < metadata.topic_cnt; ++i) {
      const auto& topic = metadata.topics[i];
      if (topic.partition_cnt > 0) ready[topic.topic] = topic.partition_cnt;
    }
    return ready;
  }

  core::Status refuse(const std::vector<TopicSpec>& missing) const {
    std::string names;
    for (const auto& topic : missing) names += (names.empty() ? "" : ", ") + topic.full_name;
    return core::not_found("missing at " + context_.address + ": " + names +
                           "; `tocsin topics apply` creates them, `tocsin topics export --format "
                           "shell` prints the commands");
  }

  core::Status create(const std::vector<TopicSpec>& missing) {
    auto client = admin();
    if (!client) return client.error();
    std::vector<Admin<rd_kafka_NewTopic_t>> owned;
    std::vector<rd_kafka_NewTopic_t*> topics;
    for (const auto& spec : missing) {
      auto topic = new_topic(spec);
      if (!topic) return topic.error();
      topics.push_back(topic->get());
      owned.push_back(std::move(*topic));
    }
    const Admin<rd_kafka_queue_t> queue(rd_kafka_queue_new(*client));
    const Admin<rd_kafka_AdminOptions_t> options(
        rd_kafka_AdminOptions_new(*client, RD_KAFKA_ADMIN_OP_CREATETOPICS));
    std::array<char, 256> text{};
    const int timeout = static_cast<int>(kAdminTimeout.count());
    rd_kafka_AdminOptions_set_request_timeout(options.get(), timeout, text.data(), text.size());
    rd_kafka_CreateTopics(*client, topics.data(), topics.size(), options.get(), queue.get());
    const Admin<rd_kafka_event_t> event(rd_kafka_queue_poll(queue.get(), timeout + 1000));
    if (!event) {
      return core::Error{core::Code::deadline_exceeded,
                         "creating topics at " + context_.address + ": no answer in time"};
    }
    return result_of(*event);
  }

  core::Status result_of(rd_kafka_event_t& event) const {
    if (const auto error = rd_kafka_event_error(&event); error != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return kafka_error(error, "creating topics at " + context_.address);
    }
    std::size_t count = 0;
    const auto* results =
        rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(&event), &count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto error = rd_kafka_topic_result_error(results[i]);
      // Another process was quicker.
      if (error == RD_KAFKA_RESP_ERR_NO_ERROR || error == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) {
        continue;
      }
      const char* why = rd_kafka_topic_result_error_string(results[i]);
      return core::Error{kafka_code(error), std::string("creating topic ") +
                                                rd_kafka_topic_result_name(results[i]) + ": " +
                                                (why != nullptr ? why : rd_kafka_err2str(error))};
    }
    return core::ok();
  }

  /// Until every broker's metadata has the topics, and their leaders answer: a producer would be told
  /// that they are unknown, or would lose its first records.
  core::Status wait_for(const std::vector<TopicSpec>& topics) {
    auto client = admin();
    if (!client) return client.error();
    const auto deadline = Clock::now() + kAdminTimeout;
    for (;;) {
      const auto metadata = kafka_metadata(*client, kMetadataTimeout, context_.address);
      if (metadata) {
        const auto ready = ready_partitions(**metadata);
        const bool known = std::all_of(topics.begin(), topics.end(), [&](const TopicSpec& topic) {
          return ready.contains(topic.full_name);
        });
        if (known && leaders_answer(*client, topics, kMetadataTimeout)) return core::ok();
      }
      if (Clock::now() >= deadline) {
        return core::Error{core::Code::deadline_exceeded,
                           "topics were created at " + context_.address + " but do not appear"};
      }
      rd_kafka_poll(*client, 50);
    }
  }

  core::Result<rd_kafka_t*> admin() {
    const core::MutexLock lock(mutex_);
    if (!admin_) {
      const std::array<std::pair<std::string_view, std::string>, 3> settings = {{
          {"client.id", kafka_client_id("admin")},
          {"socket.timeout.ms", "10000"},
          {"socket.nagle.disable", "true"},
      }};
      auto conf = make_kafka_conf(context_.properties, KafkaRole::producer, settings);
      if (!conf) return conf.error();
      auto client =
          KafkaClient::start(std::move(*conf), KafkaRole::producer, nullptr, context_.log);
      if (!client) return client.error();
      admin_ = std::move(*client);
    }
    return admin_->get();
  }

  KafkaContext context_;  // `foreign` is set before publishers are opened
  const bool create_;
  KafkaTrial trial_{context_};
  core::Mutex mutex_;
  std::unique_ptr<KafkaClient> admin_ GUARDED_BY(mutex_);
};

}  // namespace

core::Result<std::unique_ptr<Transport>> open_kafka(const TransportConfig& cfg,
                                                    const TopicsConfig& topics, core::Log& log,
                                                    core::Telemetry& telemetry) {
  for (const auto role : {KafkaRole::consumer, KafkaRole::producer}) {
    if (auto conf = make_kafka_conf(cfg.kafka, role, {}); !conf) return conf.error();
  }
  KafkaContext context{cfg.kafka, kafka_address(cfg.kafka), topics.prefix, topic_plan(topics), log,
                       telemetry};
  return std::unique_ptr<Transport>(
      std::make_unique<KafkaTransport>(std::move(context), topics.create));
}

}  // namespace tocsin::ingest
