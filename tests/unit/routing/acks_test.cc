// Acknowledgements: no repeats while somebody has taken an issue on; all else goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const core::Labels kAcked{
    {"rule", "nan"}, {"job", "digits"}, {"tensor", "a"}, {"severity", "error"}};
const core::Labels kOther{
    {"rule", "nan"}, {"job", "digits"}, {"tensor", "b"}, {"severity", "error"}};

class AcksTest : public ::testing::Test {
 protected:
  AcksTest() {
    h.tree.repeat_interval = std::vector<RepeatStep>{{std::nullopt, 1h}};
    h.open();
  }
  Acknowledgement of(const core::Labels& labels) {
    Acknowledgement ack;
    ack.id = "ack_one";
    ack.issues = {core::issue_key(labels)};
    ack.by = "ada@node-7";
    ack.note = "looking";
    ack.at = h.now();
    ack.origin = "cli";
    return ack;
  }
  void write(const Acknowledgement& ack) {
    const auto taken = h.router().on_control("ack/" + ack.id, ack_json(ack), h.now());
    ASSERT_TRUE(taken) << taken.error().message;
    h.commit();
  }
  Harness h;
};

TEST_F(AcksTest, WhatSomebodyHasTakenOnIsNotRepeated) {
  h.fire(kAcked);
  h.at(10min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  write(of(kAcked));
  EXPECT_EQ(h.router().stats().acked, 1U);
  h.at(5h);
  EXPECT_THAT(h.said(), IsEmpty());
  h.resolve(kAcked);
  h.at(6h);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/1 over"));
  EXPECT_FALSE(h.sent.back().issues.at(0).acknowledged);
}

TEST_F(AcksTest, WithoutOneItIsRepeated) {
  h.fire(kAcked);
  h.at(2h + 10min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "repeat repeat oncall 1/0",
                                    "repeat repeat oncall 1/0"));
}

TEST_F(AcksTest, NewIssuesGoOutAndSayWhoHasTheOthers) {
  h.fire(kAcked);
  h.at(10min);
  write(of(kAcked));
  h.fire(kOther);
  h.at(20min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "new_issues update oncall 2/0"));
  for (const auto& one : h.sent.back().issues) {
    const bool acked = one.issue.labels.get("tensor") == "a";
    ASSERT_EQ(one.acknowledged.has_value(), acked);
    if (acked) {
      EXPECT_EQ(one.acknowledged->by, "ada@node-7");
      EXPECT_EQ(one.acknowledged->note, "looking");
    }
  }
  h.at(2h);  // one of them is nobody's: the group repeats
  EXPECT_THAT(h.said(), ElementsAre("repeat repeat oncall 2/0"));
}

TEST_F(AcksTest, ARaisedSeverityGoesOut) {
  h.fire(kAcked);
  h.at(10min);
  write(of(kAcked));
  core::Labels worse = kAcked;
  worse.set("severity", "critical");
  h.fire(worse);
  h.at(20min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "severity_raised update oncall 1/0"));
}

TEST_F(AcksTest, TheNextEpisodeIsNobodys) {
  h.fire(kAcked);
  h.at(10min);
  write(of(kAcked));
  h.resolve(kAcked);
  h.at(20min);
  h.fire(kAcked);
  h.at(30min);
  h.said();
  h.at(2h);
  EXPECT_THAT(h.said(), ElementsAre("repeat repeat oncall 1/0"));
  EXPECT_EQ(h.router().stats().acked, 0U);
}

TEST_F(AcksTest, ItEndsAfterAckTimeoutAndPeopleAreReminded) {
  h.fire(kAcked);
  h.at(10min);
  write(of(kAcked));
  h.said();
  h.at(24h + 9min);
  EXPECT_THAT(h.said(), IsEmpty());
  h.at(24h + 11min);
  EXPECT_THAT(h.said(), ElementsAre("ack_expired update oncall 1/0"));
  EXPECT_THAT(h.sent.back().why, HasSubstr("The acknowledgement by ada@node-7 has ended"));
  EXPECT_FALSE(h.sent.back().issues.at(0).acknowledged);
  h.at(25h + 12min);
  EXPECT_THAT(h.said(), ElementsAre("repeat repeat oncall 1/0"));
}

TEST_F(AcksTest, ItEndsWhenItWasSaidTo) {
  h.fire(kAcked);
  h.at(10min);
  Acknowledgement ack = of(kAcked);
  ack.until = h.now() + 3h;
  write(ack);
  h.said();
  h.at(3h + 9min);
  EXPECT_THAT(h.said(), IsEmpty());
  h.at(3h + 11min);
  EXPECT_THAT(h.said(), ElementsAre("ack_expired update oncall 1/0"));
}

TEST_F(AcksTest, TakenBackItIsRepeatedAgain) {
  h.fire(kAcked);
  h.at(10min);
  write(of(kAcked));
  h.at(3h);
  h.said();
  ASSERT_TRUE(h.router().on_control("ack/ack_one", std::nullopt, h.now()));
  h.at(3h + 1min);
  EXPECT_THAT(h.said(), ElementsAre("repeat repeat oncall 1/0"));
}

TEST_F(AcksTest, SurvivesAKillAlsoBetweenItsEndAndTheReminder) {
  h.fire(kAcked);
  h.at(10min);
  write(of(kAcked));
  h.crash();
  h.at(24h + 9min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  h.stop_until(30h);
  h.open();
  h.at(30h + 1min);
  EXPECT_THAT(h.said(), ElementsAre("ack_expired update oncall 1/0"));
  h.crash();
  h.at(30h + 30min);
  EXPECT_THAT(h.said(), IsEmpty());
}

TEST_F(AcksTest, ARunIsAllOfItsIssues) {
  core::Labels one = kAcked;
  core::Labels two = kOther;
  one.set("run_uid", kRun);
  two.set("run_uid", kRun);
  h.fire(one);
  h.fire(two);
  h.at(10min);
  Acknowledgement ack = of(one);
  ack.issues.clear();
  ack.run = kRun;
  write(ack);
  EXPECT_EQ(h.router().stats().acked, 2U);
  h.said();
  h.at(5h);
  EXPECT_THAT(h.said(), IsEmpty());
}

TEST_F(AcksTest, AGroupIsItsMembersOfThatIncident) {
  h.fire(kAcked);
  h.at(10min);
  Acknowledgement ack = of(kAcked);
  ack.issues.clear();
  ack.group = h.sent.back().group_hash + "-2";  // the next incident: not this one
  write(ack);
  EXPECT_EQ(h.router().stats().acked, 0U);
  ack.group = h.sent.back().group_hash + "-1";
  write(ack);
  EXPECT_EQ(h.router().stats().acked, 1U);
}

TEST_F(AcksTest, OneThatIsReadBeforeItsIssueCounts) {
  Acknowledgement ack = of(kAcked);
  ack.at = h.now() + 10s;  // the issue was seen in the topic before the router read it
  write(ack);
  h.at(5s);
  h.fire(kAcked);
  h.at(5h);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
}

TEST_F(AcksTest, OneOfBeforeDoesNotCoverWhatBeginsLater) {
  write(of(kAcked));
  h.at(1min);
  h.fire(kAcked);
  h.at(2h + 10min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "repeat repeat oncall 1/0",
                                    "repeat repeat oncall 1/0"));
}

TEST_F(AcksTest, IsForgottenWithItsEpisodes) {
  h.fire(kAcked);
  h.at(10min);
  write(of(kAcked));
  ASSERT_TRUE(h.changelog.contains("ack/ack_one"));
  h.resolve(kAcked);
  h.at(1h);
  h.router().tick(h.now());
  h.commit();
  EXPECT_FALSE(h.changelog.contains("ack/ack_one"));
}

TEST_F(AcksTest, RefusesWhatNamesNothingOrNobody) {
  Acknowledgement ack = of(kAcked);
  ack.by.clear();
  EXPECT_FALSE(h.router().on_control("ack/ack_one", ack_json(ack), h.now()));
  ack = of(kAcked);
  ack.issues.clear();
  EXPECT_FALSE(h.router().on_control("ack/ack_one", ack_json(ack), h.now()));
  ack = of(kAcked);
  EXPECT_FALSE(h.router().on_control("ack/ack_two", ack_json(ack), h.now()));
  ack.until = ack.at;
  EXPECT_FALSE(h.router().on_control("ack/ack_one", ack_json(ack), h.now()));
  EXPECT_FALSE(h.router().on_control("ack/ack_one", "{", h.now()));
}

class PropagatedAckTest : public AcksTest {
 protected:
  PropagatedAckTest() {
    h.integrations = {webhook("oncall"), webhook("pager"), webhook("other")};
    h.integrations[1].acknowledges = true;
    h.integrations[2].acknowledges = true;
    h.tree.receivers = {"oncall", "pager", "other"};
    h.tree.further.propagate_ack = true;
    h.open();
  }
};

TEST_F(PropagatedAckTest, IsPassedOnToToolsThatKnowOneOnce) {
  h.fire(kAcked);
  h.at(10min);
  h.said();
  Acknowledgement ack = of(kAcked);
  ack.origin = "other";
  write(ack);
  h.at(11min);
  EXPECT_THAT(h.said(), ElementsAre("acknowledged update pager 1/0"));
  EXPECT_EQ(h.sent.back().why, "Acknowledged by ada@node-7.");
  // The pager reports it back, as its acknowledgement: nobody is told again.
  Acknowledgement echo = of(kAcked);
  echo.id = "ack_echo";
  echo.origin = "pager";
  write(echo);
  h.at(3h);
  EXPECT_THAT(h.said(), IsEmpty());
}

TEST_F(PropagatedAckTest, NotWhileAnythingFiresThatNobodyHasTakenOn) {
  h.fire(kAcked);
  h.fire(kOther);
  h.at(10min);
  h.said();
  write(of(kAcked));
  h.at(20min);
  EXPECT_THAT(h.said(), IsEmpty());
}

TEST_F(PropagatedAckTest, SurvivesAKillBeforeItWasPassedOn) {
  h.fire(kAcked);
  h.at(10min);
  h.said();
  write(of(kAcked));
  h.crash();
  h.at(11min);
  EXPECT_THAT(h.said(),
              ElementsAre("acknowledged update pager 1/0", "acknowledged update other 1/0"));
  h.crash();
  h.at(20min);
  EXPECT_THAT(h.said(), IsEmpty());
}

}  // namespace
}  // namespace tocsin::routing
