// Whoever waits for the lead is told when it is won and lost.
#include "app/loop/leadership.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "tests/simulation/broker.h"
#include "tests/simulation/clock.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

class LeadershipTest : public testing::Test {
 protected:
  std::unique_ptr<Leadership> candidate(simulation::MemoryBroker& broker) {
    return std::make_unique<Leadership>(std::move(*broker.lease("router-lease")), clock_, log_,
                                        telemetry_);
  }
  simulation::BrokerOptions options() {
    simulation::BrokerOptions out;
    out.topics = simulation::MemoryBroker::one_partition();
    out.clock = &clock_;
    return out;
  }
  simulation::SimulatedClock clock_;
  core::NullLog log_;
  core::NullTelemetry telemetry_;
};

TEST_F(LeadershipTest, AStepSaysWhetherTheLeadChanged) {
  simulation::MemoryBroker broker(options());
  const auto one = candidate(broker);
  EXPECT_TRUE(one->step(0ms));
  EXPECT_NE(one->term(), 0U);
  EXPECT_FALSE(one->step(0ms));
}

TEST_F(LeadershipTest, WhoeverWaitsIsToldOnceTheLeaseIsWonAndNotAgain) {
  simulation::MemoryBroker broker(options());
  const auto one = candidate(broker);
  std::promise<std::uint64_t> won;
  int told = 0;
  std::jthread thread([&](const std::stop_token& stop) {
    one->run(stop, [&] {
      if (++told == 1) won.set_value(one->term());
    });
  });
  auto term = won.get_future();
  ASSERT_EQ(term.wait_for(60s), std::future_status::ready);
  EXPECT_NE(term.get(), 0U) << "who is told finds it won";
  thread.request_stop();
  thread.join();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(one->term(), 0U) << "it was given back";
}

}  // namespace
}  // namespace tocsin::app
