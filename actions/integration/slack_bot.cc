#include "actions/integration/slack_bot.h"

#include <algorithm>
#include <array>

#include "actions/contract/message_fault.h"
#include "actions/integration/http_dialog.h"

namespace tocsin::actions {
namespace {

using core::OutcomeClass;

struct SlackPlace {
  std::string channel;
  std::string ts;
};

bool all_of(const std::string& text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string::npos;
}

/// Empty where it is none: it is put into JSON.
SlackPlace place_of(std::string_view id) {
  const std::size_t blank = id.find(' ');
  if (blank == std::string_view::npos) return {};
  return {std::string(id.substr(0, blank)), std::string(id.substr(blank + 1))};
}

template <std::size_t Count>
bool one_of(const std::string& word, const std::array<std::string_view, Count>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Of `error`. What nobody knows is the message's fault: its short form may pass.
OutcomeClass class_of(const std::string& error) {
  static constexpr std::array<std::string_view, 2> kThrottled{"ratelimited", "rate_limited"};
  static constexpr std::array<std::string_view, 7> kTransient{
      "internal_error",    "fatal_error",        "service_unavailable", "request_timeout",
      "team_added_to_org", "org_login_required", "update_failed"};
  static constexpr std::array<std::string_view, 25> kConfiguration{
      "invalid_auth",
      "not_authed",
      "token_revoked",
      "token_expired",
      "account_inactive",
      "missing_scope",
      "no_permission",
      "not_allowed_token_type",
      "not_in_channel",
      "channel_not_found",
      "is_archived",
      "is_inactive",
      "restricted_action",
      "restricted_action_read_only_channel",
      "restricted_action_thread_only_channel",
      "restricted_action_non_threadable_channel",
      "ekm_access_denied",
      "access_denied",
      "accesslimited",
      "enterprise_is_restricted",
      "two_factor_setup_required",
      "team_access_not_granted",
      "team_not_found",
      "method_deprecated",
      "deprecated_endpoint"};
  if (one_of(error, kThrottled)) return OutcomeClass::throttled;
  if (one_of(error, kTransient)) return OutcomeClass::transient;
  if (one_of(error, kConfiguration)) return OutcomeClass::configuration;
  return OutcomeClass::bad_payload;
}

}  // namespace

void SlackBot::keys(config::Reader& in) {
  in.secret("token", token, "token of a bot, xoxb-…: posts by the Web API in place of a webhook");
  in.optional("channel", channel, "with `token`: id or name of the channel, which the bot is in");
  in.optional("threading", threading,
              "with `token`: news of an incident are replies below its first message");
}

void SlackBot::check(config::Reader& in) const {
  if (in.describing()) return;
  if (token.set() && channel.empty()) in.error("channel", "missing key \"channel\" beside token");
  if (token.set()) return;
  if (!channel.empty()) in.error("channel", "needs token: a webhook has its own channel");
  if (threading) in.error("threading", "needs token: a webhook cannot answer in a thread");
}

core::Status SlackBot::complete(HttpRequest& request, const HttpAttempt& attempt,
                                const std::string& root) const {
  const auto opened = attempt.opened.reveal(token, "token");
  if (!opened) return opened.error();
  request.headers.emplace_back("authorization", "Bearer " + *opened);
  const SlackPlace changed = place_of(root);
  const SlackPlace thread = place_of(value_of(attempt.notification.handles, "message_id"));
  while (request.url.ends_with('/')) request.url.pop_back();
  std::string place;
  if (!changed.ts.empty()) {
    request.url += "/chat.update";
    place = "\"channel\":" + core::to_json(changed.channel) +
            ",\"ts\":" + core::to_json(changed.ts) + ",\"parse\":\"none\",";
    // chat.update has no such argument.
    static constexpr std::string_view kUnfurl = ",\"unfurl_links\":false}";
    if (request.body.ends_with(kUnfurl)) {
      request.body.replace(request.body.size() - kUnfurl.size(), kUnfurl.size(), "}");
    }
  } else {
    request.url += "/chat.postMessage";
    place = "\"channel\":" + core::to_json(channel) + ",";
    if (threading && !thread.ts.empty()) {
      place += "\"thread_ts\":" + core::to_json(thread.ts) + ",";
    }
  }
  request.body.insert(1, place);
  return core::ok();
}

core::AttemptOutcome SlackBot::classify(const HttpResult& result, core::WallTime now) {
  core::AttemptOutcome out = actions::classify(result, now);
  if (out.outcome != OutcomeClass::delivered) return out;
  const core::Value answer = json_answer(result.response);
  const auto* is_ok = core::as<bool>(core::find(answer, "ok"));
  if (is_ok == nullptr) {
    out.outcome = OutcomeClass::configuration;  // somebody else answered: a page of a proxy
    out.code = "not_slack";
    out.detail = "expected an answer with ok, found " + result.response.body;
    return out;
  }
  if (*is_ok) return out;
  out.code = core::text_at(answer, "error");
  out.outcome = class_of(out.code);
  out.detail = result.response.body;
  out.retry_after = parse_retry_after(result.response.header("retry-after"), now);
  return out;
}

std::string SlackBot::message_id(const HttpResponse& response) {
  const core::Value answer = json_answer(response);
  const std::string channel = core::text_at(answer, "channel");
  const std::string ts = core::text_at(answer, "ts");
  const bool sound =
      all_of(channel, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") && all_of(ts, "0123456789.");
  return sound ? channel + " " + ts : std::string();
}

bool SlackBot::lost(const HttpResponse& response) {
  static constexpr std::array<std::string_view, 6> kGone{
      "message_not_found",  "thread_not_found", "cant_update_message",
      "edit_window_closed", "block_mismatch",   "cannot_reply_to_message"};
  const core::Value answer = json_answer(response);
  const auto* is_ok = core::as<bool>(core::find(answer, "ok"));
  return is_ok != nullptr && !*is_ok && one_of(core::text_at(answer, "error"), kGone);
}

}  // namespace tocsin::actions
