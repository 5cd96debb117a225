// What a training script wants people to hear.
#include "rules/engine/partition/script_alert.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/rules/issues_of.h"
#include "tests/unit/rules/state_topic.h"

namespace tocsin::rules {
namespace {

using namespace stories;  // NOLINT: the stories are this file's language

OwnedFrame alert(FakeWorker& worker, const core::ValueMap& said) {
  core::ValueMap finding{{"kind", "alert"}};
  finding.insert(finding.end(), said.begin(), said.end());
  OwnedFrame frame = worker.heartbeat();
  frame.body = core::to_json(
      core::ValueMap{{"event", "preflight"}, {"findings", core::ValueList{core::Value(finding)}}});
  frame.header.body_length = static_cast<std::uint32_t>(frame.body.size());
  return frame;
}

TEST(ScriptAlert, IsAnIssueWithItsTitleAndText) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  rule.feed(worker.start()).feed(worker.step_end(Mode::train, 6));
  EXPECT_TRUE(issues_of(rule.firing(), "script_alert").empty());
  rule.feed(alert(worker, {{"title", "Low accuracy"},
                           {"text", "It is 0.31.\nOf class 7: 0."},
                           {"level", "error"},
                           {"count", std::int64_t{3}}}));
  const auto issues = issues_of(rule.firing(), "script_alert");
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].severity, core::Severity::error);
  EXPECT_EQ(issues[0].summary, "Low accuracy");
  EXPECT_EQ(issues[0].description, "It is 0.31.\nOf class 7: 0.");
  EXPECT_EQ(issues[0].labels.get("title"), "Low accuracy");
  EXPECT_EQ(issues[0].labels.get("worker"), "worker_0");
  EXPECT_EQ(issues[0].step, 6);
  EXPECT_EQ(issues[0].evidence.observed.name, "times_said");
  EXPECT_DOUBLE_EQ(issues[0].evidence.observed.value, 3);
  EXPECT_EQ(core::text_at(core::Value(issues[0].evidence.values), "text"),
            "It is 0.31.\nOf class 7: 0.");
  EXPECT_TRUE(issues_of(rule.firing(), "training_preflight").empty());
  rule.feed(worker.end());
  EXPECT_EQ(issues_of(rule.resolved(), "script_alert").size(), 1U);
}

TEST(ScriptAlert, SaidAgainIsNewsAgainAndEveryTitleAndWorkerStandsAlone) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  rule.feed(worker.start());
  rule.feed(alert(worker, {{"title", "a"}})).feed(alert(worker, {{"title", "b"}}));
  EXPECT_TRUE(issues_of(rule.resolved(), "script_alert").empty());
  rule.feed(alert(worker, {{"title", "a"}, {"level", "warning"}}));
  const auto issues = issues_of(rule.firing(), "script_alert");
  ASSERT_EQ(issues.size(), 3U);
  EXPECT_EQ(issues[0].severity, core::Severity::info);
  EXPECT_EQ(issues[2].severity, core::Severity::warning);
  EXPECT_NE(issues[0].event_id, issues[2].event_id);
  EXPECT_GT(issues[2].starts_at, issues[0].starts_at);
  EXPECT_EQ(core::issue_key(issues[0].labels), core::issue_key(issues[2].labels));
  EXPECT_NE(core::issue_key(issues[0].labels), core::issue_key(issues[1].labels));
  const auto ended = issues_of(rule.resolved(), "script_alert");
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].ending->summary, "The script said it again.");
  EXPECT_EQ(ended[0].resolution, core::Resolution::superseded);
  EXPECT_LT(ended[0].sequence, issues[2].sequence);
}

TEST(ScriptAlert, WhatComesFromOutsideIsBounded) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  rule.feed(worker.start());
  const std::string euro = "\xE2\x82\xAC";
  std::string title = "a\r\nBcc: x";
  std::string text;
  for (int i = 0; i < 3000; ++i) text += euro;
  for (int i = 0; i < 100; ++i) title += euro;
  rule.feed(alert(worker, {{"title", title}, {"text", text}, {"level", "shouting"}}));
  rule.feed(alert(worker, {{"title", "\t"}, {"count", std::int64_t{-4}}}));
  rule.feed(alert(worker, {{"title", 7.0}, {"text", true}, {"level", core::Value()}}));
  const auto issues = issues_of(rule.firing(), "script_alert");
  ASSERT_EQ(issues.size(), 3U);
  EXPECT_EQ(issues[0].summary.rfind("a  Bcc: x", 0), 0U);
  EXPECT_EQ(issues[0].summary.size(), 9U + 63 * 3);
  EXPECT_EQ(issues[0].description.size(), 3999U);
  EXPECT_EQ(issues[0].severity, core::Severity::info);
  EXPECT_EQ(issues[1].summary, "(without a title)");
  EXPECT_DOUBLE_EQ(issues[1].evidence.observed.value, 1);
  EXPECT_EQ(issues[2].summary, "(without a title)");
}

TEST(ScriptAlert, OfManyTitlesTheOldestMakesRoom) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  rule.feed(worker.start());
  for (std::size_t i = 0; i <= ScriptAlert::kMaxOpen; ++i) {
    rule.feed(alert(worker, {{"title", "step " + std::to_string(i)}}));
  }
  EXPECT_EQ(issues_of(rule.firing(), "script_alert").size(), ScriptAlert::kMaxOpen + 1);
  const auto ended = issues_of(rule.resolved(), "script_alert");
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].labels.get("title"), "step 0");
}

TEST(ScriptAlert, IsRememberedBeyondAKill) {
  StateTopic topic("  - exploding_tensor");
  FakeWorker worker;
  topic.feed(worker.start());
  topic.feed(alert(worker, {{"title", "a"}}));
  while (topic.piece(1 << 20)) topic.commit();
  topic.commit();
  topic.restart();
  topic.feed(alert(worker, {{"title", "a"}}));
  topic.commit();
  const auto said_again = [](const std::string& event) {
    return event.find(" resolved ") != std::string::npos;
  };
  EXPECT_EQ(std::count_if(topic.told().begin(), topic.told().end(), said_again), 1);
}

}  // namespace
}  // namespace tocsin::rules
