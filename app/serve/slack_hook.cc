#include "app/serve/slack_hook.h"

#include <algorithm>

namespace tocsin::app {
namespace {

bool is_slack_user(const std::string& text) {
  constexpr std::size_t kLongestUser = 40;
  return text.size() > 1 && text.size() <= kLongestUser &&
         (text.front() == 'U' || text.front() == 'W') &&
         text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == std::string::npos;
}

void check_users(const config::Reader& in, const char* key, const std::vector<std::string>& users) {
  for (std::size_t i = 0; i < users.size(); ++i) {
    if (is_slack_user(users[i])) continue;
    in.error(std::string(key) + "[" + std::to_string(i) + "]",
             "expected the member ID of a user, such as U02ABC3DE (in Slack: profile, Copy member "
             "ID)");
  }
}

bool contains(const std::vector<std::string>& users, const std::string& user) {
  return std::find(users.begin(), users.end(), user) != users.end();
}

}  // namespace

bool SlackHook::may_answer(const std::string& user, bool of_our_workspace) const {
  return contains(operators, user) || contains(stoppers, user) ||
         (operators.empty() && of_our_workspace);
}

bool SlackHook::may_stop(const std::string& user) const { return contains(stoppers, user); }

void read_slack_hook(config::Reader& in, SlackHook& out) {
  in.optional(
      "integrations", out.integrations,
      "slack: ids of the integrations whose messages get buttons; each needs a bot's token");
  in.optional("operators", out.operators,
              "slack: member IDs of those who may acknowledge and silence; empty: everybody in the "
              "app's workspace");
  in.optional("stoppers", out.stoppers,
              "slack: member IDs of those who may approve or reject a stop too; empty: nobody, and "
              "messages have no such button");
  in.optional("replies_to", out.replies.origin,
              "slack: scheme and host of the URLs by which Slack takes answers to clicks");
  in.optional("allow_private", out.replies.allow_private,
              "slack: private networks that `replies_to` may lead to, such as 10.0.0.0/8");
  if (in.describing()) return;
  check_users(in, "operators", out.operators);
  check_users(in, "stoppers", out.stoppers);
  const std::string problem = actions::click_reply_problem(out.replies);
  if (!problem.empty()) in.error("replies_to", problem);
}

}  // namespace tocsin::app
