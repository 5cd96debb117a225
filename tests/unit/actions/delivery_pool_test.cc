#include "actions/delivery/delivery_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using namespace testing_support;
using core::OutcomeClass;

class Scripted final : public core::Action {
 public:
  explicit Scripted(std::function<core::AttemptOutcome()> what) : what_(std::move(what)) {}
  [[nodiscard]] core::Result<std::string> render(const core::Notification&) const override {
    return std::string();
  }
  core::AttemptOutcome execute(const core::Notification&, std::uint32_t,
                               std::chrono::milliseconds) override {
    ++calls;
    return what_();
  }
  std::atomic<int> calls{0};

 private:
  std::function<core::AttemptOutcome()> what_;
};

// Actions that answer at once, and actions that answer when the test lets them.
struct Far {
  Far() : released(gate.get_future().share()) {}
  ~Far() { release(); }
  void release() {
    if (!open.exchange(true)) gate.set_value();
  }
  void prompt(const std::string& id) {
    actions[id] = std::make_unique<Scripted>([] { return core::AttemptOutcome{}; });
  }
  void hanging(const std::string& id) {
    actions[id] = std::make_unique<Scripted>([this] {
      released.wait();
      return core::AttemptOutcome{};
    });
  }
  PoolOptions options() {
    PoolOptions out;
    out.action = [this](std::string_view id) -> core::Action* {
      const auto found = actions.find(std::string(id));
      return found == actions.end() ? nullptr : found->second.get();
    };
    out.on_finished = [this] {
      ++announced;
      const std::lock_guard lock(mutex);
      wake.notify_all();
    };
    return out;
  }
  // Takes until there are so many results, at most 10 s.
  std::vector<CallResult> take(DeliveryPool& pool, std::size_t count) {
    std::vector<CallResult> out;
    const auto end = std::chrono::steady_clock::now() + 10s;
    while (out.size() < count && std::chrono::steady_clock::now() < end) {
      for (auto& one : pool.take()) out.push_back(std::move(one));
      std::unique_lock lock(mutex);
      if (out.size() < count) wake.wait_for(lock, 5ms);
    }
    return out;
  }

  std::map<std::string, std::unique_ptr<Scripted>> actions;
  std::promise<void> gate;
  std::shared_future<void> released;
  std::atomic<bool> open{false};
  std::atomic<int> announced{0};
  std::mutex mutex;
  std::condition_variable wake;
};

Attempt attempt(const std::string& integration, std::uint64_t ticket = 1) {
  Attempt out;
  out.integration = integration;
  out.ticket = ticket;
  out.budget = 1s;
  out.notification = std::make_shared<core::Notification>(sample_notification());
  return out;
}

TEST(DeliveryPool, CarriesOutAndSaysSo) {
  Far far;
  far.prompt("a");
  DeliveryPool pool(far.options());
  EXPECT_EQ(pool.threads(), 0u);
  pool.submit(attempt("a", 7));
  EXPECT_EQ(pool.in_flight(), 1u);
  const auto done = far.take(pool, 1);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].attempt.ticket, 7u);
  ASSERT_TRUE(done[0].outcome);
  EXPECT_EQ(done[0].outcome->outcome, OutcomeClass::delivered);
  EXPECT_EQ(far.announced, 1);
  EXPECT_EQ(pool.in_flight(), 0u);
}

TEST(DeliveryPool, TwentyIntegrationsThatHangDoNotDelayTheTwentyFirst) {
  Far far;
  PoolOptions options = far.options();
  options.max_threads = 30;  // fewer than the hanging ones would take
  for (int i = 0; i < 20; ++i) far.hanging("hangs" + std::to_string(i));
  far.prompt("well");
  DeliveryPool pool(std::move(options));
  for (int i = 0; i < 20; ++i) {
    for (std::uint64_t n = 0; n < 4; ++n) pool.submit(attempt("hangs" + std::to_string(i), n));
  }
  pool.submit(attempt("well"));
  const auto done = far.take(pool, 1);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].attempt.integration, "well");
  EXPECT_LE(pool.threads(), 30u + 21u);  // 30, and each may have one
  far.release();
  EXPECT_EQ(far.take(pool, 80).size(), 80u);
}

TEST(DeliveryPool, WhatIsQueuedWhenTheLeaseIsLostIsNotSent) {
  Far far;
  far.hanging("a");
  std::atomic<bool> leading{true};
  PoolOptions options = far.options();
  options.gate = [&] { return leading.load(); };
  options.max_threads = 1;
  DeliveryPool pool(std::move(options));
  pool.submit(attempt("a", 1));
  while (far.actions["a"]->calls == 0) std::this_thread::sleep_for(1ms);
  pool.submit(attempt("a", 2));  // waits for the only thread
  leading = false;
  far.release();
  const auto done = far.take(pool, 2);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_TRUE(done[0].outcome);  // was under way
  EXPECT_EQ(done[1].attempt.ticket, 2u);
  EXPECT_FALSE(done[1].outcome);
  EXPECT_EQ(far.actions["a"]->calls, 1);
}

TEST(DeliveryPool, ThreadsGoWhenThereIsNothingToDo) {
  Far far;
  far.prompt("a");
  PoolOptions options = far.options();
  options.idle = 10ms;
  DeliveryPool pool(std::move(options));
  for (int round = 0; round < 2; ++round) {  // and come again
    pool.submit(attempt("a"));
    EXPECT_EQ(far.take(pool, 1).size(), 1u);
    const auto end = std::chrono::steady_clock::now() + 10s;
    while (pool.threads() > 0 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(5ms);
    }
    EXPECT_EQ(pool.threads(), 0u);
  }
}

TEST(DeliveryPool, AnActionThatThrowsIsAnUnknownOutcome) {
  Far far;
  far.actions["a"] = std::make_unique<Scripted>(
      []() -> core::AttemptOutcome { throw std::runtime_error("out of cheese"); });
  DeliveryPool pool(far.options());
  pool.submit(attempt("a"));
  const auto done = far.take(pool, 1);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].outcome->outcome, OutcomeClass::unknown);
  EXPECT_EQ(done[0].outcome->detail, "out of cheese");
}

TEST(DeliveryPool, AnIntegrationThatIsNotThereIsGone) {
  Far far;
  DeliveryPool pool(far.options());
  pool.submit(attempt("nobody"));
  const auto done = far.take(pool, 1);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].outcome->outcome, OutcomeClass::gone);
}

TEST(DeliveryPool, AtItsEndNothingNewStarts) {
  Far far;
  far.hanging("a");
  std::jthread later;
  {
    PoolOptions options = far.options();
    options.max_threads = 1;
    DeliveryPool pool(std::move(options));
    pool.submit(attempt("a", 1));
    while (far.actions["a"]->calls == 0) std::this_thread::sleep_for(1ms);
    pool.submit(attempt("a", 2));
    later = std::jthread([&] {
      std::this_thread::sleep_for(50ms);  // the pool is at its end by then
      far.release();
    });
  }
  EXPECT_EQ(far.actions["a"]->calls, 1);
}

}  // namespace
}  // namespace tocsin::actions
