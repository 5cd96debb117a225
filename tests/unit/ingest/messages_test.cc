// Commands, acks, deliveries and outbox notifications there and back, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/fields/outbox.h"
#include "ingest/events/events.h"
#include "tests/support/record_fixture.h"
#include "tests/unit/ingest/event_fixture.h"

namespace tocsin::ingest {
namespace {

using namespace fixture;
using testing::HasSubstr;

constexpr std::string_view kMessageRun = "4e3046d4-8c1f-5278-82e3-ea3595bc5999";

TEST(CommandEvent, GoesToThePartitionOfItsRunUnderItsSlot) {
  const core::OutRecord record = encode_command(stop_command(), "/c1/router");
  EXPECT_EQ(record.topic, "commands");
  EXPECT_EQ(record.key, std::string(kMessageRun) + "/stop");
  EXPECT_EQ(record.partition_key, kMessageRun);
  EXPECT_EQ(header_of(record, "ce_id"), "cmd_76sjzs23utzfmje34sq7tnw4rf") << "published vector";
  EXPECT_EQ(header_of(record, "ce_source"), "/c1/router");
  EXPECT_EQ(header_of(record, "ce_causationid"), "iss_x");
  EXPECT_EQ(header_of(record, "ce_correlationid"), "zupjkayr7ead6ilp76aiztqoiy/2");
  EXPECT_EQ(header_of(record, "ce_expirytime"), "2026-01-02T03:05:05.678Z");
}

TEST(CommandEvent, ComesBackWhole) {
  const core::Command command = stop_command();
  const core::OutRecord record = encode_command(command, "/c1/router");
  const auto decoded = decode_command(view_of(record));
  ASSERT_TRUE(decoded) << decoded.error().message;
  ASSERT_TRUE(decoded->command);
  EXPECT_EQ(decoded->action, "stop");
  EXPECT_EQ(decoded->run, command.run);
  const core::Command& back = *decoded->command;
  EXPECT_EQ(encode_command(back, "/c1/router").value, record.value);
  EXPECT_EQ(back.ranks, command.ranks);
  EXPECT_EQ(back.args, command.args);
  EXPECT_EQ(back.expires_at, command.expires_at);
  EXPECT_EQ(back.reason.episode, 2u);
  EXPECT_TRUE(back.dry_run);
}

TEST(CommandEvent, SlotsMayHoldSlashes) {
  core::Command command = stop_command();
  command.action = "adjust/learning_rate";
  const auto record = encode_command(command, "/cli");
  const auto decoded = decode_command(view_of(record));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->action, "adjust/learning_rate");
}

TEST(CommandEvent, ANodesAgentHasAKeyOfItsOwn) {
  core::Command command = stop_command();
  command.run = {};
  command.action = "agent";
  const auto record = encode_command(command, "/cli", "node-7");
  EXPECT_EQ(record.key, "node:node-7/agent");
  EXPECT_EQ(record.partition_key, "node:node-7");
  const auto decoded = decode_command(view_of(record));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_TRUE(decoded->run.nil());
}

TEST(CommandEvent, ATombstoneWithdraws) {
  const auto record = withdraw_command(stop_command().run, "stop");
  EXPECT_EQ(record.key, std::string(kMessageRun) + "/stop");
  EXPECT_EQ(record.partition_key, kMessageRun);
  const auto decoded = decode_command(view_of(record));
  ASSERT_TRUE(decoded);
  EXPECT_FALSE(decoded->command);
  EXPECT_EQ(decoded->action, "stop");
}

std::string command_refusal(const core::OutRecord& record) {
  const auto decoded = decode_command(view_of(record));
  return decoded ? "accepted" : decoded.error().message;
}

TEST(CommandEvent, ACommandForAnotherRunThanItsKeyIsRefused) {
  core::OutRecord record = encode_command(stop_command(), "/x");
  record.key = "00000000-0000-4000-8000-000000000001/stop";
  EXPECT_THAT(command_refusal(record), HasSubstr("differs from its key"));
  record.key = std::string(kMessageRun) + "/capture";
  EXPECT_THAT(command_refusal(record), HasSubstr("differs from its key"));
  record.key = std::string(kMessageRun);
  EXPECT_THAT(command_refusal(record), HasSubstr("is not <run uid>/<slot>"));
  record.key = "somewhere/stop";
  EXPECT_THAT(command_refusal(record), HasSubstr("does not begin with a run uid"));
}

TEST(CommandEvent, BadRanksAreRefused) {
  core::OutRecord record = encode_command(stop_command(), "/x");
  const auto with_ranks = [&](const std::string& ranks) {
    core::OutRecord changed = record;
    const std::size_t at = changed.value->find("[0,4294967294]");
    changed.value->replace(at, 14, ranks);
    return command_refusal(changed);
  };
  EXPECT_EQ(with_ranks("\"all\""), "accepted");
  EXPECT_THAT(with_ranks("\"some\""), HasSubstr("ranks: expected a list"));
  EXPECT_THAT(with_ranks("[-1]"), HasSubstr("ranks: expected a whole number from 0"));
  EXPECT_THAT(with_ranks("[4294967296]"), HasSubstr("ranks: expected"));
}

TEST(AckEvent, ComesBackWhole) {
  const core::Ack ack = full_ack();
  const core::OutRecord record = encode_ack(ack, "c1");
  EXPECT_EQ(record.topic, "acks");
  EXPECT_EQ(record.key, kMessageRun);
  EXPECT_EQ(header_of(record, "ce_source"), "/c1/hook/worker_1");
  EXPECT_EQ(
      header_of(record, "ce_id"),
      core::make_id("ack_", {ack.command_id, "4", "worker_1", "1767323045678", "checkpoint_done"}));
  const auto back = decode_ack(view_of(record));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(encode_ack(*back, "c1").value, record.value);
  EXPECT_EQ(back->checkpoint_bytes, 5'000'000'000u);
  EXPECT_EQ(back->effective_step, 416);
  EXPECT_EQ(back->attempt, 2u);
}

TEST(AckEvent, NeedsCommandAndPhase) {
  core::OutRecord record = encode_ack(full_ack(), "");
  record.value = R"({"command_id":"cmd_x"})";
  const auto back = decode_ack(view_of(record));
  ASSERT_FALSE(back);
  EXPECT_THAT(back.error().message, HasSubstr("phase is missing"));
}

TEST(DeliveryEvent, ComesBackWhole) {
  const core::Delivery delivery = full_delivery();
  const core::OutRecord record = encode_delivery(delivery, at(), "c1");
  EXPECT_EQ(record.topic, "router-deliveries");
  EXPECT_EQ(record.key, "ntf_abc");
  EXPECT_EQ(header_of(record, "ce_type"), "dev.tocsin.delivery.v1");
  const auto back = decode_delivery(view_of(record));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(encode_delivery(*back, at(), "c1").value, record.value);
  EXPECT_EQ(back->latency, delivery.latency);
  EXPECT_EQ(back->handles, delivery.handles);
  EXPECT_EQ(back->state, core::DeliveryState::dead);
  EXPECT_EQ(back->outcome, core::OutcomeClass::bad_payload);
  EXPECT_EQ(back->stages.answered, delivery.stages.answered);
}

TEST(DeliveryEvent, EveryAttemptAndFinalStateHasItsOwnId) {
  core::Delivery delivery = full_delivery();
  const auto id = [&] {
    return std::string(header_of(encode_delivery(delivery, at(), "c1"), "ce_id"));
  };
  const std::string dead = id();
  delivery.state = core::DeliveryState::pending;
  const std::string pending = id();
  delivery.attempt = 4;
  EXPECT_NE(dead, pending);
  EXPECT_NE(pending, id());
}

TEST(OutboxNotification, ComesBackWithItsIssues) {
  const core::Notification notification = full_notification();
  const core::OutRecord record = encode_notification(notification);
  EXPECT_EQ(record.topic, "router-outbox");
  EXPECT_EQ(record.key, "oncall/webhook/0");
  const auto back = decode_notification(view_of(record));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(encode_notification(*back).value, record.value);
  EXPECT_EQ(back->rendered, notification.rendered);
  EXPECT_EQ(back->kind, core::NotificationKind::close);
  EXPECT_FALSE(back->firing);
  ASSERT_EQ(back->issues.size(), 1u);
  EXPECT_EQ(back->issues[0].episode, 3u);
  EXPECT_EQ(back->issues[0].issue.event_id, "iss_6c5duorosylmw5zjzjdy55lrk5");
  EXPECT_EQ(back->issues[0].issue.sequence, 42u);
  EXPECT_EQ(back->issues[0].issue.time, at(1));
  EXPECT_EQ(issue_json(back->issues[0].issue), issue_json(full_issue()));
  ASSERT_EQ(back->suppressed.size(), 1u);
}

TEST(OutboxNotification, IsListedBeforeItsIssuesAreRead) {
  const core::Notification notification = full_notification();
  const core::OutRecord record = encode_notification(notification);
  auto open = open_notification(view_of(record));
  ASSERT_TRUE(open) << open.error().message;
  EXPECT_TRUE(open->issues.empty());
  ASSERT_TRUE(open->packed);
  EXPECT_EQ(core::worst_of(*open), core::worst_of(notification));
  const core::Listing listing = core::listing_of(*open);
  ASSERT_EQ(listing.issues.size(), 1u);
  EXPECT_EQ(listing.issues[0].event_id, notification.issues[0].issue.event_id);
  EXPECT_EQ(listing.measured, notification.issues[0].issue.measured_at);
  EXPECT_EQ(listing.traceparent, notification.issues[0].issue.traceparent);
  EXPECT_EQ(encode_notification(*open).value, record.value);
  ASSERT_TRUE(core::unpack(*open));
  EXPECT_EQ(encode_notification(*open).value, record.value);
}

TEST(OutboxNotification, ManyIssuesFit) {
  core::Notification notification = full_notification();
  notification.issues.assign(200, {"key", 1, full_issue(), std::nullopt});
  const core::OutRecord record = encode_notification(notification);
  ASSERT_LT(record.value->size(), 900u * 1024);
  const auto back = decode_notification(view_of(record));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->issues.size(), 200u);
}

TEST(OutboxNotification, SaysWhichNestedFieldIsWrong) {
  core::OutRecord record = encode_notification(full_notification());
  const std::size_t at = record.value->find(R"("step":412)");
  record.value->replace(at, 10, R"("step":"a")");
  const auto back = decode_notification(view_of(record));
  ASSERT_FALSE(back);
  EXPECT_THAT(back.error().message, HasSubstr("issues[].data.step: expected a whole number"));
}

}  // namespace
}  // namespace tocsin::ingest
