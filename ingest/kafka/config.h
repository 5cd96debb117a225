// From our section `transport.kafka` to librdkafka's configuration, and from its errors to ours.
// Not a door: includes librdkafka.
#pragma once

#include <librdkafka/rdkafka.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/result.h"
#include "core/value.h"
#include "ingest/transport.h"

namespace tocsin::ingest {

struct KafkaDeleter {
  void operator()(rd_kafka_conf_t* conf) const noexcept { rd_kafka_conf_destroy(conf); }
  void operator()(rd_kafka_topic_partition_list_t* list) const noexcept {
    rd_kafka_topic_partition_list_destroy(list);
  }
  void operator()(rd_kafka_message_t* message) const noexcept { rd_kafka_message_destroy(message); }
  void operator()(rd_kafka_error_t* error) const noexcept { rd_kafka_error_destroy(error); }
  void operator()(rd_kafka_topic_t* topic) const noexcept { rd_kafka_topic_destroy(topic); }
  void operator()(const rd_kafka_metadata_t* metadata) const noexcept {
    rd_kafka_metadata_destroy(metadata);
  }
};
template <typename T>
using Kafka = std::unique_ptr<T, KafkaDeleter>;

enum class KafkaRole { consumer, producer };
using KafkaSettings = std::span<const std::pair<std::string_view, std::string>>;

/// `ours` first, then the user's properties, then the user's for the role. invalid_argument in
/// librdkafka's own words.
core::Result<Kafka<rd_kafka_conf_t>> make_kafka_conf(const core::Value& properties, KafkaRole role,
                                                     KafkaSettings ours);

/// A client and what its callbacks find. Leaving a group and destroying may take librdkafka seconds
/// when a broker does not answer; then that goes on in a thread of its own. Nothing is called back
/// once either has begun: owner() is null then.
class KafkaClient {
 public:
  struct Callbacks {
    std::atomic<core::Log*> log = nullptr;
    std::atomic<void*> owner = nullptr;  // of the rebalance, error and delivery callbacks
    std::atomic<bool> assigned = false;
  };

  /// `owner`: what callbacks registered on `conf` get through owner(). Log lines go to `log`.
  static core::Result<std::unique_ptr<KafkaClient>> start(Kafka<rd_kafka_conf_t> conf,
                                                          KafkaRole role, void* owner,
                                                          core::Log& log);
  ~KafkaClient();
  KafkaClient(const KafkaClient&) = delete;
  KafkaClient& operator=(const KafkaClient&) = delete;

  [[nodiscard]] rd_kafka_t* get() const noexcept { return client_; }
  /// What start() was given; null once the client is being destroyed.
  static void* owner(void* opaque) noexcept { return static_cast<Callbacks*>(opaque)->owner; }
  /// A member of a group: says goodbye to it when destroyed, waiting at most `patience`.
  /// `assigned`: whether it was ever given partitions.
  void leave_group(std::chrono::milliseconds patience, bool assigned) noexcept {
    leaves_ = true;
    patience_ = patience;
    callbacks_->assigned = assigned;
  }
  /// For the rebalance callback when owner() is null: takes note and gives everything back.
  static void decline(rd_kafka_t* client, void* opaque) noexcept;

 private:
  static void destroy(rd_kafka_t* client, const Callbacks& callbacks, bool leaves) noexcept;
  KafkaClient() : callbacks_(std::make_shared<Callbacks>()) {}
  rd_kafka_t* client_ = nullptr;
  std::shared_ptr<Callbacks> callbacks_;
  bool leaves_ = false;
  std::chrono::milliseconds patience_{1500};
};

/// Topics, partitions and leaders as the cluster has them now.
core::Result<Kafka<const rd_kafka_metadata_t>> kafka_metadata(rd_kafka_t* client,
                                                              std::chrono::milliseconds timeout,
                                                              const std::string& address);

/// What sources and publishers of one cluster share; outlives them.
struct KafkaContext {
  core::Value properties;
  std::string address;  // bootstrap.servers, for messages
  std::string prefix;
  std::vector<TopicSpec> plan;
  core::Log& log;
  core::Telemetry& telemetry;
  std::vector<TopicSpec> foreign =
      {};  // topics of the user's; their short names begin with a slash

  [[nodiscard]] std::string full_name(std::string_view topic) const {
    if (topic.starts_with('/')) return std::string(topic.substr(1));
    return full_topic_name(prefix, topic);
  }
  /// "issues" for "tocsin.issues.v1"; borrows from it.
  [[nodiscard]] std::string_view short_name(std::string_view full) const noexcept;
  [[nodiscard]] const TopicSpec* find(std::string_view topic) const noexcept;
  /// not_found with the command that creates it.
  [[nodiscard]] core::Error missing(std::string_view topic) const;
};

/// "tocsin-<part>@<host>/<pid>".
std::string kafka_client_id(std::string_view part);

/// bootstrap.servers as the user wrote it.
std::string kafka_address(const core::Value& properties);

/// What a code means to our callers: retry, wrong credentials, missing, fenced, ….
core::Code kafka_code(rd_kafka_resp_err_t error) noexcept;
core::Error kafka_error(rd_kafka_resp_err_t error, std::string_view doing);

}  // namespace tocsin::ingest
