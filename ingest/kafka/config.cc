#include "ingest/kafka/config.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <future>
#include <span>
#include <thread>
#include <variant>

#include "config/config.h"
#include "core/text.h"

namespace tocsin::ingest {
namespace {

constexpr std::string_view kFileSuffix = "_file";

/// What Tocsin's correctness rests on is not for the file to change.
constexpr std::array<std::string_view, 5> kReserved = {
    "group.id", "transactional.id", "enable.auto.commit", "enable.auto.offset.store",
    "enable.partition.eof"};

std::string to_property(const core::Value& value) {
  if (const auto* text = core::as<std::string>(value)) return *text;
  if (const auto* list = core::as<core::ValueList>(value)) {
    std::string all;
    for (const auto& item : *list) all += (all.empty() ? "" : ",") + to_property(item);
    return all;
  }
  return core::to_json(value);
}

/// "; did you mean …?", of the properties that librdkafka has; empty where none is near.
std::string nearest_property(rd_kafka_conf_t* conf, const std::string& name) {
  std::vector<std::string> known{"bootstrap.servers"};  // an alias, which the dump leaves out
  std::size_t count = 0;
  const char** all = rd_kafka_conf_dump(conf, &count);
  for (std::size_t i = 0; i + 1 < count; i += 2) known.emplace_back(all[i]);
  rd_kafka_conf_dump_free(all, count);
  const std::string near = core::nearest(name, known);
  return near.empty() ? "" : "; did you mean \"" + near + "\"?";
}

core::Status set(rd_kafka_conf_t* conf, const std::string& name, const std::string& value) {
  std::array<char, 512> text{};
  const auto done = rd_kafka_conf_set(conf, name.c_str(), value.c_str(), text.data(), text.size());
  if (done == RD_KAFKA_CONF_OK) return core::ok();
  return core::invalid_argument(
      "transport.kafka." + name + ": " + text.data() +
      (done == RD_KAFKA_CONF_UNKNOWN ? nearest_property(conf, name) : ""));
}

core::Status set_user(rd_kafka_conf_t* conf, const std::string& key, const core::Value& value) {
  if (std::find(kReserved.begin(), kReserved.end(), key) != kReserved.end()) {
    return core::invalid_argument("transport.kafka." + key +
                                  ": set by Tocsin itself, because its guarantees rest on it");
  }
  if (std::holds_alternative<core::ValueMap>(value.storage())) {
    return core::invalid_argument("transport.kafka." + key +
                                  ": a map is only allowed for `consumer` and `producer`");
  }
  if (!key.ends_with(kFileSuffix)) return set(conf, key, to_property(value));
  const std::string name = key.substr(0, key.size() - kFileSuffix.size());
  const auto secret = config::Secret::from_file(to_property(value)).reveal();
  if (!secret) return secret.error().in("transport.kafka." + key);
  return set(conf, name, *secret);
}

core::Status set_all(rd_kafka_conf_t* conf, const core::ValueMap& properties,
                     std::string_view role) {
  const core::ValueMap* overrides = nullptr;
  for (const auto& [key, value] : properties) {
    if (key == "consumer" || key == "producer") {
      const auto* map = core::as<core::ValueMap>(value);
      if (map == nullptr) {
        return core::invalid_argument("transport.kafka." + key + ": expected a map of properties");
      }
      if (key == role) overrides = map;
      continue;
    }
    if (auto status = set_user(conf, key, value); !status) return status;
  }
  if (overrides == nullptr) return core::ok();
  for (const auto& [key, value] : *overrides) {
    if (auto status = set_user(conf, key, value); !status) return status;
  }
  return core::ok();
}

/// Where the system keeps its certificates, among the places of all distributions: the libssl that is linked knows those of the
/// system it was built for, and the hook's may run elsewhere. OpenSSL's own variables still decide.
void find_certificates(rd_kafka_conf_t* conf) {
  if (std::getenv("SSL_CERT_FILE") != nullptr || std::getenv("SSL_CERT_DIR") != nullptr) return;
  (void)set(conf, "ssl.ca.location", "probe");  // a librdkafka without TLS has no such property
}

/// Called from librdkafka's threads.
void forward_log(const rd_kafka_t* client, int level, const char* facility,
                 const char* text) noexcept {
  auto* callbacks = static_cast<KafkaClient::Callbacks*>(rd_kafka_opaque(client));
  core::Log* log = callbacks == nullptr ? nullptr : callbacks->log.load();
  if (log == nullptr) return;
  // syslog levels; lost connections are normal life to us, so even "error" is only a warning.
  // What the library repeats by itself is nothing to look at.
  const bool routine = std::string_view(text).find("retrying") != std::string_view::npos;
  const auto grade = level <= 4 && !routine ? core::Level::warn
                     : level <= 6           ? core::Level::info
                                            : core::Level::debug;
  log->write(grade, "kafka_client_said",
             {{"client", rd_kafka_name(client)}, {"facility", facility}, {"text", text}});
}

}  // namespace

core::Result<Kafka<rd_kafka_conf_t>> make_kafka_conf(const core::Value& properties, KafkaRole role,
                                                     KafkaSettings ours) {
  Kafka<rd_kafka_conf_t> conf(rd_kafka_conf_new());
  find_certificates(conf.get());
  for (const auto& [name, value] : ours) {
    if (auto status = set(conf.get(), std::string(name), value); !status) return status.error();
  }
  const auto* map = core::as<core::ValueMap>(properties);
  if (map == nullptr) {
    return core::invalid_argument("transport.kafka: expected a map of librdkafka properties");
  }
  const std::string_view name = role == KafkaRole::consumer ? "consumer" : "producer";
  if (auto status = set_all(conf.get(), *map, name); !status) return status.error();
  if (kafka_address(properties).empty()) {
    return core::invalid_argument("transport.kafka.bootstrap.servers: missing");
  }
  return conf;
}

core::Result<std::unique_ptr<KafkaClient>> KafkaClient::start(Kafka<rd_kafka_conf_t> conf,
                                                              KafkaRole role, void* owner,
                                                              core::Log& log) {
  std::unique_ptr<KafkaClient> client(new KafkaClient);
  client->callbacks_->log = &log;
  client->callbacks_->owner = owner;
  rd_kafka_conf_set_opaque(conf.get(), client->callbacks_.get());
  rd_kafka_conf_set_log_cb(conf.get(), forward_log);
  std::array<char, 512> text{};
  client->client_ =
      rd_kafka_new(role == KafkaRole::consumer ? RD_KAFKA_CONSUMER : RD_KAFKA_PRODUCER, conf.get(),
                   text.data(), text.size());
  if (client->client_ == nullptr) {
    return core::invalid_argument(std::string("transport.kafka: ") + text.data());
  }
  [[maybe_unused]] auto* taken = conf.release();  // owned by the client now
  return client;
}

void KafkaClient::decline(rd_kafka_t* client, void* opaque) noexcept {
  static_cast<Callbacks*>(opaque)->assigned = true;
  rd_kafka_assign(client, nullptr);
}

void KafkaClient::destroy(rd_kafka_t* client, const Callbacks& callbacks, bool leaves) noexcept {
  if (leaves) {
    // Before 2.3, destroying a cooperative member that joined and was given nothing yet ends the
    // process by an assertion: wait for its partitions, or keep the client for ever.
    constexpr int kFixed = 0x02030000;
    constexpr int kTries = 300;
    const bool careful = rd_kafka_version() < kFixed;
    for (int i = 0; careful && i < kTries && !callbacks.assigned; ++i) {
      const Kafka<rd_kafka_message_t> ignored(rd_kafka_consumer_poll(client, 100));
    }
    if (careful && !callbacks.assigned) return;
    rd_kafka_consumer_close(client);
  }
  rd_kafka_destroy_flags(client, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
}

KafkaClient::~KafkaClient() {
  if (client_ == nullptr) return;
  callbacks_->owner = nullptr;
  // 2.0.2 can hang in here for a lost partition or a frozen broker, so a thread waits for it.
  auto done = std::make_shared<std::promise<void>>();
  auto finished = done->get_future();
  std::thread([client = client_, callbacks = callbacks_, leaves = leaves_, done] {
    destroy(client, *callbacks, leaves);
    done->set_value();
  }).detach();
  if (finished.wait_for(patience_) == std::future_status::ready) return;
  callbacks_->log = nullptr;
}

core::Result<Kafka<const rd_kafka_metadata_t>> kafka_metadata(rd_kafka_t* client,
                                                              std::chrono::milliseconds timeout,
                                                              const std::string& address) {
  const rd_kafka_metadata_t* metadata = nullptr;
  // All topics: asking for one that does not exist would create it on some clusters.
  const auto error =
      rd_kafka_metadata(client, 1, nullptr, &metadata, static_cast<int>(timeout.count()));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return kafka_error(error, "kafka at " + address);
  return Kafka<const rd_kafka_metadata_t>(metadata);
}

std::string_view KafkaContext::short_name(std::string_view full) const noexcept {
  constexpr std::string_view kVersion = ".v1";
  for (const TopicSpec& one : foreign) {
    if (one.full_name == full) return one.name;
  }
  if (full.size() <= prefix.size() + 1 + kVersion.size()) return full;
  return full.substr(prefix.size() + 1, full.size() - prefix.size() - 1 - kVersion.size());
}

const TopicSpec* KafkaContext::find(std::string_view topic) const noexcept {
  const auto it = std::find_if(plan.begin(), plan.end(),
                               [&](const TopicSpec& spec) { return spec.name == topic; });
  if (it != plan.end()) return &*it;
  const auto other = std::find_if(foreign.begin(), foreign.end(),
                                  [&](const TopicSpec& spec) { return spec.name == topic; });
  return other == foreign.end() ? nullptr : &*other;
}

core::Error KafkaContext::missing(std::string_view topic) const {
  if (topic.starts_with('/')) {
    return core::not_found("topic " + full_name(topic) + " does not exist at " + address);
  }
  return core::not_found("topic " + full_name(topic) + " does not exist at " + address +
                         "; `tocsin topics apply` creates it");
}

std::string kafka_client_id(std::string_view part) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return "tocsin-" + std::string(part) + "@" + host.data() + "/" + std::to_string(::getpid());
}

std::string kafka_address(const core::Value& properties) {
  const auto* map = core::as<core::ValueMap>(properties);
  if (map == nullptr) return {};
  for (const auto& [key, value] : *map) {
    if (key == "bootstrap.servers" || key == "metadata.broker.list") return to_property(value);
  }
  return {};
}

namespace {

constexpr rd_kafka_resp_err_t kTimedOut[] = {
    RD_KAFKA_RESP_ERR__TIMED_OUT, RD_KAFKA_RESP_ERR__MSG_TIMED_OUT,
    RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT};
constexpr rd_kafka_resp_err_t kExhausted[] = {RD_KAFKA_RESP_ERR__QUEUE_FULL,
                                              RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED};
constexpr rd_kafka_resp_err_t kInvalid[] = {
    RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE,
    RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, RD_KAFKA_RESP_ERR_INVALID_RECORD,
    RD_KAFKA_RESP_ERR__INVALID_ARG};
constexpr rd_kafka_resp_err_t kUnknown[] = {RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC,
                                            RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION,
                                            RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART};
constexpr rd_kafka_resp_err_t kDenied[] = {RD_KAFKA_RESP_ERR__AUTHENTICATION,
                                           RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED,
                                           RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
                                           RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED,
                                           RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED,
                                           RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED};
constexpr rd_kafka_resp_err_t kFenced[] = {
    RD_KAFKA_RESP_ERR__FENCED,           RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH,
    RD_KAFKA_RESP_ERR_PRODUCER_FENCED,   RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION,
    RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID, RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID,
    RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST};

struct CodeOfErrors {
  std::span<const rd_kafka_resp_err_t> errors;
  core::Code code;
};
constexpr CodeOfErrors kCodes[] = {
    {kTimedOut, core::Code::deadline_exceeded}, {kExhausted, core::Code::resource_exhausted},
    {kInvalid, core::Code::invalid_argument},   {kUnknown, core::Code::not_found},
    {kDenied, core::Code::permission_denied},   {kFenced, core::Code::failed_precondition}};

}  // namespace

core::Code kafka_code(rd_kafka_resp_err_t error) noexcept {
  for (const CodeOfErrors& one : kCodes) {
    if (std::find(one.errors.begin(), one.errors.end(), error) != one.errors.end()) {
      return one.code;
    }
  }
  return core::Code::unavailable;
}

core::Error kafka_error(rd_kafka_resp_err_t error, std::string_view doing) {
  return {kafka_code(error), std::string(doing) + ": " + rd_kafka_err2str(error) + " (" +
                                 rd_kafka_err2name(error) + ")"};
}

}  // namespace tocsin::ingest
