// Each action with events in which one field holds what nobody expects: no crash, a message for every
// issue, and the issues beside it are told as if it were not there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "actions/transport/datagram_sender.h"
#include "core/text.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using namespace testing_support;
using nlohmann::json;

struct OddAction {
  const char* type;
  const char* settings;
};

struct OddValue {
  const char* name;
  std::function<void(core::NotifiedIssue&)> is;
};

const std::string kLong(10'000, 'n');
const std::string kNul("a\0b", 3);
const std::string kControls = "a\x01\x1F\x7F\r\n\xC2\x85";
const std::string kNoCharacters = "a\xEF\xBF\xBF\xEF\xB7\x90";

void every_text(core::NotifiedIssue& one, const std::string& text) {
  core::Issue& issue = one.issue;
  issue.rule = issue.summary = issue.description = issue.recommendation = text;
  issue.runbook_url = issue.generator_url = issue.run.job = issue.traceparent = text;
  issue.event_id = issue.source = issue.kind = text;
  issue.annotations = {{text.empty() ? "x" : text, text}};
  issue.labels.set("job", text);
  issue.labels.set("tensor", text);
  if (!text.empty()) issue.labels.set(text, text);
}

const std::vector<OddValue>& odd_values() {
  static const std::vector<OddValue> values{
      {"empty_texts", [](auto& one) { every_text(one, ""); }},
      {"nul", [](auto& one) { every_text(one, kNul); }},
      {"ten_kilobytes", [](auto& one) { every_text(one, kLong); }},
      {"controls", [](auto& one) { every_text(one, kControls); }},
      {"no_characters", [](auto& one) { every_text(one, kNoCharacters); }},
      {"wildcards", [](auto& one) { every_text(one, "+/#/$SYS/%00/{{x}}{}"); }},
      {"quotes", [](auto& one) { every_text(one, "\"'\\`${x}%s<b>&amp;"); }},
      {"bidi", [](auto& one) { every_text(one, "\xE2\x80\xAE\xE2\x81\xA6x"); }},
      {"no_labels",
       [](auto& one) {
         one.issue.labels = {{"x", "y"}};
       }},
      {"many_labels",
       [](auto& one) {
         for (int i = 0; i < 300; ++i) one.issue.labels.set("l" + std::to_string(i), "v");
       }},
      {"labels_that_become_one",
       [](auto& one) {
         for (const char* name : {"a.b", "a_b", "a-b", "__name__", "alertname", "9", "le"}) {
           one.issue.labels.set(name, name);
         }
       }},
      {"numbers_that_are_none",
       [](auto& one) {
         one.issue.evidence.observed.value = std::nan("");
         one.issue.evidence.threshold = core::NamedNumber{"x", HUGE_VAL};
         one.issue.step = std::numeric_limits<std::int64_t>::max();
       }},
      {"huge_numbers",
       [](auto& one) {
         one.issue.step = std::numeric_limits<std::int64_t>::min();
         one.issue.run.attempt = std::numeric_limits<std::uint32_t>::max();
         one.episode = std::numeric_limits<std::uint64_t>::max();
         one.issue.evidence.observed.value = 1e308;
       }},
      {"the_beginning_of_time",
       [](auto& one) {
         one.issue.starts_at = one.issue.time = one.issue.measured_at = core::WallTime::min();
       }},
      {"the_end_of_time",
       [](auto& one) {
         one.issue.starts_at = one.issue.time = one.issue.measured_at = core::WallTime::max();
       }},
      {"an_end_before_its_beginning",
       [](auto& one) {
         one.issue.status = core::IssueStatus::resolved;
         one.issue.ends_at = core::WallTime::min();
       }},
      {"no_run", [](auto& one) { one.issue.run = {}; }},
      {"no_key", [](auto& one) { one.issue_key.clear(); }},
      {"a_link_that_is_none", [](auto& one) { one.issue.generator_url = "http://a b/%zz\"<"; }},
  };
  return values;
}

const std::vector<OddAction>& every_action() {
  static const std::vector<OddAction> actions{
      {"webhook", "{url: 'https://x.example/', format: native, max_payload: 10MB}"},
      {"webhook", "{url: 'https://x.example/', format: cloudevents}"},
      {"webhook", "{url: 'https://x.example/', format: alertmanager_v4}"},
      {"alertmanager", "{url: 'https://am.example/'}"},
      {"email", "{to: [ops@example.com], host: mx}"},
      {"mqtt", "{topic: 't/{job}/{tensor}/{fingerprint}'}"},
      {"publish_metric", "{labels: [job, tensor, a.b]}"},
      {"publish_metric", "{transport: kafka, labels: [job, a.b]}"},
      {"publish_metric",
       "{transport: remote_write, url: 'https://x.example', labels: [job, tensor]}"},
      {"publish_metric",
       "{transport: pushgateway, url: 'https://x.example', labels: [job, tensor]}"},
      {"publish_metric", "{transport: otlp, url: 'https://x.example', labels: [job, tensor]}"},
      {"publish_metric", "{transport: statsd, labels: [job, tensor]}"},
      {"publish_metric",
       "{transport: cloudwatch, labels: [job, tensor], aws: {region: eu-central-1, access_key_id: "
       "AKIDEXAMPLE, secret_access_key: wJalrXUtnFEMI}}"},
      {"stop_training", "{armed: true}"},
      {"profile_training", "{}"},
  };
  return actions;
}

struct OddDatagrams final : DatagramSender {
  core::Status send(const std::string& /*host*/, const std::string& /*port*/,
                    std::span<const std::string> datagrams) override {
    all.insert(all.end(), datagrams.begin(), datagrams.end());
    return core::ok();
  }
  std::vector<std::string> all;
};

/// What has left the process: bodies, payloads, mails, records, commands.
std::vector<std::string> sent_by(Workbench& bench) {
  std::vector<std::string> out;
  for (const auto& one : bench.http.requests) {
    out.push_back(one.body_in_words.empty() ? one.body : one.body_in_words);
    out.push_back(one.url);
  }
  for (const auto& one : bench.mqtt.messages) out.push_back(one.topic), out.push_back(one.payload);
  for (const auto& one : bench.mailer.mails) out.push_back(one.message);
  for (const auto& one : bench.records) out.push_back(*one.value);
  out.push_back(bench.metrics.render(kStart));
  return out;
}

TEST(OddValues, CrashNothingAndHideNoOtherIssue) {
  for (const OddAction& type : every_action()) {
    for (const OddValue& odd : odd_values()) {
      SCOPED_TRACE(std::string(type.type) + " " + type.settings + ": " + odd.name);
      Workbench bench;
      OddDatagrams datagrams;
      bench.environment.datagrams = &datagrams;
      const auto action = bench.make(type.type, type.settings);
      auto notification = sample_notification();
      notification.issues = {sample_issue("before"), sample_issue("odd"), sample_issue("behind")};
      odd.is(notification.issues[1]);
      const auto rendered = action->render(notification);
      ASSERT_TRUE(rendered) << rendered.error().message;
      EXPECT_FALSE(core::first_invalid_utf8(*rendered));
      const core::AttemptOutcome out = deliver(*action, notification);
      if (std::string_view(type.type).find("training") == std::string_view::npos) {
        EXPECT_EQ(out.outcome, core::OutcomeClass::delivered) << out.code << " " << out.detail;
      }
      EXPECT_FALSE(core::first_invalid_utf8(out.detail));
      std::vector<std::string> sent = sent_by(bench);
      sent.insert(sent.end(), datagrams.all.begin(), datagrams.all.end());
      for (const std::string& text : sent) {
        EXPECT_FALSE(core::first_invalid_utf8(text));
        EXPECT_EQ(text.find('\0'), std::string::npos);
      }
    }
  }
}

/// By MQTT 5.0, 1.5.4 and 4.7.
bool is_topic(const std::string& topic) {
  if (topic.empty() || topic.size() > 65'535 || core::first_invalid_utf8(topic)) return false;
  if (topic.front() == '/' || topic.back() == '/' || topic.front() == '$') return false;
  for (const char* none : {"//", "+", "#", "\x7F", "\xC2\x85", "\xEF\xBF\xBF", "\xEF\xB7\x90"}) {
    if (topic.find(none) != std::string::npos) return false;
  }
  return std::none_of(topic.begin(), topic.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20; });
}

TEST(OddValues, EveryIssueHasAnMqttTopicOfItsOwnThatABrokerTakes) {
  for (const OddValue& odd : odd_values()) {
    SCOPED_TRACE(odd.name);
    Workbench bench;
    const auto action = bench.make("mqtt", "{topic: 't/{job}/{tensor}/{fingerprint}'}");
    auto notification = sample_notification();
    notification.issues = {sample_issue("before"), sample_issue("odd"), sample_issue("behind")};
    odd.is(notification.issues[1]);
    deliver(*action, notification);
    ASSERT_EQ(bench.mqtt.messages.size(), 3u);
    for (const MqttMessage& message : bench.mqtt.messages) {
      EXPECT_TRUE(is_topic(message.topic)) << message.topic.substr(0, 200);
      EXPECT_TRUE(json::accept(message.payload));
    }
  }
}

TEST(OddValues, EveryIssueIsAnAlertWithALabelAndWithAnEndBehindItsBeginning) {
  for (const OddValue& odd : odd_values()) {
    SCOPED_TRACE(odd.name);
    Workbench bench;
    const auto action = bench.make("alertmanager", "{url: 'https://am.example/'}");
    auto notification = sample_notification();
    notification.issues = {sample_issue("before"), sample_issue("odd"), sample_issue("behind")};
    odd.is(notification.issues[1]);
    deliver(*action, notification);
    std::size_t alerts = 0;
    for (const auto& request : bench.http.requests) {
      for (const json& alert : json::parse(request.body)) {
        ++alerts;
        EXPECT_FALSE(alert["labels"]["alertname"].get<std::string>().empty());
        EXPECT_LE(alert["startsAt"].get<std::string>(), alert["endsAt"].get<std::string>());
        for (const auto& [name, value] : alert["labels"].items()) {
          EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                           "0123456789_"),
                    std::string::npos);
          EXPECT_FALSE(value.get<std::string>().empty());
        }
        if (alert.contains("generatorURL")) {
          EXPECT_EQ(alert["generatorURL"].get<std::string>().find_first_of(" \"<>\n"),
                    std::string::npos);
        }
      }
    }
    EXPECT_EQ(alerts, 3u);
  }
}

}  // namespace
}  // namespace tocsin::actions
