// What a rule that ends without data says of the hook's overhead governor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

OwnedFrame said(FakeWorker& worker, const std::string& lifecycle) {
  OwnedFrame frame = worker.heartbeat();
  frame.body = lifecycle;
  frame.header.body_length = static_cast<std::uint32_t>(frame.body.size());
  return frame;
}

core::RuleStatusEvent last_status(RuleHarness& rule) {
  core::RuleStatusEvent out;
  for (const Event& event : rule.events()) {
    if (const auto* status = std::get_if<core::RuleStatusEvent>(&event)) out = *status;
  }
  return out;
}

// A run that ends before `rule` has anything to judge; `applied` is what its governor says.
core::RuleStatusEvent ended(const std::string& type, const std::string& applied) {
  RuleHarness rule = RuleHarness::of(type);
  FakeWorker worker("digits", "short");
  rule.feed(worker.start());
  rule.feed(worker.step_end(Mode::train, 0));
  if (!applied.empty()) rule.feed(said(worker, applied));
  rule.feed(worker.step_end(Mode::train, 1));
  rule.feed(worker.end());
  EXPECT_EQ(rule.rule_state(), "NoData");
  return last_status(rule);
}

TEST(Thinning, TheStatusNamesTheGovernorWhereItTookFromTheRule) {
  const core::RuleStatusEvent status = ended(
      "dead_relu",
      R"({"event":"applied","version":"governor/8","effective_step":1,"left_out":{"layers":8,"gradients":8}})");
  EXPECT_THAT(status.missing,
              Contains(HasSubstr("the hook captured layers at 1 of 8 of its steps")));
  EXPECT_THAT(status.reason, HasSubstr("Raise capture.overhead"));
}

TEST(Thinning, TheLargestFactorOfTheRunCounts) {
  RuleHarness rule = RuleHarness::of("dead_relu");
  FakeWorker worker("digits", "short");
  rule.feed(worker.start());
  for (const char* factor : {"2", "16", "4"}) {
    rule.feed(said(worker, R"({"event":"applied","version":"governor/)" + std::string(factor) +
                               R"(","left_out":{"layers":)" + factor + "}}"));
  }
  rule.feed(worker.end());
  EXPECT_THAT(last_status(rule).reason, HasSubstr("at 1 of 16"));
}

TEST(Thinning, WhatItDidNotTakeIsNotSaid) {
  for (const char* applied :
       {"", R"({"event":"applied","version":"governor/8","left_out":{"gradients":8}})",
        R"({"event":"applied","version":"governor/1","left_out":{}})",
        R"({"event":"applied","version":"governor/8","left_out":["layers"]})",
        R"({"event":"applied","version":"4711","left_out":{"layers":8}})"}) {
    const core::RuleStatusEvent status = ended("dead_relu", applied);
    EXPECT_THAT(status.missing, Not(Contains(HasSubstr("overhead limit")))) << applied;
    EXPECT_THAT(status.missing, Not(IsEmpty()));
  }
}

}  // namespace
}  // namespace tocsin::rules
