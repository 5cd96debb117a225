#include "actions/delivery/delivery_trouble.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/identity.h"

namespace tocsin::actions {
namespace {

constexpr core::Duration kAgain = std::chrono::minutes(1);
constexpr core::Duration kForgotten = std::chrono::hours(1);

core::Duration whole_seconds(core::Duration time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time);
}

std::string messages(std::size_t count, const char* one, const char* many) {
  return count == 1 ? std::string("A message ") + one : std::to_string(count) + " messages " + many;
}

std::string reason_of(const core::Delivery& record) {
  if (record.code.empty()) return record.detail;
  return record.detail.empty() ? record.code : record.code + ": " + record.detail;
}

// What people may do about it.
std::string_view advice_on(ActionIssue rule) {
  switch (rule) {
    case ActionIssue::delivery_config:
      return "Look at the address, the credentials and the secret file of this integration: "
             "`tocsin check`; what waits is sent once they are right.";
    case ActionIssue::delivery_parked:
      return "Others arrive, so it is this message that the far side cannot take. It is tried in "
             "its "
             "short form, every 10 minutes to an hour, until it is too old; the log names it "
             "(delivery_retried).";
    case ActionIssue::delivery_standing:
      return "Look at the far side; what waits is sent once it answers.";
    case ActionIssue::delivery_recipient:
      return "The others get their mail. Look at this mailbox, or take the address out of `to`.";
    default:
      return "Look at the far side. What was given up is not sent again by itself: `tocsin dlq "
             "list` "
             "shows it, `tocsin dlq replay` sends it again.";
  }
}

}  // namespace

bool speaks_of_trouble_only(const core::Notification& message) {
  static constexpr std::array kTrouble{ActionIssue::delivery_dead, ActionIssue::delivery_config,
                                       ActionIssue::delivery_parked, ActionIssue::delivery_standing,
                                       ActionIssue::delivery_recipient};
  return std::all_of(message.issues.begin(), message.issues.end(), [](const auto& one) {
    return std::any_of(kTrouble.begin(), kTrouble.end(),
                       [&](ActionIssue which) { return is(one.issue.rule, which); });
  });
}

std::optional<core::Issue> DeliveryTrouble::given_up(const core::Notification& message,
                                                     const core::Delivery& record,
                                                     core::WallTime now) {
  if (speaks_of_trouble_only(message)) return std::nullopt;
  if (!dead_.stands) dead_.messages = 0;
  ++dead_.messages;
  const std::string after =
      record.attempt > 0 ? " after attempt " + std::to_string(record.attempt) : "";
  return report(dead_, ActionIssue::delivery_dead,
                messages(dead_.messages, "was given up", "were given up") + after, record, now);
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
  const std::string what = "Messages to " + integration_ + " arrive again.";
  for (auto [trouble, rule] :
       {std::pair{&dead_, ActionIssue::delivery_dead}, {&config_, ActionIssue::delivery_config}}) {
    if (auto ended = over(*trouble, rule, what, now)) out.push_back(std::move(*ended));
  }
  return out;
}

std::optional<core::Issue> DeliveryTrouble::parked(const core::Notification& message,
                                                   const core::Delivery& record, std::size_t count,
                                                   core::WallTime now) {
  if (speaks_of_trouble_only(message)) return std::nullopt;
  parked_.messages = count;
  return report(parked_, ActionIssue::delivery_parked,
                messages(count, "fails alone", "fail alone") + " while others arrive", record, now);
}

std::optional<core::Issue> DeliveryTrouble::unparked(core::WallTime now) {
  return over(parked_, ActionIssue::delivery_parked,
              "No message to " + integration_ + " is parked any more.", now);
}

bool DeliveryTrouble::may_say_standing(core::WallTime now) const {
  return !standing_.stands || now - standing_.told >= kAgain;
}

std::optional<core::Issue> DeliveryTrouble::standing(const core::Delivery& record,
                                                     core::WallTime since, std::size_t waiting,
                                                     core::WallTime now) {
  standing_.messages = waiting;
  auto out =
      report(standing_, ActionIssue::delivery_standing,
             "nothing has arrived for " + core::to_text(whole_seconds(now - since)) + ", " +
                 (waiting == 1 ? "1 message waits" : std::to_string(waiting) + " messages wait"),
             record, now);
  return out;
}

std::optional<core::Issue> DeliveryTrouble::moves(core::WallTime now) {
  return over(standing_, ActionIssue::delivery_standing,
              integration_ + " no longer stands still: messages arrive, or none waits any more.",
              now);
}

std::optional<core::Issue> DeliveryTrouble::not_reached(const std::string& recipient,
                                                        const std::string& code,
                                                        const core::Delivery& record,
                                                        core::WallTime now) {
  Trouble& trouble = recipients_[recipient];
  trouble.recipient = recipient;
  ++trouble.messages;
  core::Delivery about = record;
  about.code = code.empty() ? record.code : "smtp " + code;
  about.detail.clear();
  return report(trouble, ActionIssue::delivery_recipient, recipient + " does not get its mail",
                about, now);
}

std::vector<core::Issue> DeliveryTrouble::reached(const std::string& only,
                                                  const std::set<std::string>& missed,
                                                  core::WallTime now) {
  std::vector<core::Issue> out;
  for (auto& [recipient, trouble] : recipients_) {
    if (missed.contains(recipient) || (!only.empty() && only != recipient)) continue;
    if (auto ended = over(trouble, ActionIssue::delivery_recipient,
                          recipient + " gets its mail again.", now)) {
      out.push_back(std::move(*ended));
    }
  }
  return out;
}

std::optional<core::Issue> DeliveryTrouble::report(Trouble& trouble, ActionIssue rule,
                                                   const std::string& what,
                                                   const core::Delivery& record,
                                                   core::WallTime now) {
  if (trouble.stands && now - trouble.told < kAgain) return std::nullopt;
  if (!std::exchange(trouble.stands, true)) trouble.began = now;
  trouble.told = now;
  receiver_ = record.receiver;
  type_ = record.type;
  const std::string why = reason_of(record);
  core::Issue out = issue(trouble, rule, core::IssueStatus::firing, now);
  out.summary = integration_ + ": " + what + (why.empty() ? "." : " (" + why + ").");
  out.recommendation = advice_on(rule);
  return out;
}

std::optional<core::Issue> DeliveryTrouble::over(Trouble& trouble, ActionIssue rule,
                                                 const std::string& what,
                                                 core::WallTime now) const {
  if (!std::exchange(trouble.stands, false)) return std::nullopt;
  core::Issue out = issue(trouble, rule, core::IssueStatus::resolved, now);
  out.summary = what;
  return out;
}

core::Issue DeliveryTrouble::issue(const Trouble& trouble, ActionIssue rule,
                                   core::IssueStatus status, core::WallTime now) const {
  const std::string name(own_issue(rule).name);
  core::Issue out;
  out.source = "/" + cluster_ + "/rules/" + name;
  out.event_id =
      core::make_id("iss_", {name, integration_, trouble.recipient,
                             std::to_string(core::nanoseconds(trouble.began)),
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
  if (!trouble.recipient.empty()) out.labels.set("recipient", trouble.recipient);
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
