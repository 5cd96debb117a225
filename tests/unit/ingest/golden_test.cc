// Every kind of record byte for byte, and what records of an earlier day still say: tests/golden/.
#include <gtest/gtest.h>

#include <string>

#include "ingest/events/events.h"
#include "ingest/wire/lifecycle.h"
#include "tests/support/golden.h"
#include "tests/support/record_fixture.h"
#include "tests/unit/ingest/event_equality.h"
#include "tests/unit/ingest/event_fixture.h"
#include "tests/unit/ingest/lifecycle_fixture.h"

namespace tocsin::ingest {
namespace {

using namespace fixture;
using core::Lifecycle;
using core::LifecycleEvent;

/// Firing, its severity no label, a step rule's evidence without a tensor.
core::Issue firing_issue() {
  core::Issue issue = full_issue();
  issue.status = core::IssueStatus::firing;
  issue.severity = core::Severity::warning;
  issue.kind.clear();
  issue.labels.set("kind", "");
  issue.ends_at.reset();
  issue.resolution = core::Resolution::none;
  issue.explicit_expiry = false;
  issue.shadow = false;
  issue.mode = core::Mode::train;
  issue.evidence.observed = {"value", 17.0};
  issue.evidence.threshold.reset();
  issue.evidence.tensor.reset();
  issue.evidence.parameters = {
      {"third", 1.0 / 3, "user"},    {"large", 1.5e300, "default"},
      {"small", 1e-7, "default"},    {"list", core::ValueList{1, 2.0}, "user"},
      {"below_zero", -0.25, "user"}, {"many", 123456789.0, "user"}};
  issue.description = "tab\t bell\x07 slash/ back\\ bad \xff byte ü 日本";
  return issue;
}

core::Issue bare_issue() {
  core::Issue issue;
  issue.event_id = "iss_1";
  issue.source = "/mine";
  issue.labels = {{"alertname", "Down"}, {"kind", "x"}};
  return issue;
}

/// Bytes that are not UTF-8 come back as U+FFFD.
core::Issue as_read(core::Issue issue) {
  for (std::size_t at; (at = issue.description.find('\xff')) != std::string::npos;) {
    issue.description.replace(at, 1, "\xef\xbf\xbd");
  }
  return issue;
}

/// The record is today's file, and the file's record says `event`.
template <typename Event>
void same(const std::string& name, const core::OutRecord& now, const Event& event) {
  const std::string text = golden::text(name, golden::to_text(now));
  EXPECT_EQ(golden::to_text(now), text) << name;
  const core::OutRecord stored = golden::record(text);
  const auto decoded = decode_event(view_of(stored));
  ASSERT_TRUE(decoded) << name << ": " << decoded.error().message;
  if constexpr (std::is_same_v<Event, core::Issue>) {
    EXPECT_TRUE(comparable(std::get<Event>(decoded->event)) == comparable(event)) << name;
  } else {
    EXPECT_TRUE(std::get<Event>(decoded->event) == event) << name;
  }
}

TEST(Golden, IssueEvents) {
  same("issue_resolved.txt", encode_issue(full_issue()), full_issue());
  same("issue_firing.txt", encode_issue(firing_issue()), as_read(firing_issue()));
  same("issue_bare.txt", encode_issue(bare_issue()), [] {
    core::Issue issue = bare_issue();
    issue.rule_type = issue.rule;
    return issue;
  }());
}

TEST(Golden, JobEventsAndTheRegistry) {
  same("job_ended.txt", encode_job(full_job(), "c1"), full_job());
  same("registry.txt", encode_registry(full_job(), "c1"), full_job());
  core::JobEvent started;
  started.run = run_ref();
  started.time = at();
  same("job_started.txt", encode_job(started, ""), started);
}

TEST(Golden, RuleStatus) {
  core::RuleStatusEvent plain = full_rule_status();
  plain.summary.clear();  // as all were before rules could sum up
  same("rule_status.txt", encode_rule_status(plain, "c1"), plain);
  same("rule_status_summary.txt", encode_rule_status(full_rule_status(), "c1"), full_rule_status());
}

TEST(Golden, Commands) {
  core::Command open = stop_command();
  open.launch.clear();
  open.ranks.clear();
  open.expires_at.reset();
  open.args = {};
  for (const auto& [name, command] :
       {std::pair{"command.txt", stop_command()}, std::pair{"command_all_ranks.txt", open}}) {
    const auto now = encode_command(command, "/c1/router");
    const std::string text = golden::text(name, golden::to_text(now));
    EXPECT_EQ(golden::to_text(now), text);
    const auto decoded = decode_command(view_of(golden::record(text)));
    ASSERT_TRUE(decoded) << decoded.error().message;
    ASSERT_TRUE(decoded->command);
    core::Command expected = command;
    if (expected.args.is_null()) expected.args = core::ValueMap{};
    EXPECT_TRUE(*decoded->command == expected) << name;
  }
}

TEST(Golden, Acks) {
  core::Ack least;
  least.command_id = "cmd_1";
  least.phase = "received";
  least.attempt = 0;
  for (const auto& [name, ack] :
       {std::pair{"ack.txt", full_ack()}, std::pair{"ack_least.txt", least}}) {
    const auto now = encode_ack(ack, "c1");
    const std::string text = golden::text(name, golden::to_text(now));
    EXPECT_EQ(golden::to_text(now), text);
    const auto decoded = decode_ack(view_of(golden::record(text)));
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_TRUE(*decoded == ack) << name;
  }
}

TEST(Golden, Deliveries) {
  core::Delivery least;
  least.notification_id = "ntf_1";
  for (const auto& [name, delivery] :
       {std::pair{"delivery.txt", full_delivery()}, std::pair{"delivery_least.txt", least}}) {
    const auto now = encode_delivery(delivery, at(), "c1");
    const std::string text = golden::text(name, golden::to_text(now));
    EXPECT_EQ(golden::to_text(now), text);
    const auto decoded = decode_delivery(view_of(golden::record(text)));
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_TRUE(*decoded == delivery) << name;
  }
}

TEST(Golden, Outbox) {
  core::Notification notification = full_notification();
  notification.suppressed = {{"other", 1, firing_issue(), std::nullopt}};
  const auto now = encode_notification(notification);
  const std::string today = golden::text("outbox.txt", golden::to_text(now));
  EXPECT_EQ(golden::to_text(now), today);
  notification.suppressed = {{"other", 1, as_read(firing_issue()), std::nullopt}};
  const auto plain = [](core::Notification whole) {
    whole.issues[0].issue = comparable(whole.issues[0].issue);
    whole.suppressed[0].issue = comparable(whole.suppressed[0].issue);
    return whole;
  };
  const auto decoded = decode_notification(view_of(golden::record(today)));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_TRUE(plain(*decoded) == plain(notification));
  // notification.txt: one JSON object, as the outbox had it at first.
  const auto first =
      decode_notification(view_of(golden::record(golden::text("notification.txt", ""))));
  ASSERT_TRUE(first) << first.error().message;
  notification.why.clear();
  for (core::NotifiedIssue& one : notification.issues) one.acknowledged.reset();
  EXPECT_TRUE(plain(*first) == plain(notification));
}

TEST(Golden, Lifecycles) {
  for (const auto& [name, lifecycle] : lifecycles()) {
    const std::string now = encode_lifecycle(lifecycle);
    const std::string text = golden::text("lifecycle_" + name + ".json", now);
    EXPECT_EQ(now, text);
    const auto decoded = parse_lifecycle(text);
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_TRUE(*decoded == lifecycle) << name;
  }
}

}  // namespace
}  // namespace tocsin::ingest
