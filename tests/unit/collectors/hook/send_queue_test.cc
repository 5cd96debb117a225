#include "collectors/hook/publish/send_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin::hook {
namespace {

QueuedRecord record(Precedence precedence, std::int64_t step, std::size_t bytes = 1000) {
  QueuedRecord item;
  item.precedence = precedence;
  item.rows = 10;
  item.first_step = item.last_step = step;
  item.record.value.emplace(bytes, 'x');
  return item;
}

std::vector<std::int64_t> drain(SendQueue& queue) {
  std::vector<std::int64_t> steps;
  while (auto item = queue.pop()) steps.push_back(item->first_step);
  return steps;
}

TEST(SendQueue, FirstInFirstOutWhateverTheLane) {
  SendQueue queue(1 << 20);
  queue.push(record(Precedence::raw, 1));
  queue.push(record(Precedence::control, 2));
  queue.push(record(Precedence::scalars, 3));
  EXPECT_THAT(drain(queue), ::testing::ElementsAre(1, 2, 3));
  EXPECT_EQ(queue.bytes(), 0U);
}

TEST(SendQueue, LowestLaneMakesRoomOldestFirst) {
  SendQueue queue(12'000);
  std::int64_t step = 0;
  for (; queue.bytes() < 9000; ++step) {
    queue.push(record(step % 2 == 0 ? Precedence::statistics : Precedence::raw, step));
  }
  const std::int64_t newest = step;
  EXPECT_TRUE(queue.push(record(Precedence::control, newest, 4000)));
  EXPECT_GT(queue.dropped()[3], 0U);
  EXPECT_EQ(queue.dropped()[2], 0U);
  const auto kept = drain(queue);
  EXPECT_EQ(kept.back(), newest);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
}

// A queue that is full stays so for as long as an outage lasts: what a push() costs then is what every
// step of the training costs.
TEST(SendQueue, ARecordDropsNoMoreThanTheRoomItTakes) {
  SendQueue queue(12'000);
  std::int64_t step = 0;
  while (queue.push(record(Precedence::raw, step))) ++step;
  const std::size_t held = queue.size();
  for (std::uint64_t dropped = 1; dropped <= 3; ++dropped) {
    EXPECT_TRUE(queue.push(record(Precedence::control, step++)));
    EXPECT_EQ(queue.dropped()[3], 1 + dropped);  // the one that found no room before
    EXPECT_EQ(queue.size(), held);
  }
  queue.put_back(*queue.pop());
  const auto kept = drain(queue);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
  EXPECT_EQ(kept.front(), 3);
}

TEST(SendQueue, NothingAboveItsOwnLaneIsDroppedForARecord) {
  SendQueue queue(5'000);
  while (queue.push(record(Precedence::scalars, 1))) {
  }
  EXPECT_FALSE(queue.push(record(Precedence::statistics, 2)));
  EXPECT_FALSE(queue.push(record(Precedence::scalars, 3)));
  EXPECT_TRUE(queue.push(record(Precedence::control, 4)));
  EXPECT_GT(queue.dropped()[1], 1U);
}

TEST(SendQueue, GapsAreToldOnceThereIsRoomAndCoverTheWholeOutage) {
  SendQueue queue(5'000);
  std::int64_t step = 0;
  while (queue.push(record(Precedence::statistics, step))) ++step;
  queue.push(record(Precedence::statistics, step + 1));
  EXPECT_TRUE(queue.take_gaps().empty());  // still full
  drain(queue);
  const auto gaps = queue.take_gaps();
  ASSERT_EQ(gaps.size(), 1U);
  EXPECT_EQ(gaps[0].precedence, Precedence::statistics);
  EXPECT_EQ(gaps[0].frames, 2U);
  EXPECT_EQ(gaps[0].rows, 20U);
  EXPECT_EQ(gaps[0].first_step, step);
  EXPECT_EQ(gaps[0].last_step, step + 1);
  EXPECT_TRUE(queue.take_gaps().empty());
}

TEST(SendQueue, NeverHoldsMoreThanItsBytes) {
  SendQueue queue(20'000);
  for (std::int64_t step = 0; step < 1000; ++step) {
    queue.push(record(static_cast<Precedence>(step % 4), step,
                      static_cast<std::size_t>(step * 37 % 3000)));
    ASSERT_LE(queue.bytes(), 20'000U);
  }
}

TEST(SendQueue, RecordThatWasPutBackIsTheNextOne) {
  SendQueue queue(1 << 20);
  queue.push(record(Precedence::control, 1));
  queue.push(record(Precedence::control, 2));
  queue.put_back(*queue.pop());
  EXPECT_THAT(drain(queue), ::testing::ElementsAre(1, 2));
}

TEST(SendQueue, WakesWhoSleepsLongAndWhoLooksSoonOnlyWhenMuchHasCome) {
  SendQueue queue(16'000);
  queue.going_idle(true);
  queue.push(record(Precedence::scalars, 1));
  EXPECT_EQ(queue.wakes(), 1U);
  queue.nudge();
  EXPECT_EQ(queue.wakes(), 2U);
  drain(queue);
  queue.going_idle(false);
  queue.nudge();
  queue.push(record(Precedence::scalars, 2));
  EXPECT_EQ(queue.wakes(), 2U);
  for (std::int64_t step = 3; step < 6; ++step) queue.push(record(Precedence::scalars, step));
  EXPECT_EQ(queue.wakes(), 3U);  // an eighth was reached once
}

TEST(SendQueue, WaitReturnsForARecordOrAWake) {
  SendQueue queue(1 << 20);
  queue.wake();
  queue.wait(std::chrono::hours(1));
  queue.push(record(Precedence::control, 1));
  queue.wait(std::chrono::hours(1));
  queue.wait(std::chrono::nanoseconds(1), /*only_wake=*/true);
  EXPECT_EQ(queue.size(), 1U);
}

}  // namespace
}  // namespace tocsin::hook
