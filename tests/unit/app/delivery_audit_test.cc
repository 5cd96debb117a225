// Rule 8 over a log: each notification of the outbox has exactly one final state, or is pending.
#include "app/view/delivery_audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actions/actions.h"
#include "app/view/dead_letter_records.h"
#include "ingest/ingest.h"
#include "tests/support/record_fixture.h"

namespace tocsin::app {
namespace {

using core::DeliveryState;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const core::WallTime kDecided = core::wall_time(1'767'323'000'000'000'000);

core::Notification audited(const std::string& id) {
  core::Notification out;
  out.notification_id = id;
  out.integration = "oncall/webhook";
  out.group_key = "g";
  out.decided_at = kDecided;
  return out;
}

/// A log as two topics have it, offsets counted from 0.
class AuditLog {
 public:
  /// The deliverer has passed so many records of the outbox.
  explicit AuditLog(std::int64_t passed)
      : audit_(std::vector<core::Position>{{{"router-outbox", 0}, passed}}) {}
  AuditLog& decide(const std::string& id) {
    return put(ingest::encode_notification(audited(id)), outbox_++);
  }
  AuditLog& replay(const std::string& id, const std::string& replay) {
    return put(replay_record(audited(id), replay), outbox_++);
  }
  AuditLog& end(const std::string& id, DeliveryState state,
                std::vector<std::pair<std::string, std::string>> handles = {}) {
    core::Delivery delivery;
    delivery.notification_id = id;
    delivery.integration = "oncall/webhook";
    delivery.state = state;
    delivery.handles = std::move(handles);
    return put(ingest::encode_delivery(delivery, kDecided, ""), deliveries_++);
  }
  void begin_deliveries_at(std::int64_t offset) { deliveries_ = offset; }
  [[nodiscard]] AuditVerdict verdict() const { return audit_.verdict(); }
  [[nodiscard]] std::vector<std::string> offenders() const {
    std::vector<std::string> out;
    for (const auto& one : verdict().offenders)
      out.push_back(one.notification_id + ": " + one.what);
    return out;
  }

 private:
  AuditLog& put(const core::OutRecord& record, std::int64_t offset) {
    core::RecordView view = ingest::fixture::view_of(record);
    view.offset = offset;
    view.timestamp = core::nanoseconds(kDecided) + 1;
    audit_.apply(view);
    return *this;
  }
  DeliveryAudit audit_;
  std::int64_t outbox_ = 0;
  std::int64_t deliveries_ = 0;
};

TEST(DeliveryAudit, OneEndEachIsWell) {
  AuditLog log(2);
  log.decide("a").decide("b").end("a", DeliveryState::pending).end("a", DeliveryState::delivered);
  log.end("b", DeliveryState::dead);
  EXPECT_THAT(log.offenders(), IsEmpty());
  EXPECT_EQ(log.verdict().notifications, 2U);
  EXPECT_EQ(log.verdict().states.at("dead"), 1U);
  EXPECT_EQ(log.verdict().pending, 0U);
}

TEST(DeliveryAudit, WhatTheDelivererHasPassedWithoutAWordIsLost) {
  AuditLog log(1);
  log.decide("lost").decide("waits").end("other", DeliveryState::delivered);
  EXPECT_THAT(log.offenders(), ElementsAre(HasSubstr("lost: lost")));
  EXPECT_EQ(log.verdict().pending, 1U);
}

TEST(DeliveryAudit, AnAttemptIsNoEnd) {
  AuditLog log(1);
  log.decide("a").end("a", DeliveryState::pending);
  EXPECT_THAT(log.offenders(), ElementsAre(HasSubstr("a: lost")));
}

TEST(DeliveryAudit, TwoEndsOffend) {
  AuditLog log(1);
  log.decide("a").end("a", DeliveryState::delivered).end("a", DeliveryState::expired);
  EXPECT_THAT(log.offenders(), ElementsAre("a: ended 2 times: delivered, expired"));
}

TEST(DeliveryAudit, AReplayHasAnEndOfItsOwn) {
  AuditLog log(2);
  log.decide("a").end("a", DeliveryState::dead).replay("a", "rpl_1");
  EXPECT_THAT(log.offenders(), ElementsAre(HasSubstr("a replay rpl_1: lost")));
  log.end("a", DeliveryState::delivered, {{"replay", "rpl_1"}});
  EXPECT_THAT(log.offenders(), IsEmpty());
  EXPECT_EQ(log.verdict().replays, 1U);
  EXPECT_EQ(log.verdict().notifications, 1U);
}

TEST(DeliveryAudit, ARecipientWithADeliveryOfItsOwnIsOwedAnEnd) {
  AuditLog log(1);
  log.decide("a").end("a", DeliveryState::delivered, {{"put_off", "ada@example.org 450"}});
  EXPECT_THAT(log.offenders(), ElementsAre(HasSubstr("a/ada@example.org: lost")));
  log.end("a/ada@example.org", DeliveryState::expired);
  EXPECT_THAT(log.offenders(), IsEmpty());
}

TEST(DeliveryAudit, WhatIsOlderThanTheLogIsNotJudged) {
  AuditLog log(1);
  log.begin_deliveries_at(7);
  log.decide("old").end("other", DeliveryState::delivered);
  EXPECT_THAT(log.offenders(), IsEmpty());
  EXPECT_EQ(log.verdict().unjudged, 1U);
}

TEST(DeliveryAudit, WithoutThePositionNothingCountsAsLost) {
  DeliveryAudit audit(std::nullopt);
  const auto record = ingest::encode_notification(audited("a"));
  audit.apply(ingest::fixture::view_of(record));
  EXPECT_THAT(audit.verdict().offenders, IsEmpty());
  EXPECT_FALSE(audit.verdict().passed_known);
  EXPECT_THAT(audit_text(audit.verdict(), kDecided), HasSubstr("position is unknown"));
}

}  // namespace
}  // namespace tocsin::app
