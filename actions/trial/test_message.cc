#include "actions/trial/test_message.h"

#include "core/identity.h"

namespace tocsin::actions {
namespace {

constexpr char kTestRule[] = "send_test";

std::string id_of_test(const std::string& integration, core::WallTime now, const char* kind) {
  return core::make_id("ntf_",
                       {"send-test", integration, std::to_string(core::nanoseconds(now)), kind});
}

core::Issue test_issue(const ConfiguredIntegration& integration, const TestMessage& message,
                       core::WallTime now) {
  core::Issue out;
  out.source = "/" + message.cluster + "/send-test";
  out.time = out.starts_at = now;
  out.rule = out.rule_type = kTestRule;
  out.severity = message.severity;
  out.labels = {{"cluster", message.cluster},
                {"severity", std::string(to_string(message.severity))},
                {"test", "true"}};
  out.annotations = {{"title", "TEST message, no action is needed"}};
  out.summary = "TEST: " + message.person + " tries receiver " + integration.receiver +
                " with tocsin send-test.";
  out.description = "No run is affected.";
  return out;
}

}  // namespace

core::Notification test_open(const ConfiguredIntegration& integration, const TestMessage& message,
                             core::WallTime now) {
  const core::Issue issue = test_issue(integration, message, now);
  core::Notification out;
  out.notification_id = id_of_test(integration.common.id, now, "open");
  out.integration = integration.common.id;
  out.type = integration.type;
  out.receiver = integration.receiver;
  out.route_id = "send-test";
  out.group_key = "send-test:{id=\"" + out.notification_id + "\"}";
  out.group_hash = core::hex(core::sha256(out.group_key));
  out.reason = "first";
  out.group_labels = {{"test", "true"}};
  out.common_labels = issue.labels;
  out.issues.push_back({core::issue_key(issue.labels), 1, issue, std::nullopt});
  out.firing_count = 1;
  out.decided_at = now;
  out.expires_at = now + integration.common.max_age;
  return out;
}

core::Notification test_close(const core::Notification& open, core::WallTime now) {
  core::Notification out = open;
  out.notification_id = id_of_test(open.integration, open.decided_at, "close");
  out.kind = core::NotificationKind::close;
  out.reason = "all_resolved";
  out.firing = false;
  out.firing_count = 0;
  out.resolved_count = 1;
  out.decided_at = now;
  out.rendered.clear();
  core::Issue& issue = out.issues.front().issue;
  issue.status = core::IssueStatus::resolved;
  issue.resolution = core::Resolution::manual;
  issue.time = now;
  issue.ends_at = now;
  issue.ending = core::Ending{"The test is over.", "", std::nullopt, std::nullopt};
  return out;
}

}  // namespace tocsin::actions
