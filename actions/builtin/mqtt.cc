// Publishes the state of each issue to a topic of its own on an MQTT broker.
//
// Sends       one message per topic of the notification; CloudEvents binary mode: data as payload,
//             attributes as user properties ce_<name>, and notification-id.
// Retries     while the broker is away or does not acknowledge; the connection is made again.
// Idempotent  notification-id is the same in every attempt; QoS 2 is exactly once to the broker.
// Needs       a broker; MQTT v5 (v3.1.1 works, but its acknowledgements cannot say no).
// Source      OASIS MQTT 5.0; CloudEvents MQTT binding 1.0.

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "actions/contract/descriptor.h"
#include "actions/message/episode_words.h"
#include "actions/message/event_json.h"
#include "actions/message/rendered.h"
#include "actions/message/run_words.h"
#include "actions/message/topic_states.h"
#include "actions/transport/mqtt_client.h"
#include "actions/transport/redact.h"
#include "core/identity.h"
#include "core/json.h"

namespace tocsin::actions {
namespace {

struct MqttConfig final : ActionConfig {
  std::string host = "localhost";
  std::uint32_t port = 1883;
  std::string version = "5";
  std::string topic = "training/{cluster}/{job}/issues/{rule}/{fingerprint}";
  std::uint32_t qos = 1;
  bool retain = false;
  core::Duration retained_ttl = std::chrono::hours(1);
  std::string client_id;
  std::string status_topic;
  std::string username;
  config::Secret password;
  bool tls = false;
  std::string ca_file;
  std::string cert_file;
  std::string key_file;

  [[nodiscard]] core::Result<std::unique_ptr<core::Action>> build(
      const Environment& environment, const IntegrationName& name,
      const CommonConfig& common) const override;
  [[nodiscard]] std::string claim() const override {
    if (client_id.empty()) return {};
    return "MQTT client id \"" + client_id + "\" at " + host + ":" + std::to_string(port);
  }
};

// The routers of one cluster that share an outbox have one client id: whoever leads takes the
// session over. Other clusters, journals and integrations have others.
std::string default_client_id(const Environment& environment, const std::string& id) {
  std::string shown = id;
  for (char& c : shown) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '-';
    if (!plain) c = '-';
  }
  const std::string hash = core::make_id("", {environment.cluster, environment.outbox, id});
  return "tocsin-" + shown.substr(0, 40) + "-" + hash.substr(0, 12);
}

// As MQTT takes it: 32 bits, and 0 would be no life at all.
std::uint32_t seconds_of(core::Duration life) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(life).count();
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(seconds, 1, std::numeric_limits<std::uint32_t>::max()));
}

std::string topic_value(std::string_view name, const core::Notification& notification,
                        const core::NotifiedIssue& notified, const Sender& sender) {
  const core::Issue& issue = notified.issue;
  if (name == "cluster") {
    return issue.labels.has(name) ? issue.labels.get(name) : sender.cluster;
  }
  if (name == "job") return issue.run.job;
  if (name == "rule") return issue.rule;
  if (name == "severity") return std::string(to_string(issue.severity));
  if (name == "run_uid") return run_text(issue.run);
  if (name == "fingerprint") return core::fingerprint(issue.labels);
  if (name == "issue_key") return notified.issue_key;
  if (name == "receiver") return notification.receiver;
  return issue.labels.get(name);
}

class Mqtt final : public core::Action {
 public:
  Mqtt(const MqttConfig& cfg, const Environment& environment, const CommonConfig& common,
       std::unique_ptr<MqttClient> client)
      : cfg_(cfg),
        common_(common),
        sender_{environment.cluster, environment.external_url, environment.place},
        client_(std::move(client)) {}

  [[nodiscard]] core::Result<std::string> render(
      const core::Notification& notification) const override {
    core::Notification frame = notification;
    frame.issues.clear();
    frame.suppressed.clear();
    frame.firing = false;
    frame.firing_count = frame.resolved_count = 0;
    std::map<std::string, core::Notification> parts;  // issues that share a topic share a message
    for (const auto& notified : notification.issues) {
      const std::string topic = fill_topic(cfg_.topic, [&](std::string_view name) {
        return topic_value(name, notification, notified, sender_);
      });
      core::Notification& part = parts.try_emplace(topic, frame).first->second;
      const bool firing = notified.issue.status == core::IssueStatus::firing;
      part.firing = part.firing || firing;
      ++(firing ? part.firing_count : part.resolved_count);
      part.issues.push_back(notified);
    }
    std::vector<TopicState> states;
    states.reserve(parts.size());
    for (auto& [topic, part] : parts) {
      keep_named_runs(part);
      states.push_back(state_of(topic, part));
    }
    return stored({std::string(kTopicStates), write_topic_states(states), {}});
  }

  core::AttemptOutcome execute(const core::Notification& notification, std::uint32_t /*attempt*/,
                               std::chrono::milliseconds budget) override {
    core::AttemptOutcome bad;
    bad.outcome = core::OutcomeClass::bad_payload;
    bad.code = "render";
    std::string kept = notification.rendered;
    if (kept.empty()) {
      auto fresh = render(notification);
      if (!fresh) return bad.detail = fresh.error().message, bad;
      kept = std::move(*fresh);
    }
    const auto rendered = parse_rendered(kept);
    if (!rendered) return bad.detail = rendered.error().message, bad;
    const auto states = read_topic_states(*rendered);
    if (!states) return bad.detail = states.error().message, bad;
    if (states->empty()) return bad.detail = "the notification names no issue", bad;

    // What an earlier attempt brought there is not sent again: a large message goes on from where it
    // stood, and what was taken in full is not replaced by a short form.
    const std::set<std::string> done = arrived_.of(notification.notification_id);
    std::vector<MqttMessage> messages;
    for (const TopicState& state : *states) {
      if (!done.contains(state.topic)) messages.push_back(fill(state, notification));
    }
    const std::vector<MqttResult> results = client_->publish(messages, budget);
    core::AttemptOutcome out = joined(notification.notification_id, messages, results);
    if (cfg_.password.set()) {
      if (const auto password = cfg_.password.reveal())
        out.detail = redact(out.detail, {*password});
    }
    out.detail = printable(out.detail, 2048);
    return out;
  }

 private:
  // One outcome of all: what has to be tried again goes before what never will be taken.
  core::AttemptOutcome joined(const std::string& id, const std::vector<MqttMessage>& messages,
                              const std::vector<MqttResult>& results) {
    core::AttemptOutcome out;
    out.code = "arrived";  // where an earlier attempt brought all of it
    std::vector<std::string> taken;
    std::size_t failed = 0;
    std::string first;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      core::AttemptOutcome one = classify(results[i], messages[i].qos);
      if (one.outcome == core::OutcomeClass::delivered) {
        taken.push_back(messages[i].topic);
        if (failed == 0)
          out.code = one.code, out.detail = one.detail, out.confirmed = one.confirmed;
        continue;
      }
      const bool final_one = one.outcome == core::OutcomeClass::bad_payload;
      if (failed == 0 || (!final_one && out.outcome == core::OutcomeClass::bad_payload)) {
        out = std::move(one);
        first = messages[i].topic;
      }
      ++failed;
    }
    if (failed == 0) {
      arrived_.forget(id);
    } else if (!taken.empty() || messages.size() > 1) {
      out.detail = std::to_string(failed) + " of " + std::to_string(messages.size()) +
                   " topics not taken, the first is " + first + ": " + out.detail;
      arrived_.add(id, taken);
    }
    for (std::size_t i = 0; i < std::min<std::size_t>(taken.size(), 10); ++i) {
      out.handles.emplace_back("topic", taken[i]);
    }
    return out;
  }

  [[nodiscard]] TopicState state_of(const std::string& topic,
                                    const core::Notification& part) const {
    TopicState out;
    out.topic = topic;
    out.payload = native(part, sender_);
    out.firing = part.firing;
    out.subject = run_text(part.issues.front().issue.run);
    out.smallest = part.minimal;
    if (out.payload.size() > common_.max_payload.count && !part.minimal) {
      core::Notification small = part;
      small.minimal = true;
      out.payload = native(small, sender_);
      out.smallest = true;
    }
    return out;
  }

  [[nodiscard]] MqttMessage fill(const TopicState& state,
                                 const core::Notification& notification) const {
    MqttMessage out;
    out.topic = state.topic;
    out.payload = state.payload;
    out.smallest = state.smallest;
    out.qos = static_cast<int>(cfg_.qos);
    out.retain = cfg_.retain;
    out.content_type = "application/json";
    const bool passing = cfg_.retain && !state.firing;
    const auto life = passing ? cfg_.retained_ttl : common_.max_age;
    out.expiry_seconds = seconds_of(life);
    out.user_properties = {{"notification-id", notification.notification_id},
                           {"ce_specversion", "1.0"},
                           {"ce_id", notification.notification_id},
                           {"ce_type", "dev.tocsin.notification.v1"},
                           {"ce_source", "/" + sender_.cluster + "/router"},
                           {"ce_subject", state.subject},
                           {"ce_time", core::to_rfc3339(notification.decided_at)}};
    return out;
  }

  MqttConfig cfg_;
  CommonConfig common_;
  Sender sender_;
  std::unique_ptr<MqttClient> client_;
  ArrivedTopics arrived_;
};

core::Result<std::unique_ptr<core::Action>> MqttConfig::build(const Environment& environment,
                                                              const IntegrationName& name,
                                                              const CommonConfig& common) const {
  MqttOptions options;
  options.host = host;
  options.port = port;
  options.version = version == "3.1.1" ? MqttVersion::v311 : MqttVersion::v5;
  options.client_id = client_id.empty() ? default_client_id(environment, name.id) : client_id;
  options.username = username;
  if (password.set()) options.password = [secret = password] { return secret.reveal(); };
  options.tls = tls;
  options.ca_file = ca_file;
  options.cert_file = cert_file;
  options.key_file = key_file;
  options.status_topic = status_topic;
  options.wanted = environment.delivers;
  const auto own = environment.mqtt == nullptr ? mosquitto_connector() : nullptr;
  // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): `own` is made where there is no other
  MqttConnector& connector = own ? *own : *environment.mqtt;
  auto client = connector.connect(options);
  if (!client) return client.error().in(name.id);
  return std::unique_ptr<core::Action>(
      std::make_unique<Mqtt>(*this, environment, common, std::move(*client)));
}

void check(config::Reader& in, const MqttConfig& cfg) {
  if (const auto problem = topic_problem(cfg.topic); !problem.empty()) in.error("topic", problem);
  if (!cfg.status_topic.empty()) {
    const bool fields = cfg.status_topic.find('{') != std::string::npos;
    const auto problem = fields ? "no {fields} here" : topic_problem(cfg.status_topic);
    if (!problem.empty()) in.error("status_topic", problem);
  }
  if (cfg.password.set() && cfg.username.empty()) in.error("password", "username is missing");
  if (cfg.cert_file.empty() != cfg.key_file.empty()) {
    in.error("cert_file", "cert_file and key_file belong together");
  }
  if (!cfg.tls && !(cfg.ca_file + cfg.cert_file).empty())
    in.error("tls", "files without tls: true");
}

std::shared_ptr<const ActionConfig> read_mqtt(config::Reader& in) {
  auto cfg = std::make_shared<MqttConfig>();
  in.optional("host", cfg->host, config::not_empty(), "broker");
  in.optional("port", cfg->port, config::between<std::uint32_t>(1, 65535), "its port");
  in.optional("version", cfg->version, config::one_of({"5", "3.1.1"}), "MQTT version");
  in.optional("topic", cfg->topic,
              "where to publish; {cluster} {job} {rule} {severity} {run_uid} {fingerprint} "
              "{issue_key} {receiver} and any label");
  in.optional("qos", cfg->qos, config::between<std::uint32_t>(0, 2),
              "0 at most once, 1 at least once, 2 exactly once to the broker");
  in.optional("retain", cfg->retain, "the broker keeps the latest state of each topic");
  in.optional("retained_ttl", cfg->retained_ttl, config::positive(),
              "how long a retained state stays after the resolve (MQTT v5)");
  in.optional("client_id", cfg->client_id,
              "must be unique at the broker and stable; default: made of integration, cluster and "
              "transport");
  in.optional("status_topic", cfg->status_topic,
              "retained online, and offline as last will; default none");
  in.optional("username", cfg->username, "for the broker");
  in.secret("password", cfg->password, "for the broker");
  in.optional("tls", cfg->tls, "verify the broker's certificate and encrypt");
  in.optional("ca_file", cfg->ca_file, "authorities to trust instead of the system's");
  in.optional("cert_file", cfg->cert_file, "client certificate, PEM");
  in.optional("key_file", cfg->key_file, "its key, PEM");
  check(in, *cfg);
  return cfg;
}

}  // namespace

ActionDescriptor mqtt() {
  return {"mqtt",
          "Publishes each issue's state to an MQTT topic.",
          {.every_issue = true, .dedup = true},
          read_mqtt,
          {}};
}

}  // namespace tocsin::actions
