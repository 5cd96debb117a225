// Dead letters of both kinds: how they are folded, and what is sent again.
#include "app/view/dead_letters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actions/actions.h"
#include "app/view/dead_letter_records.h"
#include "app/view/refused_records.h"
#include "app/view/replay_plan.h"
#include "app/view/topic_view.h"
#include "core/fields/outbox.h"
#include "core/labels.h"
#include "core/topics.h"
#include "ingest/ingest.h"
#include "tests/support/record_fixture.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using core::DeliveryState;
using testing::HasSubstr;

const core::WallTime kDied = core::wall_time(1'767'323'000'000'000'000);
const core::RunUid kLetterRun = core::run_uid_v5("dead letters");

core::Issue letter_issue(core::IssueStatus status, core::WallTime begin = kDied) {
  core::Issue out;
  out.event_id = "iss_" + std::string(to_string(status)) + std::to_string(core::nanoseconds(begin));
  out.source = "/c/rules/overfit";
  out.rule = "overfit";
  out.severity = core::Severity::error;
  out.labels = {{"rule", "overfit"}, {"severity", "error"}, {"run_uid", core::to_text(kLetterRun)}};
  out.run.uid = kLetterRun;
  out.run.attempt = 1;
  out.run.job = "digits";
  out.status = status;
  out.summary = "validation loss rises";
  out.starts_at = begin;
  out.time = begin;
  out.sequence = static_cast<std::uint64_t>(core::nanoseconds(begin));
  if (status == core::IssueStatus::resolved) {
    out.ends_at = begin + 1min;
    out.resolution = core::Resolution::recovered;
  }
  return out;
}

core::Notification dead_message(core::NotificationKind kind = core::NotificationKind::open) {
  core::Notification out;
  out.notification_id = "ntf_one";
  out.integration = "oncall/webhook";
  out.type = "webhook";
  out.receiver = "oncall";
  out.group_key = "{}:{}";
  out.reason = "first";
  out.kind = kind;
  out.decided_at = kDied;
  out.expires_at = kDied + 24h;
  out.rendered = "as it was";
  const core::Issue issue = letter_issue(core::IssueStatus::firing);
  out.issues.push_back({core::issue_key(issue.labels), 1, issue, std::nullopt});
  out.firing_count = 1;
  return out;
}

core::Delivery end_of(DeliveryState state, const std::string& replay = "") {
  core::Delivery out;
  out.notification_id = "ntf_one";
  out.integration = "oncall/webhook";
  out.state = state;
  out.outcome = core::OutcomeClass::gone;
  out.code = "410";
  out.attempt = 1;
  if (!replay.empty()) out.handles.emplace_back("replay", replay);
  return out;
}

template <typename Fold>
void put(Fold& fold, const core::OutRecord& record) {
  fold.apply(ingest::fixture::view_of(record));
}

std::string stand_of(const std::vector<core::OutRecord>& records) {
  DeadLetters letters;
  for (const auto& record : records) put(letters, record);
  letters.close();
  return letters.letters().empty() ? "none" : letters.letters().begin()->second.stand();
}

TEST(DeadLetters, SayHowTheyStand) {
  const auto died = dead_letter_record(dead_message(), end_of(DeliveryState::dead), kDied);
  const auto replayed =
      letter_act_record("ntf_one", "oncall/webhook", {"replay", "ada@n", "back", "rpl_1"});
  const auto discarded =
      letter_act_record("ntf_one", "oncall/webhook", {"discard", "ada@n", "phoned", ""});
  const auto arrived =
      ingest::encode_delivery(end_of(DeliveryState::delivered, "rpl_1"), kDied, "");
  const auto other = ingest::encode_delivery(end_of(DeliveryState::delivered, "rpl_2"), kDied, "");
  const auto again =
      dead_letter_record(dead_message(), end_of(DeliveryState::expired, "rpl_1"), kDied);
  EXPECT_EQ(stand_of({died}), "dead");
  EXPECT_EQ(stand_of({died, replayed}), "replaying");
  EXPECT_EQ(stand_of({died, replayed, other}), "replaying");
  EXPECT_EQ(stand_of({died, replayed, arrived}), "delivered");
  EXPECT_EQ(stand_of({died, replayed, again}), "expired");
  EXPECT_EQ(stand_of({died, discarded}), "discarded");
  EXPECT_EQ(stand_of({discarded}), "none") << "the message is kept no longer";
}

TEST(DeadLetters, ALetterSaysWhyWhoAndWhat) {
  DeadLetters letters;
  put(letters, dead_letter_record(dead_message(), end_of(DeliveryState::dead), kDied));
  put(letters, letter_act_record("ntf_one", "oncall/webhook", {"discard", "ada@n", "phoned", ""}));
  const std::string text = letter_text(letters.letters().at("ntf_one"));
  EXPECT_THAT(text, HasSubstr("dead: gone, 410; after attempt 1"));
  EXPECT_THAT(text, HasSubstr("discard by ada@n: phoned"));
  EXPECT_THAT(text, HasSubstr("[error] digits: validation loss rises"));
}

// ---- what is sent again

TopicView view_with(const std::vector<core::Issue>& issues) {
  TopicView view;
  for (const core::Issue& issue : issues) put(view, ingest::encode_issue(issue));
  view.close_ended();
  return view;
}

constexpr auto kFiring = core::IssueStatus::firing;
constexpr auto kOver = core::IssueStatus::resolved;

TEST(ReplayPlan, ItIsRefreshedMarkedLateAndLivesAnew) {
  core::Issue worse = letter_issue(kFiring);
  worse.severity = core::Severity::critical;
  worse.labels.set("severity", "critical");
  worse.summary = "validation loss has doubled";
  worse.sequence += 1;
  const auto view = view_with({letter_issue(kFiring), worse});
  const auto plan = plan_replay(dead_message(), view, {}, kDied + 48h);
  ASSERT_EQ(plan.refused, "");
  EXPECT_EQ(plan.notification.notification_id, "ntf_one");
  EXPECT_EQ(plan.notification.reason, "replayed");
  EXPECT_EQ(plan.notification.issues[0].issue.summary, "validation loss has doubled");
  EXPECT_EQ(plan.notification.rendered, "");
  EXPECT_EQ(plan.notification.decided_at, kDied);
  EXPECT_GT(plan.notification.expires_at, kDied + 48h);
}

TEST(ReplayPlan, AsItWasKeepsTheBytes) {
  const auto view = view_with({letter_issue(kFiring)});
  const auto plan = plan_replay(dead_message(), view, {true, false}, kDied + 1h);
  EXPECT_EQ(plan.notification.rendered, "as it was");
}

TEST(ReplayPlan, WhatIsOverIsRefusedUnlessForced) {
  const auto view = view_with({letter_issue(kFiring), letter_issue(kOver)});
  EXPECT_THAT(plan_replay(dead_message(), view, {}, kDied).refused, HasSubstr("are over"));
  const auto forced = plan_replay(dead_message(), view, {false, true}, kDied);
  EXPECT_EQ(forced.refused, "");
  EXPECT_EQ(forced.notification.resolved_count, 1U);
  EXPECT_EQ(forced.notification.firing_count, 0U);
}

TEST(ReplayPlan, ALaterEpisodeIsNotTheOneThatWasTold) {
  const auto view =
      view_with({letter_issue(kFiring), letter_issue(kOver), letter_issue(kFiring, kDied + 1h)});
  EXPECT_THAT(plan_replay(dead_message(), view, {}, kDied).refused, HasSubstr("are over"));
}

TEST(ReplayPlan, ACloseOfWhatFiresAgainIsRefused) {
  core::Notification close = dead_message(core::NotificationKind::close);
  close.issues[0].issue = letter_issue(kOver);
  const auto over = view_with({letter_issue(kFiring), letter_issue(kOver)});
  EXPECT_EQ(plan_replay(close, over, {}, kDied).refused, "");
  const auto again =
      view_with({letter_issue(kFiring), letter_issue(kOver), letter_issue(kFiring, kDied + 1h)});
  EXPECT_THAT(plan_replay(close, again, {}, kDied).refused, HasSubstr("fires again"));
}

TEST(ReplayPlan, CommandsAndDeliveriesOfOneRecipientAreNeverSentAgain) {
  const auto view = view_with({letter_issue(kFiring)});
  core::Notification stop = dead_message();
  stop.type = "stop_training";
  EXPECT_NE(plan_replay(stop, view, {true, true}, kDied).refused, "");
  core::Notification own = dead_message();
  own.notification_id = "ntf_one/ada@example.org";
  EXPECT_NE(plan_replay(own, view, {true, true}, kDied).refused, "");
}

// ---- records that could not be read

core::OutRecord refused_event() {
  core::OutRecord event = ingest::encode_issue(letter_issue(kFiring));
  event.value = "{";
  core::RecordView view = ingest::fixture::view_of(event);
  view.partition = 3;
  view.offset = 1234;
  view.timestamp = core::nanoseconds(kDied);
  return ingest::dead_letter(view, "bad_event", "not JSON", "route");
}

TEST(RefusedRecords, ARecordIsPublishedAgainAsItWas) {
  const core::OutRecord event = ingest::encode_issue(letter_issue(kFiring));
  RefusedRecords records({"issues/3@1234"});
  put(records, refused_event());
  const RefusedRecord& record = records.records().at("issues/3@1234");
  const auto again = replay_of_refused(record);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->topic, "issues");
  EXPECT_EQ(again->partition, 3);
  EXPECT_EQ(again->key, event.key);
  EXPECT_EQ(*again->value, "{");
  EXPECT_EQ(again->timestamp, core::nanoseconds(kDied));
  for (const auto& [name, value] : event.headers) {
    EXPECT_EQ(ingest::fixture::header_of(*again, name), value) << name;
  }
}

TEST(RefusedRecords, OneThatWasCutIsNotPublished) {
  core::OutRecord letter = refused_event();
  for (auto& [name, value] : letter.headers) {
    if (name == "original-bytes") value = "2";
  }
  RefusedRecords records({"issues/3@1234"});
  put(records, letter);
  EXPECT_FALSE(replay_of_refused(records.records().begin()->second));
}

TEST(RefusedRecords, WhatAPersonHasSeenToIsNoLongerUnwell) {
  TopicView view;
  RefusedRecords records;
  put(view, refused_event());
  put(records, refused_event());
  EXPECT_EQ(view.refused().records, 1U);
  const auto act =
      refused_act_record(records.records().begin()->second, "discard", "ada@n", "a test");
  put(view, act);
  put(records, act);
  EXPECT_EQ(view.refused().records, 0U);
  EXPECT_EQ(records.records().size(), 1U) << "what was done is no dead letter";
  EXPECT_THAT(refused_text(records.records().begin()->second),
              HasSubstr("discard by ada@n: a test"));
}

}  // namespace
}  // namespace tocsin::app
