#include "collectors/hook/client/handover.h"

#include <gtest/gtest.h>

#include <thread>

namespace tocsin::hook {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(HandoverTest, ARequestIsTakenOnceAndAnswered) {
  Handover handover;
  EXPECT_EQ(handover.take(nullptr).what, Handover::Request::none);
  handover.ask({Handover::Request::flush, seconds(7)});
  std::thread sender([&] {
    const Handover::Asked asked = handover.take(nullptr);
    EXPECT_EQ(asked.what, Handover::Request::flush);
    EXPECT_EQ(asked.until, seconds(7));
    EXPECT_EQ(handover.take(nullptr).what, Handover::Request::none);
    handover.answer(true);
  });
  EXPECT_TRUE(handover.wait_for_answer(seconds(10)));
  sender.join();
  handover.ask({Handover::Request::flush, seconds(8)});
  EXPECT_FALSE(handover.wait_for_answer(milliseconds(1)));  // the old answer is not this one's
}

TEST(HandoverTest, TheSenderLeavesAfterTheCommandThread) {
  Handover handover;
  handover.start(2);
  std::thread sender([&] {
    handover.wait_until_alone();
    handover.leave();
  });
  handover.wait_until_all_left(milliseconds(1));
  handover.leave();  // the command thread
  handover.wait_until_all_left(seconds(10));
  sender.join();
}

TEST(HandoverTest, AClientThatClosesLendsNoPublisher) {
  Handover handover;
  EXPECT_EQ(handover.wait_for_publisher(milliseconds(1)), nullptr);
  handover.close();
  EXPECT_EQ(handover.wait_for_publisher(seconds(10)), nullptr);
}

}  // namespace
}  // namespace tocsin::hook
