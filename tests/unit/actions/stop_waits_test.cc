// stop_training where a person has to say a word first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/fields/stop_request.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::HasSubstr;
using namespace testing_support;

struct WordBench : Workbench {
  WordBench() { environment.approvals = &approvals; }
  [[nodiscard]] core::StopRequest written(std::size_t which = 0) const {
    return *core::read_stop_request(*records.at(which).value);
  }
  StopApprovals approvals;
};

TEST(StopWaits, NothingIsAskedOfTheRun) {
  WordBench bench;
  const auto stop = bench.make("stop_training", "{armed: true, approval: always, grace: 30s}");
  const auto out = deliver(*stop, sample_notification());
  EXPECT_EQ(out.outcome, core::OutcomeClass::delivered);
  EXPECT_EQ(out.code, "awaiting_approval");
  EXPECT_THAT(out.detail, HasSubstr("tocsin stops approve cmd_76sjz"));
  EXPECT_TRUE(bench.commands.empty());
  ASSERT_EQ(bench.records.size(), 1u);
  EXPECT_EQ(bench.records[0].topic, "router-control");
  EXPECT_EQ(bench.records[0].key, "approval/cmd_76sjzs23utzfmje34sq7tnw4rf");
  const auto request = bench.written();
  EXPECT_EQ(request.state, "waiting");
  EXPECT_EQ(request.why, "approval: always");
  EXPECT_EQ(request.run.uid, kRun);
  EXPECT_EQ(request.until, kStart + 30min);
  EXPECT_EQ(core::text_at(request.terms, "grace"), "30s");
  EXPECT_EQ(request.reason.rule, "exploding_tensor");
  ASSERT_EQ(out.issues.size(), 1u);
  EXPECT_EQ(out.issues[0].rule, "stop_waits");
  EXPECT_THAT(out.issues[0].recommendation, HasSubstr("--out /data/tocsin-data"));
}

TEST(StopWaits, OneRequestForAllIssuesOfAnAttempt) {
  WordBench bench;
  const auto stop = bench.make("stop_training", "{armed: true, approval: always}");
  const auto first = deliver(*stop, sample_notification());
  const auto again = deliver(*stop, sample_notification("second"));
  EXPECT_EQ(again.code, "awaiting_approval");
  EXPECT_EQ(bench.records.size(), 1u);
  // Told again under the same id: after a kill -9 nobody knows whether it was.
  EXPECT_EQ(again.issues.at(0).event_id, first.issues.at(0).event_id);
}

TEST(StopWaits, OnlyWhereAConditionHolds) {
  WordBench bench;
  const auto stop = bench.make("stop_training", "{armed: true, approval: 'env=prod, job=digits'}");
  EXPECT_EQ(deliver(*stop, sample_notification()).code, "awaiting_approval");
  EXPECT_EQ(bench.written().why, "approval: job=digits");
  WordBench other;
  const auto free = other.make("stop_training", "{armed: true, approval: 'env=prod'}");
  EXPECT_EQ(deliver(*free, sample_notification()).code, "requested");
}

TEST(StopWaits, WhatWasDecidedIsNotAskedAgain) {
  for (const char* state : {"rejected", "expired"}) {
    WordBench bench;
    const auto stop = bench.make("stop_training", "{armed: true, approval: always}");
    deliver(*stop, sample_notification());
    bench.approvals.on_record(bench.written().id,
                              core::decided(bench.written(), state, "ada", kStart));
    const auto out = deliver(*stop, sample_notification("later"));
    EXPECT_TRUE(out.declined);
    EXPECT_EQ(out.code, state);
    EXPECT_TRUE(bench.commands.empty());
    EXPECT_EQ(bench.records.size(), 1u);
  }
}

TEST(StopWaits, ARequestThatCannotBeWrittenIsTriedAgain) {
  WordBench bench;
  const auto stop = bench.make("stop_training", "{armed: true, approval: always}");
  bench.publish_answer = core::Error{core::Code::unavailable, "no broker"};
  EXPECT_EQ(deliver(*stop, sample_notification()).outcome, core::OutcomeClass::transient);
  bench.publish_answer = core::ok();
  EXPECT_EQ(deliver(*stop, sample_notification()).code, "awaiting_approval");
}

TEST(StopWaits, BeyondTheLimitOneWaits) {
  WordBench bench;
  const auto stop = bench.make(
      "stop_training", "{armed: true, approval: 'env=prod', max_stops: {count: 1, per: 10m}}");
  EXPECT_EQ(deliver(*stop, sample_notification()).code, "requested");
  auto second = sample_notification();
  second.issues[0].issue.run.uid = core::run_uid_for("job", "b");
  const auto out = deliver(*stop, second);
  EXPECT_EQ(out.code, "awaiting_approval");
  EXPECT_THAT(bench.written().why, HasSubstr("max_stops, 1 in the last 10m"));
}

TEST(StopWaits, AStopThatIsNotArmedWaitsForNobody) {
  WordBench bench;
  const auto stop = bench.make("stop_training", "{approval: always}");
  EXPECT_EQ(deliver(*stop, sample_notification()).code, "dry_run");
  EXPECT_TRUE(bench.records.empty());
}

TEST(StopWaits, ItsOwnIssueAsksForNoStop) {
  WordBench bench;
  const auto stop = bench.make("stop_training", "{armed: true}");
  auto about = sample_notification();
  about.issues[0].issue.rule = "stop_waits";
  EXPECT_EQ(deliver(*stop, about).code, "not_firing");
  EXPECT_TRUE(bench.commands.empty());
}

TEST(StopWaits, SaysWhatApprovalTakes) {
  EXPECT_THAT(load("receivers: {s: {stop_training: {approval: 'maybe'}}}").errors,
              HasSubstr("expected never, always, or label=value"));
  EXPECT_THAT(load("receivers: {s: {stop_training: {approval_timeout: 400h}}}").errors,
              HasSubstr("approval_timeout"));
}

}  // namespace
}  // namespace tocsin::actions
