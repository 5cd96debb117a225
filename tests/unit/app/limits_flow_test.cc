// Whatever a run is called and labelled, and whatever its tensors are: what the engine says of it is taken by the
// router, and who is to be told or to stop it is.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/limits.h"
#include "ingest/ingest.h"
#include "routing/routing.h"
#include "tests/support/record_fixture.h"
#include "tests/support/rule_harness.h"

namespace tocsin::app {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using namespace std::chrono_literals;

const core::WallTime kNow = core::wall_time(kStart + kSecond);

/// What a producer says of its run.
struct Said {
  std::string job = "digits";
  core::ValueMap labels;
  std::string node = "n1";
  std::string tensor = "gradient/w";
  core::Value reference;
};

OwnedFrame start_of(FakeWorker& worker, const Said& said) {
  const std::string json = core::to_json(
      core::ValueMap{{"event", "start"},
                     {"job", said.job},
                     {"labels", said.labels},
                     {"pid", 4711},
                     {"host", said.node},
                     {"node", said.node},
                     {"boot_id", "0123456789ab"},
                     {"opened", 500},
                     {"platform", core::ValueMap{{"kind", "local"}, {"ref", said.reference}}}});
  worker.header.mode = core::Mode::global;
  ++worker.header.sequence;
  ingest::FrameWriter writer;
  const auto bytes = writer.lifecycle(worker.header, json).finish();
  OwnedFrame out;
  if (!bytes) return out;
  std::memcpy(&out.header, bytes->data(), sizeof out.header);
  const auto body = bytes->subspan(sizeof out.header);
  out.body.assign(reinterpret_cast<const char*>(body.data()), body.size());
  return out;
}

std::vector<rules::Event> judged(const Said& said, rules::EngineOptions options = {}) {
  RuleHarness harness("  - exploding_tensor\n", std::move(options));
  FakeWorker worker;
  harness.feed(start_of(worker, said));
  harness.feed(
      worker.dictionary({{core::DictionaryType::tensor, said.tensor, core::Role::gradient}}));
  for (int step = 0; step < 3; ++step) {
    harness.feed(worker.tensors(core::Mode::train, step, {{said.tensor, {std::nan("")}}}));
    harness.feed(worker.step_end(core::Mode::train, step));
  }
  harness.feed(worker.end("failed"));
  return harness.events();
}

std::unique_ptr<routing::Router> router() {
  routing::RouteConfig route;
  route.receivers = {"oncall"};
  std::vector<routing::Integration> integrations(2);
  integrations[0].id = "oncall/webhook/0";
  integrations[0].receiver = "oncall";
  integrations[0].type = "webhook";
  integrations[1].id = "stop/stop_training/0";
  integrations[1].receiver = "stop";
  integrations[1].type = "stop_training";
  integrations[1].purpose = routing::Purpose::stop;
  auto made = routing::Router::create(route, {{"exploding_tensor", {"stop"}}}, integrations, {});
  EXPECT_TRUE(made) << (made ? "" : made.error().message);
  (*made)->restored(kNow);
  return std::move(*made);
}

core::OutRecord record_of(const rules::Event& event) {
  if (const auto* issue = std::get_if<core::Issue>(&event)) return ingest::encode_issue(*issue);
  if (const auto* job = std::get_if<core::JobEvent>(&event)) return ingest::encode_job(*job, "c");
  if (const auto* status = std::get_if<core::RuleStatusEvent>(&event)) {
    return ingest::encode_rule_status(*status, "c");
  }
  return ingest::encode_command(std::get<core::Command>(event), "/c/engine");
}

/// As the stages do it: every event is written, read, and routed. What was refused; empty: nothing.
std::string refused_on_the_way(const std::vector<rules::Event>& events,
                               std::vector<core::Notification>& told) {
  const auto routing = router();
  bool issues = false;
  for (const rules::Event& event : events) {
    const core::OutRecord record = record_of(event);
    if (std::holds_alternative<core::Command>(event)) {
      const auto command = ingest::decode_command(ingest::fixture::view_of(record));
      if (!command) return "command: " + command.error().message;
      continue;
    }
    const auto decoded = ingest::decode_event(ingest::fixture::view_of(record));
    if (!decoded) return decoded.error().message;
    if (const auto* issue = std::get_if<core::Issue>(&decoded->event)) {
      issues = true;
      const auto& original = std::get<core::Issue>(event);
      if (core::issue_key(issue->labels) != core::issue_key(original.labels))
        return "another issue";
      routing->on_issue(*issue, kNow);
    } else if (const auto* job = std::get_if<core::JobEvent>(&decoded->event)) {
      routing->on_job(*job, kNow);
    }
  }
  if (!issues) return "no issue";
  for (const core::Duration later : {0s, 60s, 600s}) {
    while (routing->tick(kNow + later)) {
    }
    for (core::Notification& one : routing->take().notifications) told.push_back(std::move(one));
  }
  return {};
}

bool tells(const std::vector<core::Notification>& told, const std::string& integration) {
  for (const core::Notification& one : told) {
    if (one.integration == integration) return true;
  }
  return false;
}

void expect_told(const Said& said, rules::EngineOptions options = {}) {
  std::vector<core::Notification> told;
  EXPECT_EQ(refused_on_the_way(judged(said, std::move(options)), told), "");
  EXPECT_TRUE(tells(told, "oncall/webhook/0"));
  EXPECT_TRUE(tells(told, "stop/stop_training/0")) << "an armed stop must happen";
}

TEST(LimitsFlow, OrdinaryNamesGoAsTheyAre) {
  Said said;
  said.labels = {{"team", "nlp"}};
  expect_told(said);
}

TEST(LimitsFlow, LabelsBeyondEveryLimitStopNothing) {
  for (const auto& label :
       std::vector<std::pair<std::string, std::string>>{{"big", std::string(5000, 'x')},
                                                        {"", "no name"},
                                                        {std::string("a\0b", 3), "x"},
                                                        {std::string(300, 'n'), "x"},
                                                        {"quotes", std::string(4000, '"')},
                                                        {"controls", std::string(4000, '\x01')}}) {
    Said said;
    said.labels.emplace_back(label.first, label.second);
    expect_told(said);
  }
}

TEST(LimitsFlow, ThreeHundredLabelsStopNothing) {
  Said said;
  for (int i = 0; i < 300; ++i)
    said.labels.emplace_back("l" + std::to_string(i), std::string(200, 'x'));
  rules::EngineOptions options;
  for (int i = 0; i < 60; ++i) options.labels.emplace_back("c" + std::to_string(i), "of the file");
  expect_told(said, std::move(options));
}

TEST(LimitsFlow, LongNamesOfJobsTensorsNodesAndPlatformsStopNothing) {
  Said said;
  said.job = std::string(10'000, 'j');
  expect_told(said);
  said = {};
  said.tensor = std::string(200'000, 't');
  expect_told(said);
  said = {};
  said.node = std::string(50'000, 'n');
  expect_told(said);
  said = {};
  said.reference = core::ValueMap{{"note", std::string(500'000, 'p')}, {"job", "7"}};
  expect_told(said);
}

TEST(LimitsFlow, ATitleHasOneBlankBetweenWordsWhateverTheTensorIsCalled) {
  for (const auto& [tensor, title] : {std::pair<std::string, std::string>{"t\u200B ", "t has NaN"},
                                      {"  a \u2060 b ", "a b has NaN"},
                                      {"\u202E", "(a name without visible characters) has NaN"}}) {
    Said said;
    said.tensor = tensor;
    std::size_t titles = 0;
    for (const rules::Event& event : judged(said)) {
      const auto* issue = std::get_if<core::Issue>(&event);
      if (issue == nullptr || issue->rule != "exploding_tensor") continue;
      for (const auto& [name, text] : issue->annotations) {
        if (name != "title") continue;
        EXPECT_EQ(text, title);
        ++titles;
      }
    }
    EXPECT_GT(titles, 0u);
  }
}

TEST(LimitsFlow, ARunOfManyNodesIsToldOf) {
  std::vector<rules::Event> events = judged({});
  core::JobEvent job;
  job.run.uid = core::run_uid_for("digits", "exploding");
  for (int i = 0; i < 400; ++i) {
    job.launch[std::string(200, 'n') + std::to_string(i)] = "01234567/500";
  }
  events.insert(events.begin(), job);
  std::vector<core::Notification> told;
  EXPECT_EQ(refused_on_the_way(events, told), "");
  core::Command stop;
  stop.command_id = "cmd_of_a_long_launch";
  stop.action = "stop";
  stop.run = job.run.uid;
  stop.attempt = 1;
  stop.launch = job.launch;
  const auto record = ingest::encode_command(stop, "/c/router");
  const auto decoded = ingest::decode_command(ingest::fixture::view_of(record));
  EXPECT_TRUE(decoded) << (decoded ? "" : decoded.error().message);
}

TEST(LimitsFlow, AnIssueThatIsTooLargeLosesItsLongestEvidenceAndSaysSo) {
  core::Issue issue;
  issue.rule = "r";
  issue.event_id = "iss_1";
  issue.source = "/c/rules/r";
  issue.labels = {{"rule", "r"}, {"job", "digits"}};
  issue.summary = "what was found";
  issue.evidence.values = {{"long", std::string(80'000, 'v')}, {"short", 7}};
  for (std::uint32_t rank = 0; rank < 20'000; ++rank)
    issue.evidence.window.missing_ranks.push_back(rank);
  const auto record = ingest::encode_issue(issue);
  const auto decoded = ingest::decode_event(ingest::fixture::view_of(record));
  ASSERT_TRUE(decoded) << decoded.error().message;
  const auto& read = std::get<core::Issue>(decoded->event);
  EXPECT_EQ(read.labels, issue.labels);
  EXPECT_EQ(read.summary, "what was found");
  EXPECT_EQ(core::to_json(read.evidence.values),
            R"({"short":7,"left_out":["missing_ranks","long"]})");
}

std::string text_of_any_kind() {
  const auto piece = *rc::gen::arbitrary<std::string>();
  const auto times = *rc::gen::element(1, 3, 50, 900);
  std::string out;
  for (int i = 0; i < times; ++i) out += piece;
  // A frame's JSON is UTF-8, whatever its names hold.
  core::bound_text(out, 5000);
  return out;
}

TEST(LimitsFlowProperty, WhateverARunSaysOfItselfPeopleAreToldAndItIsStopped) {
  EXPECT_TRUE(rc::check([]() {
    Said said;
    said.job = text_of_any_kind();
    said.node = text_of_any_kind();
    said.tensor = "t" + text_of_any_kind();
    const auto count = *rc::gen::inRange(0, 80);
    for (int i = 0; i < count; ++i)
      said.labels.emplace_back(text_of_any_kind(), text_of_any_kind());
    std::vector<core::Notification> told;
    const std::string refused = refused_on_the_way(judged(said), told);
    RC_ASSERT(refused.empty());
    RC_ASSERT(tells(told, "oncall/webhook/0"));
    RC_ASSERT(tells(told, "stop/stop_training/0"));
  }));
}

}  // namespace
}  // namespace tocsin::app
