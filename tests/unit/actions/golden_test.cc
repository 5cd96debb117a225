// What each action writes, byte for byte: tests/data/messages/<name>.txt. A message that changes on
// purpose changes its file in the same commit: TOCSIN_WRITE_GOLDEN=1 writes it anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

#include "actions/message/headline.h"
#include "actions/message/message.h"
#include "actions/message/rendered.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using namespace testing_support;

// All that an issue can carry, some of it hostile.
core::NotifiedIssue full_issue() {
  core::NotifiedIssue out = sample_issue("layer<0>.weight & \"bias\"");
  core::Issue& issue = out.issue;
  issue.rule = "overfit";
  issue.severity = core::Severity::critical;
  issue.labels.set("rule", "overfit");
  issue.labels.set("node", "gpu-7");
  issue.labels.set("device", "cuda:1");
  issue.labels.set("metric", "loss/größe");
  issue.summary = "<img src=x onerror='alert(1)'> \"&\"\nsecond\tline {{summary}} \x01";
  issue.description = "A longer\ntext with \\ and {{{braces}}}.";
  issue.runbook_url = "https://example.com/a?b=\"c\"&d=<e>";
  issue.annotations = {{"dashboard", "https://grafana.example/d/1"}};
  issue.generator_url = "https://prometheus.example/graph?g0";
  issue.traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  issue.tracestate = "vendor=1";
  issue.global_step = 437;
  issue.epoch = 3;
  issue.run.platform = "slurm";
  issue.evidence.observed = {"ratio", std::numeric_limits<double>::infinity()};
  issue.evidence.occurrences = 4;
  issue.evidence.affected.hit = 3;
  issue.evidence.affected.evaluated = 12;
  issue.evidence.affected.worst = {{"a", 1e-7}, {"b<c>", -0.5}};
  issue.evidence.tensor =
      core::TensorRef{"layer<0>.weight", "weights", core::Dtype::f32, {64, 128}};
  issue.evidence.window.first = 400;
  issue.evidence.window.last = 412;
  issue.evidence.window.points = 13;
  issue.evidence.window.partial = true;
  issue.evidence.values = core::ValueMap{{"patience", 10}, {"note", "a \"quoted\" one"}};
  return out;
}

std::vector<std::pair<std::string, core::Notification>> notifications() {
  std::vector<std::pair<std::string, core::Notification>> out;
  out.emplace_back("firing", sample_notification());
  out.emplace_back("resolved", sample_notification("ntf_two", core::NotificationKind::close));
  auto mixed = sample_notification("ntf_three", core::NotificationKind::update);
  mixed.reason = "digest";
  mixed.issues.push_back(full_issue());
  mixed.issues.push_back(sample_notification("", core::NotificationKind::close).issues.front());
  mixed.firing_count = 2;
  mixed.resolved_count = 1;
  mixed.truncated = 7;
  out.emplace_back("mixed", mixed);
  mixed.minimal = true;
  out.emplace_back("minimal", mixed);
  auto escalated = sample_notification("ntf_four");
  escalated.reason = "escalation";
  escalated.why =
      "Escalated to lead: neither acknowledged nor resolved 30m after the first message to oncall.";
  escalated.issues.push_back(full_issue());
  escalated.issues.back().acknowledged =
      core::AckTold{"ada@node-7", "with the <cluster> team", escalated.decided_at, {}};
  escalated.firing_count = 2;
  out.emplace_back("escalated", escalated);
  auto expired = sample_notification("ntf_five", core::NotificationKind::update);
  expired.reason = "ack_expired";
  expired.why = "The acknowledgement by ada has ended, and the issue still fires.";
  out.emplace_back("ack_expired", expired);
  auto acknowledged = sample_notification("ntf_six", core::NotificationKind::update);
  acknowledged.reason = "acknowledged";
  acknowledged.why = "Acknowledged by ada.";
  acknowledged.issues.front().acknowledged = core::AckTold{
      "ada", "looking", acknowledged.decided_at, acknowledged.decided_at + std::chrono::hours(8)};
  out.emplace_back("acknowledged", acknowledged);
  return out;
}

/// A stored message in one JSON object, as the files have it.
std::string in_one_object(const std::string& stored) {
  const auto rendered = parse_rendered(stored);
  if (!rendered) return stored;
  core::ValueMap fields;
  for (const auto& [name, value] : rendered->fields) fields.emplace_back(name, value);
  return core::to_json(core::ValueMap{{"content_type", rendered->content_type},
                                      {"body", rendered->body},
                                      {"fields", std::move(fields)}});
}

class Golden : public ::testing::TestWithParam<std::string> {};

std::string rendered_by(const std::string& name, const core::Notification& notification,
                        Workbench& bench) {
  const Sender sender{"c1", "https://tocsin.example/a&b"};
  if (name == "headline") return headline(notification);
  if (name == "text") return text_body(notification, sender);
  if (name == "html") return html_body(notification, sender);
  const std::string hook = "url: 'https://example.com/hook', format: ";
  bench.environment.external_url = sender.external_url;
  if (name == "webhook_cloudevents" || name == "webhook_native" ||
      name == "webhook_alertmanager_v4") {
    return *bench.make("webhook", "{" + hook + name.substr(8) + "}")->render(notification);
  }
  if (name == "email") {
    return *bench.make("email", "{to: [ops@example.com], host: mx}")->render(notification);
  }
  if (name == "stop_training") return *bench.make(name, "{armed: true}")->render(notification);
  return *bench.make(name, "{}")->render(notification);
}

TEST_P(Golden, IsWrittenAsItWas) {
  std::string written;
  for (const auto& [name, notification] : notifications()) {
    Workbench bench;
    written +=
        "=== " + name + "\n" + in_one_object(rendered_by(GetParam(), notification, bench)) + "\n";
  }
  const std::string path = "tests/data/messages/" + GetParam() + ".txt";
  if (std::getenv("TOCSIN_WRITE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << written;
  }
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  EXPECT_EQ(content.str(), written);
}

INSTANTIATE_TEST_SUITE_P(Each, Golden,
                         ::testing::Values("headline", "text", "html", "email", "mqtt",
                                           "publish_metric", "stop_training", "webhook_cloudevents",
                                           "webhook_native", "webhook_alertmanager_v4"),
                         [](const auto& golden) { return golden.param; });

}  // namespace
}  // namespace tocsin::actions
