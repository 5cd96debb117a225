// Flap damping: one message says that an issue flaps, its ends are held, one says that it is calm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const core::Labels kFlapping{
    {"rule", "nan"}, {"job", "digits"}, {"tensor", "a"}, {"severity", "error"}};

class FlappingTest : public ::testing::Test {
 protected:
  FlappingTest() {
    h.tree.group_wait = 0s;
    h.tree.group_interval = 1min;
    h.tree.repeat_interval = std::vector<RepeatStep>{{std::nullopt, 24h}};
    h.tree.flap = FlapConfig{3, 30min, 15min};
    h.open();
  }
  /// Begins and ends `times` times, two minutes each.
  void flap(int times) {
    for (int i = 0; i < times; ++i) {
      h.fire(kFlapping);
      h.at(h.now() - kStart + 2min);
      h.resolve(kFlapping);
      h.at(h.now() - kStart + 2min);
    }
  }
  Harness h;
};

TEST_F(FlappingTest, FromTheNthBeginOnPeopleHearThatItFlapsAndThenThatItIsCalm) {
  flap(2);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "all_resolved close oncall 0/1 over",
                                    "first open oncall 1/0", "all_resolved close oncall 0/1 over"));
  flap(1);  // the third
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_THAT(h.sent.back().why, HasSubstr("nan flaps: it began 3 times within 30m"));
  EXPECT_EQ(h.router().stats().flapping, 1U);
  flap(3);
  EXPECT_THAT(h.said(), IsEmpty());
  h.at(h.now() - kStart + 12min);
  EXPECT_THAT(h.said(), IsEmpty());
  h.at(h.now() - kStart + 4min);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/1 over"));
  EXPECT_THAT(h.sent.back().why, HasSubstr("flaps no more"));
  EXPECT_EQ(h.sent.back().issues.at(0).episode, 6U);
  EXPECT_EQ(h.router().stats().flapping, 0U);
}

TEST_F(FlappingTest, OneThatGoesOnFiringIsCalmToo) {
  flap(3);
  h.fire(kFlapping);
  h.said();
  h.at(h.now() - kStart + 14min);
  EXPECT_THAT(h.said(), IsEmpty());
  h.at(h.now() - kStart + 2min);
  EXPECT_THAT(h.said(), ElementsAre("calm update oncall 1/0"));
  h.resolve(kFlapping);
  h.at(h.now() - kStart + 2min);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/1 over"));
}

TEST_F(FlappingTest, SlowerIsNoFlapping) {
  for (int i = 0; i < 5; ++i) {
    h.fire(kFlapping);
    h.at(h.now() - kStart + 10min);
    h.resolve(kFlapping);
    h.at(h.now() - kStart + 10min);
  }
  EXPECT_EQ(h.said().size(), 10U);
}

TEST_F(FlappingTest, WithoutTheKeyEveryEpisodeIsTold) {
  h.tree.flap.reset();
  h.open();
  flap(5);
  EXPECT_EQ(h.said().size(), 10U);
  EXPECT_EQ(h.changelog.lower_bound("flap/"), h.changelog.lower_bound("flap0"));
}

TEST_F(FlappingTest, AKillAnywhereChangesNothing) {
  for (int i = 0; i < 6; ++i) {
    h.fire(kFlapping);
    h.crash();
    h.at(h.now() - kStart + 2min);
    h.crash();
    h.resolve(kFlapping);
    h.crash();
    h.at(h.now() - kStart + 2min);
    h.crash();
  }
  h.at(h.now() - kStart + 8min);
  h.crash();
  h.at(h.now() - kStart + 8min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "all_resolved close oncall 0/1 over",
                                    "first open oncall 1/0", "all_resolved close oncall 0/1 over",
                                    "first open oncall 1/0", "all_resolved close oncall 0/1 over"));
}

TEST_F(FlappingTest, AHeldEndIsNotNamedAsFiring) {
  flap(3);
  h.said();
  core::Labels other = kFlapping;
  other.set("tensor", "b");
  h.fire(other);
  h.at(h.now() - kStart + 2min);
  EXPECT_THAT(h.said(), ElementsAre("new_issues update oncall 1/0"));
  ASSERT_EQ(h.sent.back().issues.size(), 1U);
  EXPECT_EQ(h.sent.back().issues[0].issue.labels.get("tensor"), "b");
}

}  // namespace
}  // namespace tocsin::routing
