// Creates and closes an alert in Jira Service Management operations, or in Opsgenie, for each group of
// issues.
//
// Sends       POST: create, {alias}/notes for news, {alias}/acknowledge when somebody has taken it on
//             elsewhere (propagate_ack), {alias}/close when all is over, with the hash of the group as alias. Each is only accepted; GET requests/{requestId} says what came of it.
// Retries     by the table in http_outcome.cc; Retry-After obeyed. The result is asked for 2, 5 and 15 s
//             later, each time by an attempt of its own, so no thread waits.
// Idempotent  yes: a create of an open alias raises its count.
// Needs       an API integration of a team, and its key.
// Source      developer.atlassian.com: JSM operations, integration events API; docs.opsgenie.com: Alert API.

#include <array>
#include <charconv>

#include "actions/contract/message_fault.h"
#include "actions/integration/http_action.h"
#include "actions/integration/http_dialog.h"
#include "actions/integration/incident_text.h"
#include "actions/message/headline.h"
#include "core/visible_text.h"

namespace tocsin::actions {
namespace {

using core::AttemptOutcome;
using core::NotificationKind;
using core::OutcomeClass;

constexpr std::size_t kJsmActions = 10;
constexpr std::size_t kJsmTags = 20;
constexpr std::size_t kJsmName = 50;  // characters of an action or a tag
constexpr std::size_t kJsmPeople = 50;

/// A request that was accepted, and how often its result was asked for in vain.
struct JsmRequest {
  std::string step;  // create, note, acknowledge, close
  std::string id;
  std::size_t asked = 0;

  [[nodiscard]] std::string text() const { return step + " " + std::to_string(asked) + " " + id; }
  static JsmRequest parse(const std::string& text) {
    JsmRequest out;
    const std::size_t first = text.find(' ');
    const std::size_t second = text.find(' ', first + 1);
    if (first == std::string::npos || second == std::string::npos) return out;
    out.step = text.substr(0, first);
    std::from_chars(text.data() + first + 1, text.data() + second, out.asked);
    out.id = text.substr(second + 1);
    return out;
  }
};

std::string priority_of(core::Severity severity) {
  switch (severity) {
    case core::Severity::critical:
      return "P1";
    case core::Severity::error:
      return "P2";
    case core::Severity::warning:
      return "P3";
    case core::Severity::info:
      return "P5";
  }
  return "P3";
}

/// An id is put into a path.
bool is_request_id(const std::string& text) {
  constexpr std::size_t kMost = 200;
  return !text.empty() && text.size() <= kMost &&
         text.find_first_not_of(
             "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_") ==
             std::string::npos;
}

bool says_no_such_alert(const std::string& status) {
  std::string lower;
  for (const char c : status) {
    lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return lower.find("does not exist") != std::string::npos ||
         lower.find("not found") != std::string::npos;
}

struct Jsm final : HttpIntegration {
  config::Secret api_key;
  core::ValueList responders;
  core::ValueList visible_to;
  std::vector<std::string> actions;
  std::vector<std::string> tags;

  Jsm() {
    http_.url =
        config::Secret::from_value("https://api.atlassian.com/jsm/ops/integration/v2/alerts");
    url_means_ =
        "the alerts of the API, default https://api.atlassian.com/jsm/ops/integration/v2/alerts";
  }

  void keys(config::Reader& in) override {
    in.secret("api_key", api_key, "key of the API integration", true);
    people(in, "responders", responders, {"team", "user", "escalation", "schedule"},
           "who is responsible, beside those that the integration names");
    people(in, "visible_to", visible_to, {"team", "user"}, "who sees the alert and is not paged");
    in.optional("actions", actions, "custom actions that the alert offers, at most 10");
    in.optional("tags", tags, "tags of each alert; the rule is added, 20 are sent");
  }

  void check(config::Reader& in) const override {
    if (responders.size() > kJsmPeople) in.error("responders", "expected at most 50");
    if (visible_to.size() > kJsmPeople) in.error("visible_to", "expected at most 50");
    if (actions.size() > kJsmActions) in.error("actions", "expected at most 10");
    if (tags.size() > kJsmTags) in.error("tags", "expected at most 20");
    for (const auto& [key, list] : {std::pair{"actions", &actions}, std::pair{"tags", &tags}}) {
      for (const std::string& one : *list) {
        if (one.empty() || one.size() > kJsmName) in.error(key, "expected 1 … 50 characters each");
      }
    }
    if (!in.has("url")) return;
    const auto url = http_.url.reveal();
    if (url && url->find(".opsgenie.com") != std::string::npos) {
      in.warning(
          "url",
          "Opsgenie ends on 5 April 2027; move the integration to Jira Service Management and "
          "leave url out");
    }
  }

  [[nodiscard]] Rendered render(const core::Notification& notification,
                                const Sender& sender) const override {
    constexpr std::size_t kNote = 25'000;
    const std::string source = core::visible("tocsin/" + sender.cluster, 100);
    const auto note = [&] {
      return core::to_json(core::ValueMap{
          {"note", incident_news(notification, sender, plain_text(), kNote)}, {"source", source}});
    };
    if (notification.kind == NotificationKind::close) {
      return {"application/json", note(), {{"alias", notification.group_hash}}};
    }
    Rendered out{"application/json",
                 core::to_json(alert(notification, sender, source)),
                 {{"alias", notification.group_hash}}};
    if (notification.kind == NotificationKind::update || notification.reason == "acknowledged")
      out.fields.emplace_back("note", note());
    return out;
  }

  core::Status complete(HttpRequest& request, const HttpAttempt& attempt) const override {
    const auto key = attempt.opened.reveal(api_key, "api_key");
    if (!key) return key.error();
    request.headers.emplace_back("authorization", "GenieKey " + *key);
    return core::ok();
  }

  [[nodiscard]] AttemptOutcome carry_out(HttpDialog& dialog) const override {
    const JsmRequest request = JsmRequest::parse(dialog.left());
    if (!request.id.empty()) return look(dialog, request);
    const NotificationKind kind = dialog.notification().kind;
    if (kind == NotificationKind::close) return begin(dialog, "close");
    const bool known = kind != NotificationKind::open && !dialog.rendered().field("note").empty();
    if (known && dialog.notification().reason == "acknowledged")
      return begin(dialog, "acknowledge");
    // An update that took the place of an open nobody saw is an open now.
    const bool news = kind == NotificationKind::update && !dialog.rendered().field("note").empty();
    return begin(dialog, news ? "note" : "create");
  }

 private:
  static void people(config::Reader& in, std::string_view key, core::ValueList& out,
                     const std::vector<std::string>& types, std::string_view help) {
    in.list(key, help, [&](config::Reader& one) {
      std::string type;
      std::string id;
      std::string name;
      std::string username;
      one.required("type", type, config::one_of(types), "what it is");
      one.optional("id", id, "its id");
      one.optional("name", name, "or its name");
      one.optional("username", username, "or, of a user, the address");
      core::ValueMap person{{"type", type}};
      for (const auto& [field, value] :
           {std::pair{"id", &id}, std::pair{"name", &name}, std::pair{"username", &username}}) {
        if (!value->empty()) person.emplace_back(field, *value);
      }
      if (!one.describing() && person.size() != 2) {
        one.error("type", "expected one of id, name and username beside it");
      }
      out.emplace_back(std::move(person));
    });
  }

  [[nodiscard]] core::ValueMap alert(const core::Notification& notification, const Sender& sender,
                                     const std::string& source) const {
    constexpr std::size_t kMessage = 130;
    constexpr std::size_t kDescription = 15'000;
    constexpr std::size_t kDetails = 8'000;
    constexpr std::size_t kEntity = 512;
    core::ValueMap out{
        {"message", core::visible(headline(notification), kMessage)},
        {"alias", notification.group_hash},
        {"description", incident_text(notification, sender, plain_text(), kDescription)},
        {"priority", priority_of(core::worst_of(notification))},
        {"source", source},
        {"entity", core::visible(job_or_cluster(notification, sender), kEntity)}};
    core::ValueList all;
    for (const std::string& tag : tags) all.emplace_back(tag);
    const core::NotifiedIssue* lead = lead_of(notification);
    if (lead != nullptr && !lead->issue.rule.empty() && all.size() < kJsmTags) {
      all.emplace_back(core::visible(lead->issue.rule, kJsmName));
    }
    if (!all.empty()) out.emplace_back("tags", std::move(all));
    if (!notification.minimal) {
      out.emplace_back("details", incident_details(notification, sender, kDetails));
    }
    if (!responders.empty()) out.emplace_back("responders", responders);
    if (!visible_to.empty()) out.emplace_back("visibleTo", visible_to);
    core::ValueList offered;
    for (const std::string& one : actions) offered.emplace_back(one);
    if (!offered.empty()) out.emplace_back("actions", std::move(offered));
    return out;
  }

  static AttemptOutcome answer_of(const HttpResult& result, core::WallTime now) {
    AttemptOutcome out = actions::classify(result, now);
    if (out.outcome != OutcomeClass::delivered &&
        result.response.header("x-ratelimit-state") == "THROTTLED") {
      out.outcome = OutcomeClass::throttled;
    }
    return out;
  }

  [[nodiscard]] AttemptOutcome begin(HttpDialog& dialog, const std::string& step) const {
    HttpAsk ask{.method = "POST", .path = {}, .body = dialog.rendered().body};
    if (step != "create") {
      ask.path = "/" + dialog.rendered().field("alias") + "/" + (step == "note" ? "notes" : step) +
                 "?identifierType=alias";
    }
    if (step == "note" || step == "acknowledge") ask.body = dialog.rendered().field("note");
    const HttpResult result = dialog.ask(ask);
    AttemptOutcome out = answer_of(result, dialog.now());
    if (out.outcome != OutcomeClass::delivered) return out;
    const JsmRequest request{step, core::text_at(json_answer(result.response), "requestId"), 0};
    if (!is_request_id(request.id)) {
      out.outcome = OutcomeClass::configuration;  // a page of a proxy
      out.code = "not_jsm";
      out.detail = "expected a requestId, found " + result.response.body;
      return out;
    }
    return ask_later(dialog, request);
  }

  /// Held: what was accepted says nothing bad of the far side. Unknown: people may have been paged, so the
  /// end of the incident is told whatever comes of this.
  static AttemptOutcome ask_later(HttpDialog& dialog, const JsmRequest& request) {
    static constexpr std::array<int, 3> kWaits{2, 5, 15};  // seconds
    AttemptOutcome out;
    out.code = "accepted";
    if (dialog.last_attempt()) {
      out.confirmed = false;
      out.detail = "request " + request.id + " was accepted; retry.max_attempts ends here";
      return out;
    }
    if (request.asked >= kWaits.size()) {
      dialog.leave({});
      out.outcome = OutcomeClass::unknown;
      out.code = "no_result";
      out.detail = "request " + request.id + " was accepted and has no result; it is sent again";
      return out;
    }
    dialog.leave(request.text());
    out.outcome = OutcomeClass::unknown;
    out.held = true;
    out.retry_after = std::chrono::seconds(kWaits.at(request.asked));
    out.detail = "request " + request.id + " was accepted; its result is asked for";
    return out;
  }

  [[nodiscard]] AttemptOutcome look(HttpDialog& dialog, JsmRequest request) const {
    const HttpResult result =
        dialog.ask({.method = "GET", .path = "/requests/" + request.id, .body = {}});
    AttemptOutcome out = answer_of(result, dialog.now());
    const core::Value answer = json_answer(result.response);
    const core::Value* data = core::find(answer, "data");
    const auto* done = data == nullptr ? nullptr : core::as<bool>(core::find(*data, "isSuccess"));
    const bool early = result.failure == HttpFailure::none && result.response.status == 404;
    if (early || (out.outcome == OutcomeClass::delivered && done == nullptr)) {
      ++request.asked;
      return ask_later(dialog, request);
    }
    if (out.outcome != OutcomeClass::delivered) return out;
    out.detail = core::text_at(*data, "status");
    if (*done) {
      // One that took the place of an open nobody had confirmed yet.
      const bool taken_on = dialog.notification().reason == "acknowledged" &&
                            !dialog.rendered().field("note").empty();
      if (request.step == "create" && taken_on) return begin(dialog, "acknowledge");
      if (request.step == "create") out.handles = {{"alert_id", core::text_at(*data, "alertId")}};
      return out;
    }
    dialog.leave({});
    const bool missing = says_no_such_alert(out.detail);
    if (missing && request.step == "close") {
      out.code = "no_such_alert";
      return out;
    }
    if (missing && (request.step == "note" || request.step == "acknowledge"))
      return begin(dialog, "create");
    out.outcome = OutcomeClass::bad_payload;
    out.code = "refused";
    return out;
  }
};

}  // namespace

ActionDescriptor jsm() {
  return {
      "jsm",
      "Opens, acknowledges and closes alerts in Jira Service Management operations or Opsgenie.",
      {.dedup = true, .acknowledges = true},
      read_http<Jsm>,
      {}};
}

}  // namespace tocsin::actions
