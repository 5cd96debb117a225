// Messages that the far side cannot take, whatever it says of them: all others are told in time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "tests/unit/actions/lanes.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace testing_support;
using core::DeliveryState;
using core::NotificationKind;
using core::OutcomeClass;

/// A lane whose far side answers by the message, on a clock that follows the lane's own deadlines.
struct FarSide {
  using Answer = std::function<core::AttemptOutcome(const core::Notification&)>;
  explicit FarSide(Answer how, CommonConfig common = {}, Traits traits = {})
      : answer(std::move(how)), options{"oncall/webhook", common, traits, nullptr, "c1"} {
    start();
  }
  void start() {
    lanes = std::make_unique<DeliveryLanes>(
        std::vector<LaneOptions>{options}, [] { return 0.5; }, telemetry);
  }
  void enqueue(const std::string& id, NotificationKind kind = NotificationKind::open,
               std::string group = "") {
    auto notification = sample_notification(id, kind);
    notification.group_key = group.empty() ? id : group;
    notification.decided_at = now;
    outbox.push_back(notification);
    decided[id] = now;
    lanes->enqueue(std::move(notification), now,
                   core::Position{{"o", 0}, static_cast<std::int64_t>(outbox.size()) - 1});
  }
  /// All that happens until `until`, a call taking `takes`.
  void run(core::WallTime until) {
    while (now <= until) {
      while (auto attempt = lanes->next(now)) {
        ++attempts[attempt->notification->notification_id];
        last_form_short[attempt->notification->notification_id] = attempt->notification->minimal;
        const auto outcome = answer(*attempt->notification);
        const bool hangs = outcome.outcome == OutcomeClass::unknown;
        calls.emplace(now + (hangs ? core::Duration(attempt->budget) : core::Duration(takes)),
                      std::pair(*attempt, outcome));
      }
      auto next = until + 1ns;
      if (const auto at = lanes->next_deadline(now)) next = std::min(next, std::max(*at, now));
      if (!calls.empty()) next = std::min(next, calls.begin()->first);
      next = std::min(next, now + 1s);
      now = std::max(next, now + 1us);
      while (!calls.empty() && calls.begin()->first <= now) {
        const auto [attempt, outcome] = calls.begin()->second;
        calls.erase(calls.begin());
        lanes->finished(attempt, outcome, now);
      }
      lanes->measure(now);
      take();
    }
  }
  void take() {
    auto batch = lanes->take();
    for (auto& record : batch.deliveries) {
      if (record.state != DeliveryState::pending) {
        ended[record.notification_id] = {record.state, now - decided[record.notification_id]};
      }
      journal.push_back(std::move(record));
    }
    for (auto& issue : batch.issues) issues.push_back(std::move(issue));
  }
  /// kill -9: what was committed is read back, the outbox from its beginning.
  void restart() {
    calls.clear();
    start();
    for (const auto& record : journal) lanes->restore(record);
    for (std::size_t i = 0; i < outbox.size(); ++i) {
      lanes->enqueue(outbox[i], now, core::Position{{"o", 0}, static_cast<std::int64_t>(i)});
    }
    take();
  }
  [[nodiscard]] core::Duration told_after(const std::string& id) const {
    const auto found = ended.find(id);
    if (found == ended.end() || (found->second.first != DeliveryState::delivered &&
                                 found->second.first != DeliveryState::delivered_via_digest)) {
      return 24h;
    }
    return found->second.second;
  }
  [[nodiscard]] std::vector<std::string> issues_of(const std::string& rule) const {
    std::vector<std::string> out;
    for (const auto& issue : issues) {
      if (issue.rule == rule) out.emplace_back(core::to_string(issue.status));
    }
    return out;
  }

  core::NullTelemetry telemetry;
  Answer answer;
  LaneOptions options;
  core::WallTime now = kStart;
  std::chrono::milliseconds takes{5};
  std::unique_ptr<DeliveryLanes> lanes;
  std::vector<core::Notification> outbox;
  std::vector<core::Delivery> journal;
  std::vector<core::Issue> issues;
  std::multimap<core::WallTime, std::pair<Attempt, core::AttemptOutcome>> calls;
  std::map<std::string, int> attempts;
  std::map<std::string, bool> last_form_short;
  std::map<std::string, core::WallTime> decided;
  std::map<std::string, std::pair<DeliveryState, core::Duration>> ended;
};

bool odd(const core::Notification& notification) {
  return notification.notification_id.starts_with("odd");
}

FarSide::Answer refuses(OutcomeClass what, std::optional<core::Duration> retry_after = {}) {
  return [=](const core::Notification& one) {
    return outcome(odd(one) ? what : OutcomeClass::delivered,
                   odd(one) ? retry_after : std::nullopt);
  };
}

// Any answer, to one message or to several, in a lane that has a healthy message every ten seconds.
class Poison : public ::testing::TestWithParam<std::tuple<OutcomeClass, int, std::uint32_t>> {};

TEST_P(Poison, KeepsNobodyElseWaiting) {
  const auto [what, count, width] = GetParam();
  CommonConfig common;
  common.concurrency = width;
  FarSide far(refuses(what), common, {.dedup = true});
  for (int i = 0; i < count; ++i) far.enqueue("odd" + std::to_string(i));
  far.run(kStart + 2min);  // each was tried, also where one call hangs after the other
  for (int i = 0; i < 24; ++i) {
    far.enqueue("well" + std::to_string(i));
    far.run(far.now + 10s);
  }
  // At most the call that hangs is waited for, and a second where that was the probe of a breaker.
  const bool hangs = what == OutcomeClass::unknown;
  const core::Duration bound = hangs ? 12s : 5s;
  int late = 0;
  std::string when;
  for (int i = 0; i < 24; ++i) {
    const core::Duration after = far.told_after("well" + std::to_string(i));
    when += " " + core::to_text(after);
    if (after > bound) ++late;
  }
  EXPECT_EQ(late, 0) << when;
  for (const auto& [id, times] : far.attempts) EXPECT_LT(times, 60) << id;
}

INSTANTIATE_TEST_SUITE_P(
    Every, Poison,
    ::testing::Combine(::testing::Values(OutcomeClass::transient, OutcomeClass::unknown,
                                         OutcomeClass::configuration, OutcomeClass::bad_payload),
                       ::testing::Values(1, 3, 7), ::testing::Values(1U, 4U)));

TEST(DeliveryPoison, AThrottleOfOneMessageHoldsTheLaneOnceAndThenThatMessage) {
  FarSide far(refuses(OutcomeClass::throttled, 60s));
  far.enqueue("odd");
  far.run(kStart + 1s);
  for (int i = 0; i < 12; ++i) {
    far.enqueue("well" + std::to_string(i));
    far.run(far.now + 30s);
  }
  EXPECT_LE(far.told_after("well0"), 61s);
  for (int i = 4; i < 12; ++i) EXPECT_LE(far.told_after("well" + std::to_string(i)), 1s) << i;
}

// Own back-off, the short form, then parked and told; delivered when the far side takes it.
TEST(DeliveryPoison, AMessageThatFailsAloneIsShortenedThenParkedAndTold) {
  FarSide far(refuses(OutcomeClass::transient));
  far.enqueue("odd");
  int n = 0;
  while (!far.last_form_short["odd"] && n < 100) {
    far.enqueue("well" + std::to_string(++n));
    far.run(far.now + 5s);
  }
  EXPECT_TRUE(far.last_form_short["odd"]);
  EXPECT_THAT(far.issues_of("delivery_parked"), IsEmpty());
  while (far.issues_of("delivery_parked").empty() && n < 500) {
    far.enqueue("well" + std::to_string(++n));
    far.run(far.now + 5s);
  }
  ASSERT_THAT(far.issues_of("delivery_parked"), ElementsAre("firing"));
  EXPECT_THAT(far.issues.back().summary, HasSubstr("A message fails alone"));
  EXPECT_LT(far.now - kStart, 15min);
  const int before = far.attempts["odd"];
  far.run(far.now + 9min);
  EXPECT_EQ(far.attempts["odd"], before) << "parked: every ten minutes, then less";

  far.restart();  // it stays parked, short, and at the back
  far.enqueue("again");
  far.run(far.now + 5s);
  EXPECT_LE(far.told_after("again"), 1s);
  far.answer = [](const auto&) { return outcome(OutcomeClass::delivered); };
  far.run(far.now + 15min);
  EXPECT_TRUE(far.last_form_short["odd"]);
  EXPECT_EQ(far.ended["odd"].first, DeliveryState::delivered);
}

TEST(DeliveryPoison, WhatIsParkedNoMoreIsResolved) {
  bool well = false;
  FarSide far([&](const core::Notification& one) {
    return outcome(odd(one) && !well ? OutcomeClass::transient : OutcomeClass::delivered);
  });
  far.enqueue("odd");
  for (int n = 0; far.issues_of("delivery_parked").empty() && n < 500; ++n) {
    far.enqueue("well" + std::to_string(n));
    far.run(far.now + 5s);
  }
  well = true;
  far.run(far.now + 11min);
  EXPECT_THAT(far.issues_of("delivery_parked"), ElementsAre("firing", "resolved"));
  EXPECT_THAT(far.issues_of("delivery_dead"), IsEmpty());
}

// A command is not a message: it has no short form, and nobody puts a stop off.
TEST(DeliveryPoison, CommandsAreNeverShortenedNorParked) {
  FarSide far(refuses(OutcomeClass::transient), {}, {.coalesce = false});
  far.enqueue("odd");
  for (int n = 0; n < 200; ++n) {
    far.enqueue("well" + std::to_string(n));
    far.run(far.now + 5s);
  }
  EXPECT_FALSE(far.last_form_short["odd"]);
  EXPECT_GT(far.attempts["odd"], 12);
}

TEST(DeliveryPoison, AfterAKillWhatFailedBeforeGoesBehind) {
  FarSide far(refuses(OutcomeClass::unknown), {}, {.dedup = true});
  for (int i = 0; i < 8; ++i) far.enqueue("odd" + std::to_string(i));
  far.run(kStart + 45s);
  for (int round = 0; round < 5; ++round) {
    far.restart();
    far.enqueue("well" + std::to_string(round));
    far.run(far.now + 7s);
    EXPECT_LE(far.told_after("well" + std::to_string(round)), 5s) << round;
  }
}

TEST(DeliveryPoison, WhenTheFarSideComesBackTheHealthyOnesGoFirst) {
  bool down = true;
  FarSide far([&](const core::Notification& one) {
    return outcome(down || odd(one) ? OutcomeClass::transient : OutcomeClass::delivered);
  });
  for (int i = 0; i < 3; ++i) far.enqueue("odd" + std::to_string(i));
  for (int i = 0; i < 15; ++i) far.enqueue("well" + std::to_string(i));
  far.run(kStart + 10min);
  int calls = 0;
  for (const auto& [id, times] : far.attempts) calls += times;
  EXPECT_LT(calls, 40) << "the breaker is open: a probe now and then";
  down = false;
  const auto back = far.now;
  far.run(far.now + 6min);
  for (int i = 0; i < 15; ++i) {
    const std::string id = "well" + std::to_string(i);
    EXPECT_LE(far.told_after(id) - (back - kStart), 5min + 30s) << id;
  }
}

TEST(DeliveryPoison, TheOrderInsideAnIncidentIsKept) {
  std::vector<std::string> seen;
  bool well = false;
  FarSide far(
      [&](const core::Notification& one) {
        const bool takes = well || !odd(one);
        if (takes && one.group_key == "g") seen.push_back(one.notification_id);
        return outcome(takes ? OutcomeClass::delivered : OutcomeClass::unknown);
      },
      {}, {.dedup = true});
  far.enqueue("odd open", NotificationKind::open, "g");
  far.run(kStart + 15s);
  far.enqueue("close", NotificationKind::close, "g");
  for (int n = 0; n < 20; ++n) {
    far.enqueue("well" + std::to_string(n));
    far.run(far.now + 5s);
  }
  EXPECT_THAT(seen, IsEmpty());
  well = true;
  far.run(far.now + 5min);
  EXPECT_THAT(seen, ElementsAre("odd open", "close"));
}

// One message in a digest that the server does not take: halves find it, nobody else is lost.
TEST(DeliveryPoison, ADigestIsTakenApartUntilTheOddOneIsAlone) {
  for (const auto what : {OutcomeClass::bad_payload, OutcomeClass::transient}) {
    FarSide far(
        [what](const core::Notification& one) {
          bool bad = odd(one);
          for (const auto& issue : one.issues) bad = bad || issue.issue.summary == "odd";
          return outcome(bad ? what : OutcomeClass::delivered);
        },
        {}, {.human = true});
    for (int i = 0; i < 40; ++i) {
      auto notification = sample_notification("n" + std::to_string(i));
      notification.group_key = "g" + std::to_string(i);
      notification.issues[0].issue.summary = i == 17 ? "odd" : "well";
      notification.decided_at = far.now;
      far.decided[notification.notification_id] = far.now;
      far.lanes->enqueue(std::move(notification), far.now);
    }
    far.enqueue("alone");
    // What fails as a whole is only known to be a message's when something arrives.
    for (int n = 0; n < 60; ++n) {
      far.run(far.now + 5s);
      far.enqueue("well" + std::to_string(n));
    }
    for (int i = 0; i < 40; ++i) {
      const std::string id = "n" + std::to_string(i);
      if (i == 17) {
        EXPECT_NE(far.ended[id].first, DeliveryState::delivered);
      } else {
        EXPECT_LE(far.told_after(id), 5min) << id;
      }
    }
  }
}

TEST(DeliveryStanding, IsToldAndEndsWhenItMoves) {
  bool down = true;
  FarSide far([&](const core::Notification&) {
    auto out = outcome(down ? OutcomeClass::transient : OutcomeClass::delivered);
    if (down) out.code = "503";
    return out;
  });
  far.enqueue("a");
  far.enqueue("b");
  far.run(kStart + 4min);
  EXPECT_THAT(far.issues_of("delivery_standing"), IsEmpty());
  far.run(kStart + 5min + 10s);
  ASSERT_THAT(far.issues_of("delivery_standing"), ElementsAre("firing"));
  EXPECT_THAT(far.issues.back().summary,
              HasSubstr("nothing has arrived for 5m, 2 messages wait (503)"));
  far.run(kStart + 8min);
  EXPECT_EQ(far.issues_of("delivery_standing").size(), 3U) << "again each minute";
  far.restart();  // it is known how long it stands
  down = false;
  far.run(far.now + 5min);
  EXPECT_EQ(far.ended.size(), 2U);
}

TEST(DeliveryStanding, EndsWhenAMessageArrives) {
  bool down = true;
  FarSide far([&](const core::Notification&) {
    return outcome(down ? OutcomeClass::throttled : OutcomeClass::delivered);
  });
  far.enqueue("a");
  far.run(kStart + 6min);
  EXPECT_THAT(far.issues_of("delivery_standing"), ::testing::Contains("firing"));
  down = false;
  far.run(far.now + 3min);
  EXPECT_EQ(far.issues_of("delivery_standing").back(), "resolved");
}

TEST(DeliveryStanding, OneMessageThatFailsAloneAndOurOwnLimitsAreNoStanding) {
  FarSide far(refuses(OutcomeClass::transient));
  far.enqueue("odd");
  for (int n = 0; n < 20; ++n) {
    far.enqueue("well" + std::to_string(n));
    far.run(far.now + 5s);
  }
  far.run(far.now + 30min);
  EXPECT_THAT(far.issues_of("delivery_standing"), IsEmpty());

  CommonConfig slow;
  slow.rate_limit = {1, 1h, 1};
  FarSide limited(refuses(OutcomeClass::transient), slow);
  for (int n = 0; n < 5; ++n) limited.enqueue("well" + std::to_string(n));
  limited.run(kStart + 2h);
  EXPECT_THAT(limited.issues_of("delivery_standing"), IsEmpty());
}

TEST(DeliveryStanding, AMessageThatSpeaksOfSuchTroubleOnlyMakesNone) {
  FarSide far([](const core::Notification&) { return outcome(OutcomeClass::transient); });
  auto notification = sample_notification("own");
  notification.issues[0].issue.rule = "delivery_standing";
  notification.decided_at = far.now;
  far.lanes->enqueue(std::move(notification), far.now);
  far.run(kStart + 20min);
  EXPECT_THAT(far.issues_of("delivery_standing"), IsEmpty());
}

// Whatever the far side says, and whatever it says of when: no message is a storm.
TEST(DeliveryPace, NoMessageIsTriedMoreThanTenTimesInASecondNorOftenInAnHour) {
  for (const auto what :
       {OutcomeClass::transient, OutcomeClass::throttled, OutcomeClass::configuration,
        OutcomeClass::gone, OutcomeClass::bad_payload, OutcomeClass::unknown}) {
    for (const std::optional<core::Duration> hint :
         {std::optional<core::Duration>{}, std::optional<core::Duration>{0s},
          std::optional<core::Duration>{-100h}, std::optional<core::Duration>{1ns}}) {
      for (const double chance : {0.0, 0.5, 1.0}) {
        for (const bool held : {false, true}) {
          Lanes lanes({}, {.dedup = true}, chance);
          lanes.enqueue("a");
          std::vector<core::WallTime> at;
          const auto end = kStart + (chance > 0 ? 3600s : 60s);
          while (lanes.now < end && at.size() < 100'000) {
            auto said = outcome(what, hint);
            said.held = held && what == OutcomeClass::transient;
            if (!lanes.step(said).empty()) at.push_back(lanes.now);
            const auto next = lanes.lanes.next_deadline(lanes.now);
            if (!next) break;
            lanes.now = std::max(*next, lanes.now + 1us);
          }
          for (std::size_t i = 11; i < at.size(); ++i) ASSERT_GE(at[i] - at[i - 11], 1s);
          if (chance > 0) {
            EXPECT_LT(at.size(), 150U) << to_string(what);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tocsin::actions
