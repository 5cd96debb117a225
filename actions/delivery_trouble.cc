#include "actions/delivery_trouble.h"

#include <algorithm>
#include <utility>

#include "core/identity.h"

namespace tocsin::actions {
namespace {

constexpr core::Duration kAgain = std::chrono::minutes(1);
constexpr core::Duration kForgotten = std::chrono::hours(1);

bool speaks_of_trouble_only(const core::Notification& message) {
  return std::all_of(message.issues.begin(), message.issues.end(), [](const auto& one) {
    return is(one.issue.rule, ActionIssue::delivery_dead) ||
           is(one.issue.rule, ActionIssue::delivery_config);
  });
}

std::string reason_of(const core::Delivery& record) {
  if (record.code.empty()) return record.detail;
  return record.detail.empty() ? record.code : record.code + ": " + record.detail;
}

}  // namespace

std::optional<core::Issue> DeliveryTrouble::given_up(const core::Notification& message,
                                                     const core::Delivery& record,
                                                     core::WallTime now) {
  if (speaks_of_trouble_only(message)) return std::nullopt;
  if (!dead_.stands) dead_.messages = 0;
  ++dead_.messages;
  const std::string count =
      dead_.messages == 1 ? "A message was" : std::to_string(dead_.messages) + " messages were";
  const std::string after =
      record.attempt > 0 ? " after attempt " + std::to_string(record.attempt) : "";
  return report(dead_, ActionIssue::delivery_dead, count + " given up" + after, record, now);
}

std::optional<core::Issue> DeliveryTrouble::refused(const core::Notification& message,
                                                    const core::Delivery& record,
                                                    core::WallTime now) {
  if (speaks_of_trouble_only(message)) return std::nullopt;
  return report(config_, ActionIssue::delivery_config,
                "Messages are refused until this is put right", record, now);
}

std::vector<core::Issue> DeliveryTrouble::arrived(core::WallTime now) {
  std::vector<core::Issue> out;
  for (auto [trouble, rule] :
       {std::pair{&dead_, ActionIssue::delivery_dead}, {&config_, ActionIssue::delivery_config}}) {
    if (!std::exchange(trouble->stands, false)) continue;
    core::Issue over = issue(*trouble, rule, core::IssueStatus::resolved, now);
    over.summary = "Messages to " + integration_ + " arrive again.";
    out.push_back(std::move(over));
  }
  return out;
}

std::optional<core::Issue> DeliveryTrouble::report(Trouble& trouble, ActionIssue rule,
                                                   std::string what, const core::Delivery& record,
                                                   core::WallTime now) {
  if (trouble.stands && now - trouble.told < kAgain) return std::nullopt;
  if (!std::exchange(trouble.stands, true)) trouble.began = now;
  trouble.told = now;
  trouble.why = reason_of(record);
  receiver_ = record.receiver;
  type_ = record.type;
  core::Issue out = issue(trouble, rule, core::IssueStatus::firing, now);
  out.summary = integration_ + ": " + std::move(what) +
                (trouble.why.empty() ? "." : " (" + trouble.why + ").");
  out.recommendation =
      rule == ActionIssue::delivery_config
          ? "Look at the address, the credentials and the secret file of this integration: "
            "`tocsin check`; what waits is sent once they are right."
          : "Look at the far side. What was given up is not sent again by itself; the log names it "
            "(delivery_finished, state dead or expired).";
  return out;
}

core::Issue DeliveryTrouble::issue(const Trouble& trouble, ActionIssue rule,
                                   core::IssueStatus status, core::WallTime now) const {
  const std::string name(own_issue(rule).name);
  core::Issue out;
  out.source = "/" + cluster_ + "/rules/" + name;
  out.event_id =
      core::make_id("iss_", {name, integration_, std::to_string(core::nanoseconds(trouble.began)),
                             std::to_string(core::nanoseconds(now)), core::to_string(status)});
  out.sequence = static_cast<std::uint64_t>(std::max<std::int64_t>(core::nanoseconds(now), 0));
  out.time = out.measured_at = out.evaluated_at = now;
  out.starts_at = trouble.began;
  out.status = status;
  out.rule = out.rule_type = name;
  out.severity = core::Severity::error;
  out.labels.set("rule", name);
  out.labels.set("severity", core::to_string(out.severity));
  out.labels.set("cluster", cluster_);
  out.labels.set("integration", integration_);
  out.labels.set("receiver", receiver_);
  out.labels.set("type", type_);
  out.run.attempt = 0;  // it speaks of none, and so never stops any
  if (status == core::IssueStatus::resolved) {
    out.ends_at = now;
    out.resolution = core::Resolution::recovered;
  } else {
    out.ends_at = now + kForgotten;
  }
  out.evidence.first_seen = trouble.began;
  out.evidence.occurrences = std::max<std::uint64_t>(trouble.messages, 1);
  return out;
}

}  // namespace tocsin::actions
