// Ticks: how soon values are told of, and how often.
#include "app/api/tick_pace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin::app {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

core::RunUid run_number(std::uint8_t number) {
  core::RunUid out;
  out.bytes[0] = number;
  return out;
}
const core::RunUid kOne = run_number(1);
const core::RunUid kOther = run_number(2);

TEST(TickPace, NobodyIsToldOfNothing) {
  TickPace pace;
  EXPECT_EQ(pace.due_in(milliseconds(0)), std::nullopt);
  EXPECT_THAT(pace.take(milliseconds(0)), IsEmpty());
}

TEST(TickPace, TheFirstValueIsToldAtOnceAndTheNextHalfASecondLater) {
  TickPace pace;
  pace.moved(kOne, true);
  EXPECT_EQ(pace.due_in(milliseconds(7)), core::Duration{0});
  EXPECT_THAT(pace.take(milliseconds(7)), ElementsAre(kOne));
  EXPECT_THAT(pace.take(milliseconds(7)), IsEmpty()) << "each once";
  pace.moved(kOne, true);
  EXPECT_EQ(pace.due_in(milliseconds(107)), milliseconds(400));
  EXPECT_THAT(pace.take(milliseconds(506)), IsEmpty());
  EXPECT_THAT(pace.take(milliseconds(507)), ElementsAre(kOne));
}

TEST(TickPace, SamplesDelayNoValue) {
  TickPace pace;
  pace.moved(kOne, false);
  EXPECT_THAT(pace.take(milliseconds(0)), ElementsAre(kOne));
  pace.moved(kOne, true);
  EXPECT_THAT(pace.take(milliseconds(1)), ElementsAre(kOne));
}

TEST(TickPace, SamplesAloneAreToldOnceASecond) {
  TickPace pace;
  pace.moved(kOne, true);
  EXPECT_THAT(pace.take(milliseconds(0)), ElementsAre(kOne));
  pace.moved(kOne, false);
  EXPECT_EQ(pace.due_in(milliseconds(600)), milliseconds(400));
  EXPECT_THAT(pace.take(milliseconds(999)), IsEmpty());
  EXPECT_THAT(pace.take(milliseconds(1000)), ElementsAre(kOne));
}

TEST(TickPace, SamplesComeAlongWithValuesOfAnyRun) {
  TickPace pace;
  pace.moved(kOne, true);
  EXPECT_THAT(pace.take(milliseconds(0)), ElementsAre(kOne));
  pace.moved(kOther, false);
  pace.moved(kOne, true);
  EXPECT_THAT(pace.take(milliseconds(500)), ElementsAre(kOne, kOther));
  EXPECT_EQ(pace.due_in(milliseconds(5000)), std::nullopt);
}

// Every 10 ms something moves: in each second two ticks, and at most one more behind a pause of the values.
TEST(TickPace, HoweverMuchMovesTheTicksAreFew) {
  TickPace pace;
  int ticks = 0;
  for (int at = 0; at < 10'000; at += 10) {
    pace.moved(kOne, at % 30 == 0);
    ticks += pace.take(milliseconds(at)).empty() ? 0 : 1;
  }
  EXPECT_EQ(ticks, 20);
}

}  // namespace
}  // namespace tocsin::app
