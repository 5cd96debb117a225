// What the tests of actions share: a notification to send, a clock moved by hand, fakes of the
// ports.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "actions/actions.h"
#include "actions/transport/http_client.h"
#include "actions/transport/mailer.h"
#include "actions/transport/mqtt_client.h"
#include "actions/transport/mqtt_packet.h"
#include "config/config.h"
#include "core/clock.h"
#include "core/notification.h"

namespace tocsin::actions::testing_support {

using namespace std::chrono_literals;

inline const core::WallTime kStart = *core::parse_rfc3339("2026-01-02T03:04:05.678Z");
inline const core::RunUid kRun = *core::parse_run_uid("4e3046d4-8c1f-5278-82e3-ea3595bc5999");
inline constexpr char kSecret[] = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

class ManualClock final : public core::Clock {
 public:
  [[nodiscard]] core::WallTime now() const override { return now_; }
  [[nodiscard]] core::Duration monotonic() const override { return now_ - kStart; }
  void advance(core::Duration by) { now_ += by; }

 private:
  core::WallTime now_ = kStart;
};

inline core::NotifiedIssue sample_issue(const std::string& tensor = "gradient/conv1.weight") {
  core::Issue issue;
  issue.event_id = "iss_6c5duorosylmw5zjzjdy55lrk5";
  issue.rule = issue.rule_type = "exploding_tensor";
  issue.severity = core::Severity::error;
  issue.labels = {{"rule", "exploding_tensor"},
                  {"severity", "error"},
                  {"job", "digits"},
                  {"run_uid", to_text(kRun)},
                  {"tensor", tensor},
                  {"worker", "worker_0"},
                  {"cluster", "c1"}};
  issue.summary = tensor + " holds 17 values that are NaN or infinite.";
  issue.recommendation = "Lower the learning rate or clip gradients.";
  issue.time = issue.starts_at = kStart - 1s;
  issue.measured_at = kStart - 1s;
  issue.run.uid = kRun;
  issue.run.attempt = 1;
  issue.run.job = "digits";
  issue.run.ref =
      core::ValueMap{{"pid", 4711}, {"pid_start", 998877}, {"boot_id", "b"}, {"host", "h1"}};
  issue.step = 412;
  issue.mode = core::Mode::train;
  issue.evidence.observed = {"non_finite", 17};
  issue.evidence.op = ">=";
  issue.evidence.threshold = core::NamedNumber{"limit", 1};
  return {core::issue_key(issue.labels), 1, issue, std::nullopt};
}

inline core::Notification sample_notification(
    const std::string& id = "ntf_one", core::NotificationKind kind = core::NotificationKind::open) {
  core::Notification out;
  out.notification_id = id;
  out.integration = "oncall/webhook";
  out.type = "webhook";
  out.receiver = "oncall";
  out.group_key = "{}:{job=\"digits\"}";
  out.reason = "first";
  out.kind = kind;
  out.firing = kind != core::NotificationKind::close;
  out.group_labels = {{"job", "digits"}};
  out.issues.push_back(sample_issue());
  if (!out.firing) {
    out.issues[0].issue.status = core::IssueStatus::resolved;
    out.issues[0].issue.resolution = core::Resolution::recovered;
    out.issues[0].issue.ends_at = kStart + 60s;
  }
  out.firing_count = out.firing ? 1 : 0;
  out.resolved_count = out.firing ? 0 : 1;
  out.decided_at = kStart;
  return out;
}

/// The run of sample_issue() as it stands after a stop that saved a checkpoint.
inline core::RunTold stopped_run() {
  core::RunTold out;
  out.run = sample_issue().issue.run;
  out.labels = {{"job", "digits"}, {"team", "vision"}, {"dataset", "mnist"}, {"owner", "ada"}};
  out.outcome = "stopped_by_rule";
  out.exit_code = 77;
  out.step = 414;
  out.started_at = kStart - 600s;
  out.ended_at = kStart + 2s;
  out.hosts = {"gpu-17", "gpu-18"};
  out.world_size = 8;
  core::StopTold stop;
  stop.command_id = "cmd_7f3k";
  stop.requested_by = "router";
  stop.rule = "exploding_tensor";
  stop.mode = "checkpoint_then_stop";
  stop.state = "stopped";
  stop.requested_at = kStart;
  stop.step = 414;
  stop.checkpoint = core::Checkpoint{"/data/digits/414.pt", "gpu-17", 1'340'000'000, 414};
  stop.exit_code = 77;
  stop.answers = {8, 8, 8, 8, 0};
  out.stop = stop;
  return out;
}

/// "loss is NaN", found at step 302 of a run that was stopped for it and then ended.
inline core::Notification stopped_notification() {
  core::Notification out = sample_notification("ntf_stopped");
  core::Issue& issue = out.issues[0].issue;
  issue.labels = {{"rule", "exploding_tensor"}, {"severity", "error"}, {"job", "llm-7b"},
                  {"run_uid", to_text(kRun)},   {"metric", "loss"},    {"worker", "worker_0"}};
  issue.summary = "loss became NaN at train step 302 on worker_0.";
  issue.description = "Its largest magnitude was 5.2 at step 301.";
  issue.annotations = {{"title", "loss is NaN"}};
  issue.run.job = "llm-7b";
  issue.step = 302;
  issue.evidence.observed = {"non_finite", 1};
  issue.status = core::IssueStatus::resolved;
  issue.resolution = core::Resolution::job_ended;
  issue.ends_at = kStart + 2s;
  issue.ending = core::Ending{"The job ended while this fired.", "iss_end", 414, 414};
  out.runs = {stopped_run()};
  out.runs[0].run.job = "llm-7b";
  return out;
}

/// Remembers gauges by their name and values of labels: "tocsin_x{local,stopped}".
class Gauges final : public core::Telemetry {
 public:
  core::Counter& counter(std::string_view, std::string_view, core::MetricLabels) override {
    return null_.counter("", "", {});
  }
  core::Gauge& gauge(std::string_view name, std::string_view, core::MetricLabels labels) override {
    std::string key(name);
    for (const auto& [label, value] : labels) {
      key += (&label == &labels.begin()->first ? "{" : ",") + std::string(value);
    }
    return gauges_[key + (labels.size() == 0 ? "" : "}")];
  }
  core::Histogram& histogram(std::string_view, std::string_view, core::MetricLabels) override {
    return null_.histogram("", "", {});
  }
  [[nodiscard]] double at(const std::string& key) const { return gauges_.at(key).value; }

 private:
  struct Kept final : core::Gauge {
    void set(double to) override { value = to; }
    double value = 0;
  };
  core::NullTelemetry null_;
  std::map<std::string, Kept> gauges_;
};

class FakeHttpClient final : public HttpClient {
 public:
  HttpResult send(const HttpRequest& request) override {
    requests.push_back(request);
    if (answers.empty()) return {HttpFailure::none, "", {204, {}, ""}};
    HttpResult out = answers.front();
    answers.pop_front();
    return out;
  }
  std::vector<HttpRequest> requests;
  std::deque<HttpResult> answers;  // then 204
};

class FakeMailer final : public Mailer {
 public:
  MailResult send(const Mail& mail) override {
    mails.push_back(mail);
    if (answers.empty()) return {MailFailure::none, 250, true, {}, ""};
    MailResult out = answers.front();
    answers.pop_front();
    return out;
  }
  std::vector<Mail> mails;
  std::deque<MailResult> answers;  // then 250
};

class FakeMqtt final : public MqttConnector {
 public:
  core::Result<std::unique_ptr<MqttClient>> connect(const MqttOptions& given) override {
    options = given;
    return std::unique_ptr<MqttClient>(std::make_unique<Client>(*this));
  }
  MqttOptions options;
  std::vector<MqttMessage> messages;
  std::deque<MqttResult> answers;  // then acknowledged
  std::size_t limit = 0;           // bytes of a packet; 0: none

 private:
  struct Client final : MqttClient {
    explicit Client(FakeMqtt& owner) : fake(owner) {}
    std::vector<MqttResult> publish(std::span<const MqttMessage> messages,
                                    std::chrono::milliseconds) override {
      std::vector<MqttResult> out;
      for (const MqttMessage& message : messages) {
        fake.messages.push_back(message);
        out.emplace_back();
        if (fake.limit > 0 && packet_bytes(message, fake.options.version) > fake.limit) {
          out.back() = {MqttFailure::too_large, 0, "too large"};
        } else if (!fake.answers.empty()) {
          out.back() = fake.answers.front();
          fake.answers.pop_front();
        }
      }
      return out;
    }
    FakeMqtt& fake;
  };
};

/// A file with the given `receivers` section, and what is wrong with it.
struct Loaded {
  ReceiversConfig receivers;
  std::string errors;  // one per line
};

inline Loaded load(const std::string& yaml) {
  Loaded out;
  config::Diagnostics diagnostics;
  const auto document = config::Document::parse(
      yaml, "test.yaml", [](const std::string&) { return std::nullopt; }, diagnostics);
  if (document) {
    document->read(diagnostics, [&](config::Reader& root) { read_receivers(root, out.receivers); });
  }
  for (const auto& item : diagnostics.items()) {
    if (item.grade == config::Grade::error) out.errors += to_text(item) + "\n";
  }
  return out;
}

/// Everything an action needs, faked; `make` builds one from its own YAML, as a user writes it.
struct Workbench {
  Workbench() {
    environment.clock = &clock;
    environment.log = &log;
    environment.telemetry = &telemetry;
    environment.cluster = "c1";
    environment.host = "h1";
    environment.place = {"--out", "/data/tocsin-data"};
    environment.http = &http;
    environment.mailer = &mailer;
    environment.mqtt = &mqtt;
    environment.issue_metrics = &metrics;
    environment.send_command = [this](const core::Command& command) {
      commands.push_back(command);
      return command_answer;
    };
    environment.publish = [this](const core::OutRecord& record) {
      records.push_back(record);
      return publish_answer;
    };
  }

  std::unique_ptr<core::Action> make(const std::string& type, const std::string& settings) {
    const Loaded loaded = load("receivers: {oncall: {" + type + ": " + settings + "}}\n");
    if (!loaded.errors.empty()) throw std::runtime_error(loaded.errors);
    auto action = loaded.receivers.integrations.at(0).build(environment);
    if (!action) throw std::runtime_error(action.error().message);
    return std::move(*action);
  }

  ManualClock clock;
  core::NullLog log;
  core::NullTelemetry telemetry;
  FakeHttpClient http;
  FakeMailer mailer;
  FakeMqtt mqtt;
  IssueMetrics metrics;
  std::vector<core::Command> commands;
  std::vector<core::OutRecord> records;
  core::Status command_answer;
  core::Status publish_answer;
  Environment environment;
};

/// As a delivery does it: rendered once, carried out once.
inline core::AttemptOutcome deliver(core::Action& action, core::Notification notification) {
  if (notification.rendered.empty()) {
    auto rendered = action.render(notification);
    if (!rendered) throw std::runtime_error(rendered.error().message);
    notification.rendered = *rendered;
  }
  return action.execute(notification, 1, 1s);
}

}  // namespace tocsin::actions::testing_support
