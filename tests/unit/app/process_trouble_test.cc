// What a process tells of itself: not what passes, again while it stands, and once when it is over.
#include "app/health/process_trouble.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ProcessTroubleTest : public ::testing::Test {
 protected:
  std::vector<core::Issue> at(core::Duration since_start, const std::vector<Trouble>& standing) {
    return trouble_.update(standing, core::wall_time(1'000'000'000'000'000'000) + since_start);
  }
  ProcessTrouble trouble_{"c1", "host", "up"};
  const std::vector<Trouble> stands_{{ProcessIssue::stage_stands_still, "evaluate", "It stands."}};
  const std::vector<Trouble> refused_{{ProcessIssue::configuration_refused, "", "Refused."}};
};

TEST_F(ProcessTroubleTest, WhatPassesIsNotTold) {
  EXPECT_THAT(at(0s, stands_), IsEmpty());
  EXPECT_THAT(at(9s, stands_), IsEmpty());
  EXPECT_THAT(at(10s, {}), IsEmpty());
  EXPECT_THAT(at(12s, stands_), IsEmpty()) << "it is another one";
}

TEST_F(ProcessTroubleTest, WhatStandsIsToldRepeatedAndEnds) {
  EXPECT_THAT(at(0s, stands_), IsEmpty());
  const auto first = at(10s, stands_);
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_EQ(first[0].rule, "stage_stands_still");
  EXPECT_EQ(first[0].status, core::IssueStatus::firing);
  EXPECT_EQ(first[0].labels.get("stage"), "evaluate");
  EXPECT_EQ(first[0].labels.get("node"), "host");
  EXPECT_EQ(first[0].labels.get("role"), "up");
  EXPECT_FALSE(first[0].explicit_expiry) << "who was killed has no last word";
  EXPECT_EQ(first[0].run.attempt, 0U) << "it stops nobody";
  EXPECT_THAT(at(69s, stands_), IsEmpty());
  const auto again = at(70s, stands_);
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again[0].labels, first[0].labels);
  EXPECT_EQ(again[0].starts_at, first[0].starts_at);
  EXPECT_NE(again[0].event_id, first[0].event_id);
  const auto over = at(71s, {});
  ASSERT_THAT(over, SizeIs(1));
  EXPECT_EQ(over[0].status, core::IssueStatus::resolved);
  EXPECT_EQ(over[0].resolution, core::Resolution::recovered);
  EXPECT_GT(over[0].sequence, again[0].sequence);
  EXPECT_THAT(over[0].summary, HasSubstr("It stands."));
  EXPECT_THAT(at(72s, {}), IsEmpty());
}

TEST_F(ProcessTroubleTest, ARefusedFileIsToldAtOnce) { EXPECT_THAT(at(0s, refused_), SizeIs(1)); }

TEST_F(ProcessTroubleTest, WhatWasNotPublishedIsGivenAgain) {
  EXPECT_THAT(at(0s, refused_), SizeIs(1));
  trouble_.lost();
  EXPECT_THAT(at(1s, refused_), SizeIs(1));
  EXPECT_THAT(at(2s, refused_), IsEmpty());
  EXPECT_THAT(at(3s, {}), SizeIs(1));
  trouble_.lost();
  EXPECT_THAT(at(4s, {}), SizeIs(1)) << "its end too";
}

}  // namespace
}  // namespace tocsin::app
