// What a reader of topics says in the log when it cannot read, and how often.
#include "app/api/told_failure.h"

#include <gtest/gtest.h>

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

const core::Error kMissing{core::Code::not_found, "topic a does not exist"};
const core::Error kDown{core::Code::unavailable, "no broker"};
const core::Error kFull{core::Code::resource_exhausted, "the disk is full"};

TEST(ToldFailure, IsToldOnceUntilAnotherOneComes) {
  ToldFailure told;
  EXPECT_TRUE(told(kDown));
  EXPECT_FALSE(told(kDown));
  EXPECT_TRUE(told(kFull));
  EXPECT_TRUE(told(kDown));
  EXPECT_EQ(told.pause(5s), 5s);
}

TEST(ToldFailure, AMissingTopicIsLookedForBeforeItIsTold) {
  ToldFailure told;
  EXPECT_FALSE(told(kMissing));
  EXPECT_EQ(told.pause(5s), 1s);
  EXPECT_FALSE(told(kMissing));
  EXPECT_TRUE(told(kMissing));
  EXPECT_EQ(told.pause(5s), 5s);
  EXPECT_FALSE(told(kMissing));
}

TEST(ToldFailure, ATopicThatIsMissingAgainIsLookedForAgain) {
  ToldFailure told;
  told(kMissing);
  EXPECT_TRUE(told(kDown));
  EXPECT_FALSE(told(kMissing));
  EXPECT_EQ(told.pause(5s), 1s);
}

}  // namespace
}  // namespace tocsin::app
