// Publishes each notification to a Kafka topic of the user's, as a CloudEvent.
//
// Sends       one record per notification, in the transaction that says it was delivered: a consumer with
//             isolation.level=read_committed sees each once, across kill -9.
// Retries     while the topic does not take it; each attempt first tries it in a transaction that is taken
//             back, so a topic that is gone holds up nobody else's messages.
// Idempotent  yes; the id of the event is the notification's.
// Needs       transport.kafka, a topic that exists, the permission to write to it.
// Source      CloudEvents Kafka protocol binding 1.0.2; KIP-98.

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "actions/contract/descriptor.h"
#include "actions/message/event_json.h"
#include "actions/message/rendered.h"
#include "actions/message/template.h"
#include "core/json.h"

namespace tocsin::actions {
namespace {

constexpr std::size_t kMaxTopic = 249;
constexpr std::size_t kMaxEvent = std::size_t{1} << 20;
constexpr std::string_view kStructured = "application/cloudevents+json; charset=UTF-8";
constexpr std::array<std::string_view, 6> kKeyNames{"group", "run",     "job",
                                                    "rule",  "cluster", "integration"};

struct KafkaConfig final : ActionConfig {
  std::string topic;
  std::string format = "structured";
  std::string key = "{{group}}";
  std::map<std::string, std::string> headers;

  [[nodiscard]] core::Result<std::unique_ptr<core::Action>> build(
      const Environment& environment, const IntegrationName& name,
      const CommonConfig& common) const override;
  [[nodiscard]] std::vector<std::string> topics() const override { return {topic}; }
};

core::Value key_view(const core::Notification& notification, const std::string& cluster) {
  core::ValueMap out{{"group", notification.group_hash},
                     {"cluster", cluster},
                     {"integration", notification.integration}};
  if (!notification.issues.empty()) {
    const core::Issue& top = notification.issues.front().issue;
    out.emplace_back("run", top.run.uid.nil() ? std::string() : to_text(top.run.uid));
    out.emplace_back("job", top.run.job);
    out.emplace_back("rule", top.rule);
  }
  return out;
}

// Content mode binary: attributes are headers, data is the value.
core::Status as_binary(const std::string& event, core::OutRecord& record) {
  const auto parsed = core::parse_json(event, kMaxEvent);
  if (!parsed) return parsed.error();
  const auto* map = core::as<core::ValueMap>(*parsed);
  if (map == nullptr) return core::invalid_argument("the stored event is no object");
  for (const auto& [name, value] : *map) {
    if (name == "data") {
      record.value = core::to_json(value);
    } else if (const auto* text = core::as<std::string>(value)) {
      record.headers.emplace_back(
          name == "datacontenttype" ? std::string("content-type") : "ce_" + name, *text);
    }
  }
  return core::ok();
}

core::OutcomeClass class_of(const core::Error& error) {
  if (error.code == core::Code::invalid_argument) return core::OutcomeClass::bad_payload;
  return error.retryable() ? core::OutcomeClass::transient : core::OutcomeClass::configuration;
}

class KafkaTopic final : public core::Action {
 public:
  KafkaTopic(const KafkaConfig& cfg, Template key, const Environment& environment)
      : cfg_(cfg),
        key_(std::move(key)),
        sender_{environment.cluster, environment.external_url, environment.place},
        try_record_(environment.try_record) {}

  [[nodiscard]] core::Result<std::string> render(
      const core::Notification& notification) const override {
    auto key = key_.render(key_view(notification, sender_.cluster));
    if (!key) return key.error();
    return stored(
        {std::string(kStructured), cloud_event(notification, sender_), {{"key", std::move(*key)}}});
  }

  core::AttemptOutcome execute(const core::Notification& notification, std::uint32_t /*attempt*/,
                               std::chrono::milliseconds /*budget*/) override {
    core::AttemptOutcome out;
    auto record = record_of(notification);
    if (const auto taken = record ? try_record_(*record) : core::Status(record.error()); !taken) {
      out.outcome = class_of(taken.error());
      out.code = to_string(taken.error().code);
      out.detail = taken.error().message;
      return out;
    }
    out.code = "committed";
    out.detail = "topic " + cfg_.topic + ", " + std::to_string(record->value->size()) +
                 " bytes, key " + (record->key.empty() ? "none" : record->key);
    out.records.push_back(std::move(*record));
    return out;
  }

 private:
  // Of what was stored when it was decided: later only ids of the issues are at hand.
  [[nodiscard]] core::Result<core::OutRecord> record_of(
      const core::Notification& notification) const {
    std::string kept = notification.rendered;
    if (kept.empty()) {
      auto fresh = render(notification);
      if (!fresh) return fresh.error();
      kept = std::move(*fresh);
    }
    const auto rendered = parse_rendered(kept);
    if (!rendered) return rendered.error();
    core::OutRecord out;
    out.topic = "/" + cfg_.topic;  // a name of its own, not one of Tocsin's
    out.key = rendered->field("key");
    if (cfg_.format == "binary") {
      if (const auto split = as_binary(rendered->body, out); !split) return split.error();
    } else {
      out.headers.emplace_back("content-type", kStructured);
      out.value = rendered->body;
    }
    out.headers.insert(out.headers.end(), cfg_.headers.begin(), cfg_.headers.end());
    return out;
  }

  KafkaConfig cfg_;
  Template key_;
  Sender sender_;
  std::function<core::Status(const core::OutRecord&)> try_record_;
};

core::Result<std::unique_ptr<core::Action>> KafkaConfig::build(
    const Environment& environment, const IntegrationName& name,
    const CommonConfig& /*common*/) const {
  if (!environment.try_record) {
    return core::Error{core::Code::failed_precondition,
                       name.id + ": topics of yours need transport.kafka"};
  }
  auto made = Template::parse(key, Escape::none);
  if (!made) return made.error();
  return std::unique_ptr<core::Action>(
      std::make_unique<KafkaTopic>(*this, std::move(*made), environment));
}

bool is_topic_name(const std::string& name) {
  return !name.empty() && name.size() <= kMaxTopic && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
         });
}

void check_key(config::Reader& in, const KafkaConfig& cfg) {
  const auto made = Template::parse(cfg.key, Escape::none);
  if (!made) {
    in.error("key", made.error().message);
    return;
  }
  for (const std::string& name : made->names()) {
    if (std::find(kKeyNames.begin(), kKeyNames.end(), name) == kKeyNames.end()) {
      in.error("key",
               "unknown name " + name + ": expected group, run, job, rule, cluster or integration");
    }
  }
}

std::shared_ptr<const ActionConfig> read_kafka(config::Reader& in) {
  auto cfg = std::make_shared<KafkaConfig>();
  in.required("topic", cfg->topic, "its name as Kafka has it; none of Tocsin's own");
  in.optional("format", cfg->format, config::one_of({"structured", "binary"}),
              "CloudEvents: the whole event as JSON, or attributes as headers");
  in.optional(
      "key", cfg->key,
      "of the record, with {{group}}, {{run}}, {{job}}, {{rule}}, {{cluster}}, {{integration}}");
  in.optional("headers", cfg->headers, "further headers of each record");
  if (in.describing()) return cfg;
  if (!cfg->topic.empty() && !is_topic_name(cfg->topic)) {
    in.error("topic", "expected up to 249 letters, digits, '.', '_' and '-'");
  }
  for (const auto& [name, value] : cfg->headers) {
    if (name.starts_with("ce_") || name == "content-type") {
      in.error("headers", name + " is the event's own");
    }
  }
  check_key(in, *cfg);
  return cfg;
}

}  // namespace

ActionDescriptor kafka() {
  return {"kafka",
          "Publishes to a Kafka topic of yours.",
          {.coalesce = false, .dedup = true, .stateful = true},
          read_kafka,
          {}};
}

}  // namespace tocsin::actions
