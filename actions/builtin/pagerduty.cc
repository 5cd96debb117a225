// Opens, acknowledges and resolves an incident in PagerDuty for each group of issues.
//
// Sends       POST to Events API v2: trigger while something fires, acknowledge when somebody
//             has taken it on elsewhere (propagate_ack), resolve when all is over, with the hash of
//             the group as dedup_key.
// Retries     by the table in http_outcome.cc; Retry-After obeyed.
// Idempotent  yes: an event of an open dedup_key joins its incident.
// Needs       a service with an Events API v2 integration, and its key.
// Source      developer.pagerduty.com: Events API v2, send an alert event.

#include "actions/integration/http_action.h"
#include "actions/message/chat_message.h"
#include "actions/message/headline.h"
#include "core/visible_text.h"

namespace tocsin::actions {
namespace {

struct PagerDuty final : HttpIntegration {
  config::Secret routing_key;

  PagerDuty() {
    http_.url = config::Secret::from_value("https://events.pagerduty.com/v2/enqueue");
    url_means_ =
        "default https://events.pagerduty.com/v2/enqueue; in Europe events.eu.pagerduty.com";
  }

  void keys(config::Reader& in) override {
    in.secret("routing_key", routing_key, "integration key of the service, 32 characters", true);
  }

  void check(config::Reader& in) const override {
    constexpr std::size_t kKey = 32;
    const auto key = routing_key.reveal();
    if (in.has("routing_key") && key && key->size() != kKey) {
      in.error("routing_key", "expected 32 characters, found " + std::to_string(key->size()));
    }
  }

  [[nodiscard]] Rendered render(const core::Notification& notification,
                                const Sender& sender) const override {
    const std::string_view does = action_of(notification);
    core::ValueMap event{{"event_action", std::string(does)},
                         {"dedup_key", notification.group_hash}};
    if (does == "trigger") trigger(notification, sender, event);
    return {"application/json", core::to_json(std::move(event)), {}};
  }

  core::Status complete(HttpRequest& request, const HttpAttempt& attempt) const override {
    const auto key = attempt.opened.reveal(routing_key, "routing_key");
    if (!key) return key.error();
    request.body.insert(1, "\"routing_key\":" + core::to_json(*key) + ",");
    return core::ok();
  }

  [[nodiscard]] core::AttemptOutcome classify(const HttpResult& result,
                                              core::WallTime now) const override {
    core::AttemptOutcome out = actions::classify(result, now);
    if (out.outcome == core::OutcomeClass::bad_payload &&
        out.detail.find("outing key") != std::string::npos) {
      out.outcome = core::OutcomeClass::configuration;  // of the service, not of this event
    }
    return out;
  }

 private:
  /// An incident that is not open there cannot be acknowledged: it is opened.
  static std::string_view action_of(const core::Notification& notification) {
    if (notification.kind == core::NotificationKind::close) return "resolve";
    const bool known = notification.kind != core::NotificationKind::open;
    return known && notification.reason == "acknowledged" ? "acknowledge" : "trigger";
  }

  static void trigger(const core::Notification& notification, const Sender& sender,
                      core::ValueMap& event) {
    constexpr std::size_t kSummary = 1000;  // 1024 characters are taken
    static const ChatMarkup kText{.bold = "",
                                  .bold_end = "",
                                  .code = "",
                                  .code_end = "",
                                  .plain = [](std::string_view text) { return std::string(text); },
                                  .link = nullptr};
    const ChatMessage message = chat_message(notification, sender, kText, {});
    core::ValueMap payload{{"summary", core::visible(headline(notification), kSummary)},
                           {"source", source(notification, sender)},
                           {"severity", std::string(to_string(core::worst_of(notification)))}};
    if (const core::NotifiedIssue* lead = lead_of(notification)) {
      const core::Issue& issue = lead->issue;
      if (issue.starts_at != core::WallTime{}) {
        payload.emplace_back("timestamp", core::to_rfc3339(issue.starts_at));
      }
      payload.emplace_back("group", sender.cluster);
      payload.emplace_back("class", core::visible(issue.rule, kSummary));
    }
    if (!notification.minimal) payload.emplace_back("custom_details", details(message));
    event.emplace_back("payload", std::move(payload));
    core::ValueList links;
    for (const auto& [name, url] : message.links) {
      links.emplace_back(core::ValueMap{{"href", url}, {"text", name}});
    }
    if (!links.empty()) event.emplace_back("links", std::move(links));
    event.emplace_back("client", "Tocsin");
    if (!sender.external_url.empty()) event.emplace_back("client_url", sender.external_url);
  }

  /// The job, as far as it is known.
  static std::string source(const core::Notification& notification, const Sender& sender) {
    const core::NotifiedIssue* lead = lead_of(notification);
    const std::string job = lead == nullptr ? "" : core::visible(lead->issue.run.job, 200);
    return job.empty() ? sender.cluster : job;
  }

  static core::ValueMap details(const ChatMessage& message) {
    core::ValueMap out{{"Found", finding(message)}};
    for (const auto& [name, value] : message.fields) out.emplace_back(name, value);
    core::ValueList advice;
    for (const std::string& text : message.advice) advice.emplace_back(text);
    if (!advice.empty()) out.emplace_back("What to do", std::move(advice));
    core::ValueList followers;
    for (const std::string& text : message.followers) followers.emplace_back(text);
    if (!followers.empty()) out.emplace_back(message.followed, std::move(followers));
    if (!message.hidden.empty()) out.emplace_back("Not shown", message.hidden);
    if (!message.command.empty()) out.emplace_back("Command", message.command);
    return out;
  }
};

}  // namespace

ActionDescriptor pagerduty() {
  return {"pagerduty",
          "Opens, acknowledges and resolves incidents in PagerDuty.",
          {.dedup = true, .acknowledges = true},
          read_http<PagerDuty>,
          {}};
}

}  // namespace tocsin::actions
