// Stops that wait for a person's word.
#include "actions/stop/stop_approvals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/fields/stop_request.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace testing_support;

core::StopRequest a_request() {
  core::StopRequest out;
  out.id = core::command_id(kRun, 1, "stop");
  out.run = sample_issue().issue.run;
  out.labels = sample_issue().issue.labels;
  out.reason.rule = "exploding_tensor";
  out.reason.summary = "loss became NaN";
  out.terms = core::ValueMap{{"mode", "stop"}, {"allow_force", true}, {"expires", "10m"}};
  out.why = "approval: always";
  out.asked_at = kStart;
  out.until = kStart + 30min;
  return out;
}

struct Desk {
  StopApprovals::Due at(core::Duration after, std::optional<core::Duration> heard = std::nullopt) {
    return approvals.due(
        ledger, [this](const core::RunUid&) { return run; }, "c1", kStart + after, nullptr,
        kStart + heard.value_or(after));
  }
  void hear(const core::StopRequest& request) { approvals.on_record(request.id, request); }
  StopApprovals approvals;
  StopLedger ledger;
  std::optional<core::CurrentRun> run = running();

 private:
  static core::CurrentRun running() {
    core::CurrentRun out;
    out.attempt = 1;
    out.launch = {{"h1", "b/1"}};
    return out;
  }
};

std::vector<std::string> rules_of(const std::vector<core::Issue>& issues) {
  std::vector<std::string> out;
  for (const auto& one : issues) out.push_back(one.rule);
  return out;
}

TEST(StopApprovals, AsksNobodyBeforeTheWord) {
  Desk desk;
  desk.hear(a_request());
  const auto due = desk.at(29min);
  EXPECT_THAT(due.commands, IsEmpty());
  EXPECT_THAT(due.decided, IsEmpty());
}

TEST(StopApprovals, AWordLeadsToOneCommand) {
  Desk desk;
  desk.hear(a_request());
  desk.hear(core::decided(a_request(), "approved", "ada@node-7", kStart + 5min, "seen"));
  const auto due = desk.at(5min);
  ASSERT_EQ(due.commands.size(), 1u);
  const core::Command& command = due.commands[0];
  EXPECT_EQ(command.command_id, a_request().id);
  EXPECT_EQ(command.requested_by, "router");
  EXPECT_EQ(command.issued_at, kStart + 5min) << "its deadlines count from the word";
  EXPECT_EQ(command.launch, desk.run->launch) << "of what runs now";
  EXPECT_EQ(core::text_at(command.args, "approved_by"), "ada@node-7");
  EXPECT_EQ(core::text_at(command.args, "mode"), "stop");
  EXPECT_EQ(*core::as<bool>(core::find(command.args, "allow_force")), true);
  EXPECT_THAT(rules_of(due.issues), ElementsAre("stop_waits"));
  EXPECT_EQ(due.issues[0].status, core::IssueStatus::resolved);
  EXPECT_THAT(desk.at(6min).commands, IsEmpty());
}

// A restart reads both topics: what was written is not written again.
TEST(StopApprovals, ARestartWritesNothingTwice) {
  Desk before;
  before.hear(core::decided(a_request(), "approved", "ada", kStart + 5min));
  const auto written = before.at(5min).commands.at(0);

  Desk after;
  after.hear(core::decided(a_request(), "approved", "ada", kStart + 5min));
  after.ledger.on_command(written);
  EXPECT_THAT(after.at(6min).commands, IsEmpty());

  Desk killed;  // between the word and the command
  killed.hear(core::decided(a_request(), "approved", "ada", kStart + 5min));
  EXPECT_EQ(killed.at(6min).commands.size(), 1u);
}

TEST(StopApprovals, AWordThatComesToNothingInTimeIsTold) {
  Desk desk;
  desk.hear(core::decided(a_request(), "approved", "ada", kStart + 5min));
  const auto due = desk.at(15min);
  EXPECT_THAT(due.commands, IsEmpty());
  ASSERT_EQ(due.decided.size(), 1u);
  EXPECT_EQ(due.decided[0].state, "expired");
  EXPECT_THAT(rules_of(due.issues), ElementsAre("stop_failed"));
  EXPECT_THAT(desk.at(16min).issues, IsEmpty());
}

TEST(StopApprovals, WithoutAWordItIsNotStoppedAndTold) {
  Desk desk;
  desk.hear(a_request());
  const auto due = desk.at(30min);
  EXPECT_THAT(due.commands, IsEmpty());
  EXPECT_EQ(due.decided.at(0).state, "expired");
  EXPECT_THAT(rules_of(due.issues), ElementsAre("stop_waits", "stop_failed"));
  EXPECT_THAT(due.issues[1].summary, HasSubstr("nobody approved it within 30m"));

  Desk bold;
  auto request = a_request();
  request.on_timeout = "proceed";
  bold.hear(request);
  EXPECT_EQ(bold.at(30min).commands.size(), 1u);
}

// Whoever adds a reason to a request may not have read the word yet.
TEST(StopApprovals, AWordThatWasOverwrittenStandsAndIsWrittenAgain) {
  for (const char* word : {"rejected", "approved", "expired"}) {
    Desk desk;
    desk.hear(a_request());
    desk.hear(core::decided(a_request(), word, "ada", kStart + 5min));
    desk.hear(a_request());
    const auto due = desk.at(5min);
    EXPECT_EQ(desk.approvals.find(a_request().id)->state, word);
    ASSERT_EQ(due.decided.size(), 1U) << word;
    EXPECT_EQ(due.decided[0].state, word);
    EXPECT_EQ(due.decided[0].decided_by, "ada");
    EXPECT_THAT(desk.at(6min).decided, IsEmpty()) << "once";
  }
  Desk again;  // what had recovered may be asked for again
  again.hear(core::decided(a_request(), "recovered", "router", kStart + 5min));
  again.hear(a_request());
  EXPECT_EQ(again.approvals.find(a_request().id)->state, "waiting");
  Desk restarted;  // reads how it was put right
  restarted.hear(core::decided(a_request(), "rejected", "ada", kStart + 5min));
  restarted.hear(a_request());
  restarted.hear(core::decided(a_request(), "rejected", "ada", kStart + 5min));
  EXPECT_THAT(restarted.at(6min).decided, IsEmpty());
}

// A leader that was frozen, or cut off, decides by time only what it has read until then.
TEST(StopApprovals, TimeDecidesOnceTheWordsThatWereSaidInTimeAreRead) {
  for (const char* then : {"cancel", "proceed"}) {
    Desk desk;
    core::StopRequest request = a_request();
    request.on_timeout = then;
    desk.hear(request);
    EXPECT_THAT(desk.at(31min, 29min).decided, IsEmpty());
    EXPECT_THAT(desk.at(31min, 29min).commands, IsEmpty());
    desk.hear(core::decided(request, "rejected", "ada", kStart + 29min + 59s));
    EXPECT_THAT(desk.at(31min, 30min).commands, IsEmpty());
    EXPECT_EQ(desk.approvals.find(request.id)->state, "rejected");
  }
  Desk desk;
  desk.hear(a_request());
  EXPECT_EQ(desk.at(31min, 30min).decided.size(), 1U);
}

// The clock of whoever decides may be behind the leader's.
TEST(StopApprovals, ItIsOverNotBeforeItBegan) {
  const auto over =
      stop_waits_over(core::decided(a_request(), "rejected", "ada", kStart - 10s), "c1");
  EXPECT_EQ(over.ends_at, over.starts_at);
  EXPECT_EQ(over.time, kStart);
}

TEST(StopApprovals, AnotherAttemptIsNeverStoppedByIt) {
  for (const char* state : {"waiting", "approved"}) {
    Desk desk;
    desk.run->attempt = 2;
    desk.hear(core::decided(a_request(), state, "ada", kStart + 1min));
    const auto due = desk.at(2min);
    EXPECT_THAT(due.commands, IsEmpty()) << state;
    EXPECT_EQ(due.decided.at(0).state, "replaced");
  }
  Desk ended;
  ended.run->ended = true;
  ended.hear(core::decided(a_request(), "approved", "ada", kStart + 1min));
  EXPECT_THAT(ended.at(2min).commands, IsEmpty());
  EXPECT_EQ(ended.approvals.find(a_request().id)->state, "ended");
}

TEST(StopApprovals, ARejectedOneStaysSo) {
  Desk desk;
  desk.hear(core::decided(a_request(), "rejected", "ada", kStart + 1min));
  const auto due = desk.at(2min);
  EXPECT_THAT(due.commands, IsEmpty());
  EXPECT_THAT(rules_of(due.issues), ElementsAre("stop_waits")) << "it waits no more";
  EXPECT_EQ(due.issues[0].status, core::IssueStatus::resolved);
  EXPECT_THAT(desk.at(3min).issues, IsEmpty());
  EXPECT_FALSE(desk.approvals.begin(a_request()));
}

TEST(StopApprovals, AStopByHandIsAWordToo) {
  Desk desk;
  desk.hear(a_request());
  core::Command by_hand;
  by_hand.command_id = a_request().id;
  by_hand.action = "stop";
  by_hand.run = kRun;
  by_hand.requested_by = "ada@node-7";
  by_hand.issued_at = kStart + 1min;
  desk.ledger.on_command(by_hand);
  const auto due = desk.at(2min);
  EXPECT_THAT(due.commands, IsEmpty());
  EXPECT_EQ(due.decided.at(0).decided_by, "ada@node-7");
}

// A week later `commands` has forgotten: an old word must not stop anything.
TEST(StopApprovals, AnOldWordIsForgotten) {
  Desk desk;
  desk.hear(core::decided(a_request(), "approved", "ada", kStart + 5min));
  const auto due = desk.at(8 * 24h);
  EXPECT_THAT(due.commands, IsEmpty());
  EXPECT_THAT(due.issues, IsEmpty());
}

TEST(StopApprovals, TheMessageHasTheCommandToPaste) {
  const auto issue = stop_waits_issue(a_request(), "c1", {"--from", "/data/my journal"});
  EXPECT_THAT(issue.recommendation,
              HasSubstr("tocsin stops approve " + a_request().id + " --from '/data/my journal'"));
  EXPECT_THAT(issue.recommendation, HasSubstr("tocsin stops cancel " + a_request().id));
  EXPECT_THAT(issue.summary,
              HasSubstr("digits is to be stopped (attempt 1) and waits for approval"));
  EXPECT_THAT(issue.summary, HasSubstr("loss became NaN"));
  EXPECT_FALSE(issue.labels.has("tensor")) << "it is about the whole run";
  EXPECT_LT(issue.sequence, stop_waits_over(a_request(), "c1").sequence);
}

TEST(StopApprovals, ARecordComesBackWhole) {
  const auto request = core::decided(a_request(), "approved", "ada", kStart + 1s, "why not");
  const auto read = core::read_stop_request(core::stop_request_json(request));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->id, request.id);
  EXPECT_EQ(read->run.uid, kRun);
  EXPECT_EQ(core::to_json(read->terms), core::to_json(request.terms));
  EXPECT_EQ(read->decided_at, request.decided_at);
  EXPECT_EQ(read->until, request.until);
  EXPECT_EQ(core::stop_request_record(request).key, "approval/" + request.id);
  EXPECT_FALSE(core::read_stop_request(
      R"({"id":"x","run":{"uid":"4e3046d4-8c1f-5278-82e3-ea3595bc5999","attempt":1},"state":"maybe"})"));
  EXPECT_FALSE(core::read_stop_request("{"));
}

}  // namespace
}  // namespace tocsin::actions
