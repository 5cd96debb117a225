// What holds for every sequence of decisions and answers.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <random>
#include <set>

#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using namespace testing_support;
using core::DeliveryState;
using core::NotificationKind;
using core::OutcomeClass;

struct World {
  World(std::uint32_t seed, bool human, bool coalesce)
      : random(seed), lanes(make(human, coalesce)) {}

  std::unique_ptr<DeliveryLanes> make(bool human, bool coalesce) {
    CommonConfig common;
    common.max_age = 10min;
    common.max_age_close = 20min;
    common.config_hold = 5min;
    common.retry.max = 30s;
    common.rate_limit = {30, 1min, 5};
    std::vector<LaneOptions> options;
    for (const char* id : {"x", "y"})
      options.push_back({id, common, {coalesce, human, true}, nullptr, "c1"});
    return std::make_unique<DeliveryLanes>(
        std::move(options), [this] { return std::uniform_real_distribution<>(0, 1)(random); },
        telemetry);
  }

  void enqueue(int lane, int group, NotificationKind kind) {
    auto notification = sample_notification("n" + std::to_string(offset), kind);
    notification.integration = lane == 0 ? "x" : "y";
    notification.group_key = "g" + std::to_string(group);
    notification.decided_at = now;
    order[notification.notification_id] = offset;
    outbox.push_back(notification);
    lanes->enqueue(std::move(notification), now, core::Position{{"o", 0}, offset++});
  }

  void start() {
    auto attempt = lanes->next(now);
    if (!attempt) return;
    const auto& sent = *attempt->notification;
    if (sent.reason != "digest") {
      const std::string group = attempt->integration + "/" + sent.group_key;
      RC_ASSERT(flying.insert(group).second);                         // one per group in flight
      RC_ASSERT(not_before[sent.notification_id] <= now);             // never too early
      RC_ASSERT(order[sent.notification_id] >= last_started[group]);  // decision order
      last_started[group] = order[sent.notification_id];
    }
    attempts.push_back(*attempt);
  }

  void answer(std::size_t which, OutcomeClass what) {
    if (attempts.empty()) return;
    const auto at = attempts.begin() + static_cast<std::ptrdiff_t>(which % attempts.size());
    const Attempt attempt = *at;
    attempts.erase(at);
    flying.erase(attempt.integration + "/" + attempt.notification->group_key);
    core::AttemptOutcome outcome;
    outcome.outcome = what;
    if (what == OutcomeClass::throttled) outcome.retry_after = 5s;
    lanes->finished(attempt, outcome, now);
    write();
  }

  void write() {
    const auto batch = lanes->take();
    for (const auto& record : batch.deliveries) {
      journal.push_back(record);
      if (record.state == DeliveryState::pending) {
        not_before[record.notification_id] = *record.next_attempt_at;
        RC_ASSERT(!finals.contains(record.notification_id));
      } else {
        RC_ASSERT(finals.insert(record.notification_id).second);  // exactly one final state
      }
    }
    for (const auto& position : batch.positions) {
      RC_ASSERT(position.next >= committed);
      committed = position.next;
    }
    // Nothing below the position is open.
    for (std::int64_t i = 0; i < committed; ++i)
      RC_ASSERT(finals.contains("n" + std::to_string(i)));
  }

  void restart(bool human, bool coalesce) {
    attempts.clear();
    flying.clear();
    write();
    lanes = make(human, coalesce);
    for (const auto& record : journal) lanes->restore(record);
    last_started.clear();
    for (std::int64_t i = committed; i < offset; ++i) {
      lanes->enqueue(outbox[static_cast<std::size_t>(i)], now, core::Position{{"o", 0}, i});
    }
    write();
  }

  core::NullTelemetry telemetry;
  std::mt19937 random;
  core::WallTime now = kStart;
  std::int64_t offset = 0;
  std::int64_t committed = 0;
  std::vector<core::Notification> outbox;
  std::vector<core::Delivery> journal;
  std::vector<Attempt> attempts;
  std::set<std::string> flying;
  std::set<std::string> finals;
  std::map<std::string, std::int64_t> order;
  std::map<std::string, std::int64_t> last_started;
  std::map<std::string, core::WallTime> not_before;
  std::unique_ptr<DeliveryLanes> lanes;
};

TEST(DeliveryLanesProperty, EveryNotificationEndsOnceInOrderAndNeverTooEarly) {
  const bool held = rc::check([] {
    const bool human = *rc::gen::arbitrary<bool>();
    const bool coalesce = *rc::gen::arbitrary<bool>();
    World world(*rc::gen::arbitrary<std::uint32_t>(), human, coalesce);
    const auto script = *rc::gen::container<std::vector<std::pair<int, int>>>(
        rc::gen::pair(rc::gen::inRange(0, 12), rc::gen::inRange(0, 1000)));
    for (const auto& [what, detail] : script) {
      if (what < 4) {
        world.enqueue(detail % 2, detail % 5, static_cast<NotificationKind>(detail / 7 % 4));
        world.write();
      } else if (what < 7) {
        world.start();
        world.write();
      } else if (what < 10) {
        const int dice = detail % 10;
        world.answer(static_cast<std::size_t>(detail),
                     dice < 4 ? OutcomeClass::delivered : static_cast<OutcomeClass>(dice % 7));
      } else if (what == 10) {
        world.now += std::chrono::milliseconds(detail * detail / 10);
      } else if (detail < 200) {
        world.restart(human, coalesce);
      }
    }
    // Then the far sides are well: everything ends.
    for (int i = 0; i < 20'000 && world.finals.size() < static_cast<std::size_t>(world.offset);
         ++i) {
      world.start();
      world.write();
      if (!world.attempts.empty()) {
        world.answer(0, OutcomeClass::delivered);
      } else if (const auto next = world.lanes->next_deadline(world.now)) {
        world.now = std::max(world.now + 1ns, *next);
      }
    }
    RC_ASSERT(world.finals.size() == static_cast<std::size_t>(world.offset));
    RC_ASSERT(world.committed == world.offset);
    RC_ASSERT(world.attempts.empty());
  });
  EXPECT_TRUE(held);
}

}  // namespace
}  // namespace tocsin::actions
