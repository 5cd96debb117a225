// A worker that says where it stands.
#include "rules/engine/issues/standing.h"

#include <gtest/gtest.h>

#include "tests/unit/rules/issues_of.h"
#include "tests/unit/rules/state_topic.h"

namespace tocsin::rules {
namespace {

using namespace stories;  // NOLINT: the stories are this file's language

TEST(Standing, AWorkerThatStandsStillSaysWhereUntilItGoesOn) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  const auto says = [&](const std::string& finding) {
    OwnedFrame frame = worker.heartbeat();
    frame.body = R"({"event":"preflight","findings":[)" + finding + "]}";
    frame.header.body_length = static_cast<std::uint32_t>(frame.body.size());
    return frame;
  };
  rule.feed(worker.start())
      .feed(worker.step_end(Mode::train, 0))
      .feed(says(R"({"kind":"goes_on"})"));
  rule.feed(says(R"j({"kind":"stands_still","count":310,"threads":[{"name":"MainThread","frames":)j"
                 R"j(["wait (a.py:1)","step (b.py:2)","train (b.py:9)","<module> (b.py:11)"]}],)j"
                 R"j("collectives":"not available (gloo)"})j"));
  const auto issues = issues_of(rule.firing(), "worker_stands_still");
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].severity, core::Severity::info);
  EXPECT_EQ(issues[0].summary,
            "worker_0 stands still for 310 s: in wait (a.py:1), called from step (b.py:2), called "
            "from train (b.py:9).");
  EXPECT_EQ(issues[0].labels.get("worker"), "worker_0");
  EXPECT_EQ(core::text_at(core::Value(issues[0].evidence.values), "collectives"),
            "not available (gloo)");
  EXPECT_TRUE(issues_of(rule.firing(), "training_preflight").empty());
  EXPECT_TRUE(issues_of(rule.resolved(), "worker_stands_still").empty());
  rule.feed(says(R"({"kind":"goes_on"})"));
  EXPECT_EQ(issues_of(rule.resolved(), "worker_stands_still").size(), 1U);
  rule.feed(says(R"({"kind":"stands_still"})"));  // of a hook that says less
  EXPECT_EQ(issues_of(rule.firing(), "worker_stands_still").back().summary,
            "worker_0 stands still for 0 s.");
}

TEST(Standing, AWorkerThatWasAskedSaysWhereItIs) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  const auto says = [&](const std::string& finding) {
    OwnedFrame frame = worker.heartbeat();
    frame.body = R"({"event":"preflight","findings":[)" + finding + "]}";
    frame.header.body_length = static_cast<std::uint32_t>(frame.body.size());
    return frame;
  };
  rule.feed(worker.start()).feed(worker.step_end(Mode::train, 0));
  rule.feed(says(R"j({"kind":"place","asked_by":"straggler","command_id":"cmd_1","threads":)j"
                 R"j([{"name":"MainThread","frames":["load (a.py:1)","train (b.py:9)"]}],)j"
                 R"j("collectives":"none"})j"));
  const auto issues = issues_of(rule.firing(), "worker_place");
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].severity, core::Severity::info);
  EXPECT_EQ(issues[0].summary,
            "worker_0 was in load (a.py:1), called from train (b.py:9), when straggler asked for "
            "it.");
  const core::Value values(issues[0].evidence.values);
  EXPECT_EQ(core::text_at(values, "asked_by"), "straggler");
  EXPECT_EQ(core::text_at(values, "command_id"), "cmd_1");
  EXPECT_EQ(core::text_at(values, "collectives"), "none");
  EXPECT_TRUE(issues_of(rule.firing(), "worker_stands_still").empty());
  rule.feed(says(R"({"kind":"goes_on"})"));
  EXPECT_TRUE(issues_of(rule.resolved(), "worker_place").empty()) << "it was of one moment";
}

TEST(Standing, APlaceWithoutFramesAndWithoutAnAskerIsSaidPlainly) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  rule.feed(worker.start()).feed(worker.step_end(Mode::train, 0));
  OwnedFrame frame = worker.heartbeat();
  frame.body = R"({"event":"preflight","findings":[{"kind":"place"}]})";
  frame.header.body_length = static_cast<std::uint32_t>(frame.body.size());
  rule.feed(frame);
  EXPECT_EQ(issues_of(rule.firing(), "worker_place").at(0).summary,
            "worker_0 had no frame of Python, when somebody asked for it.");
}

}  // namespace
}  // namespace tocsin::rules
