#include "actions/message/answer_buttons.h"

#include <algorithm>

#include "actions/contract/own_issues.h"
#include "actions/message/headline.h"
#include "core/json.h"
#include "core/visible_text.h"

namespace tocsin::actions {
namespace {

using Purpose = AnswerTarget::Purpose;

constexpr std::size_t kLongestQuestion = 300;

bool somebody_has_it(const core::Notification& notification) {
  return std::all_of(notification.issues.begin(), notification.issues.end(), [](const auto& one) {
    return one.acknowledged || one.issue.status != core::IssueStatus::firing;
  });
}

/// The one stop that waits for a person, among all that the message tells; null: none does, or several,
/// which each need a message of their own to be told apart.
const core::Issue* waiting_stop(const core::Notification& notification) {
  const core::Issue* out = nullptr;
  for (const core::NotifiedIssue& one : notification.issues) {
    const bool waits = is(one.issue.rule, ActionIssue::stop_waits) &&
                       one.issue.status == core::IssueStatus::firing;
    if (waits && out != nullptr) return nullptr;
    if (waits) out = &one.issue;
  }
  return out;
}

/// Approve and reject.
void add_stop_buttons(const core::Issue& issue, std::vector<AnswerButton>& out) {
  AnswerTarget target;
  target.stop = core::text_at(issue.evidence.values, "command_id");
  target.purpose = Purpose::approve_stop;
  if (!AnswerTarget::parse(target.text())) return;
  std::string name = core::visible(issue.run.job, 80);
  if (name.empty()) name = "the run";
  const std::string attempt = ", attempt " + std::to_string(issue.run.attempt);
  out.push_back({"Stop the run", target.text(), false, true,
                 core::visible("Tocsin asks " + name + attempt +
                                   ", to stop, with a checkpoint where the action says so. This "
                                   "cannot be taken back.",
                               kLongestQuestion),
                 "Stop it", "Not now"});
  target.purpose = Purpose::cancel_stop;
  out.push_back({"Let it run", target.text(), false, false,
                 core::visible(name + attempt + " goes on, and the stop that waits is rejected.",
                               kLongestQuestion),
                 "Let it run", "Not now"});
}

}  // namespace

bool is_of_the_router(const core::Issue& issue, const Sender& sender) {
  const std::string cluster = sender.cluster.empty() ? "" : "/" + sender.cluster;
  return issue.source == cluster + "/router";
}

std::vector<AnswerButton> answer_buttons(const core::Notification& notification,
                                         const Sender& sender) {
  std::vector<AnswerButton> out;
  const core::NotifiedIssue* lead = lead_of(notification);
  // A digest tells of several incidents, and a test of none.
  if (!sender.buttons || lead == nullptr || notification.reason == "digest") return out;
  if (is_of_the_router(lead->issue, sender)) return out;
  const auto taken = answer_target(notification, Purpose::acknowledge);
  if (!taken) return out;
  const core::Issue* stop = sender.buttons->stops ? waiting_stop(notification) : nullptr;
  if (stop != nullptr) add_stop_buttons(*stop, out);
  if (!somebody_has_it(notification)) {
    out.push_back({"Acknowledge", taken->text(), out.empty(), false, {}, {}, {}});
  }
  const std::string words = silenced_words(notification.issues.front().issue);
  if (words.empty()) return out;
  out.push_back({"Silence 1 h", answer_target(notification, Purpose::silence)->text(), false, false,
                 core::visible("No messages for 1 hour about " + words +
                                   ", whatever is found. Stops go on as configured.",
                               kLongestQuestion),
                 "Silence it", "Cancel"});
  return out;
}

}  // namespace tocsin::actions
