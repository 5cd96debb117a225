// Keeps an issue in Jira for each group of issues: created once, commented on news, and moved on at the end.
//
// Sends       GET a search for our label, POST /rest/api/2/issue; POST …/comment for news and the end; POST
//             …/transitions if one is configured. Version 2 of the API: Cloud and Data Center both have
//             it, and its texts are wiki markup. Version 3 is Cloud's alone.
// Retries     by the table in http_outcome.cc; Retry-After obeyed.
// Idempotent  nearly: an issue is looked for before it is created. The search of Cloud lags by seconds, so a
//             repeat after a lost answer may make a second issue.
// Needs       Cloud: an address and an API token. Data Center: a personal access token. The user browses and
//             creates issues in the project, comments, and where configured moves them.
// Source      developer.atlassian.com: Jira Cloud REST API v2 (issues, comments, transitions, search/jql);
//             Jira Data Center REST API.

#include <algorithm>
#include <cctype>

#include "actions/contract/message_fault.h"
#include "actions/integration/http_action.h"
#include "actions/integration/http_dialog.h"
#include "actions/integration/incident_text.h"
#include "actions/message/headline.h"
#include "actions/transport/redact.h"
#include "core/visible_text.h"

namespace tocsin::actions {
namespace {

using core::AttemptOutcome;
using core::NotificationKind;
using core::OutcomeClass;

constexpr std::string_view kMoved = "moved";  // left when only the comment on the end is missing

/// Jira's wiki markup. Two backslashes in a row would break a line, so nothing follows one directly.
const ChatMarkup& jira_markup() {
  static const ChatMarkup kMarkup{
      .bold = "*",
      .bold_end = "",
      .code = "{noformat}\n",
      .code_end = "\n{noformat}",
      .plain =
          [](std::string_view text) {
            std::string out;
            for (const char c : text) {
              if (std::string_view("*_?-+^~{}[]!|#").find(c) != std::string_view::npos) out += '\\';
              out += c;
              if (c == '\\') out += "\u200b";
            }
            return out;
          },
      .link = [](const std::string& name,
                 const std::string& url) { return "[" + name + "|" + url + "]"; },
      .escapes_code = false};
  return kMarkup;
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

/// "OPS-17": it is put into a path.
bool is_issue_key(const std::string& text) {
  constexpr std::size_t kMost = 255;
  const std::size_t dash = text.rfind('-');
  return text.size() <= kMost && dash != std::string::npos && dash > 0 && dash + 1 < text.size() &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; });
}

/// Of our incident: no blanks, and few enough characters.
std::string incident_label(const core::Notification& notification) {
  constexpr std::size_t kHash = 32;
  return "tocsin-" + notification.group_hash.substr(0, kHash);
}

const core::Value* below(const core::Value* value, std::initializer_list<std::string_view> path) {
  for (const std::string_view name : path) {
    if (value != nullptr) value = core::find(*value, name);
  }
  return value;
}

struct Jira final : HttpIntegration {
  std::string project;
  std::string issue_type = "Task";
  std::string email;
  config::Secret api_token;
  std::vector<std::string> labels;
  std::map<std::string, std::string> priorities;
  std::string transition;
  core::Value fields;

  Jira() { url_means_ = "the site, https://acme.atlassian.net, or the base URL of a Data Center"; }

  void keys(config::Reader& in) override {
    in.required("project", project, "key of the project, such as OPS");
    in.optional("issue_type", issue_type, "type of the issues");
    in.optional("email", email, "Cloud: address of the user");
    in.secret("api_token", api_token, "Cloud: its API token; Data Center: see bearer_token");
    in.optional("labels", labels, "labels of each issue, beside our own");
    in.optional("priorities", priorities,
                "severity → name of a priority; a severity without one has the project's default");
    in.optional(
        "transition", transition,
        "at the end the issue takes this transition, by its name or that of the status it leads "
        "to; default: it stays as it is");
    in.any("fields", fields, "further fields of a new issue, as the API takes them",
           R"({"type":"object"})");
  }

  void check(config::Reader& in) const override {
    if (in.describing()) return;
    const bool cloud = api_token.set();
    if (cloud == email.empty()) in.error("email", "email and api_token belong together");
    if (cloud == http_.bearer_token.set()) {
      in.error("api_token", "expected email and api_token (Cloud), or bearer_token (Data Center)");
    }
    if (project.empty() || !std::all_of(project.begin(), project.end(), [](unsigned char c) {
          return std::isalnum(c) != 0 || c == '_';
        })) {
      in.error("project", "expected the key of a project, such as OPS");
    }
    for (const std::string& label : labels) {
      if (label.empty() || label.size() > 255 || label.find(' ') != std::string::npos) {
        in.error("labels",
                 "\"" + printable(label, 100) + "\" is no label: 1 … 255 characters, no blank");
      }
    }
    for (const auto& [severity, name] : priorities) {
      if (!core::severity_from(severity)) {
        in.error("priorities", "\"" + printable(severity, 100) +
                                   "\" is no severity: info, warning, error, critical");
      }
    }
    if (!fields.is_null() && core::as<core::ValueMap>(fields) == nullptr) {
      in.error("fields", "expected a map");
    }
  }

  [[nodiscard]] Rendered render(const core::Notification& notification,
                                const Sender& sender) const override {
    constexpr std::size_t kText = 30'000;  // 32767 characters are taken
    const bool over = notification.kind == NotificationKind::close;
    const std::string comment = core::to_json(
        core::ValueMap{{"body", incident_news(notification, sender, jira_markup(), kText)}});
    Rendered out{"application/json", comment, {{"label", incident_label(notification)}}};
    if (!over) {
      out.fields.emplace_back(
          "issue",
          core::to_json(core::ValueMap{{"fields", new_issue(notification, sender, kText)}}));
    }
    return out;
  }

  core::Status complete(HttpRequest& request, const HttpAttempt& attempt) const override {
    request.headers.emplace_back("accept", "application/json");
    if (!api_token.set()) return core::ok();
    const auto token = attempt.opened.reveal(api_token, "api_token");
    if (!token) return token.error();
    const std::string both = base64(email + ":" + *token);
    attempt.opened.add(both);
    request.headers.emplace_back("authorization", "Basic " + both);
    return core::ok();
  }

  [[nodiscard]] AttemptOutcome carry_out(HttpDialog& dialog) const override {
    std::string key(value_of(dialog.notification().handles, "key"));
    if (is_issue_key(key)) {
      if (auto out = told(dialog, key)) return *out;
    }
    const HttpResult found = search(dialog);
    if (found.failure == HttpFailure::not_sent) return create(dialog);  // a dry run shows it too
    AttemptOutcome out = actions::classify(found, dialog.now());
    // Of a project that does not exist, or that the user may not see.
    if (out.outcome == OutcomeClass::bad_payload) out.outcome = OutcomeClass::configuration;
    if (out.outcome != OutcomeClass::delivered) return out;
    const core::Value answer = json_answer(found.response);
    const auto* issues = core::as<core::ValueList>(core::find(answer, "issues"));
    if (issues == nullptr) return foreign(found, std::move(out));
    key = issues->empty() ? std::string() : core::text_at(issues->front(), "key");
    if (is_issue_key(key)) {
      if (auto changed = told(dialog, key)) return *changed;
    }
    if (dialog.notification().kind == NotificationKind::close) {
      out.code = "no_issue";
      out.detail = "no open issue has the label " + dialog.rendered().field("label");
      return out;
    }
    return create(dialog);
  }

 private:
  [[nodiscard]] HttpResult search(HttpDialog& dialog) const {
    const std::string jql = "project = \"" + project + "\" AND labels = \"" +
                            dialog.rendered().field("label") +
                            "\" AND statusCategory != Done ORDER BY created DESC";
    const std::string query = "?jql=" + percent_encode(jql) + "&fields=status&maxResults=1";
    // Cloud has no other search any more, Data Center not yet this one.
    return dialog.ask(
        {.method = "GET",
         .path = (api_token.set() ? "/rest/api/2/search/jql" : "/rest/api/2/search") + query,
         .body = {}});
  }

  /// News or the end of an issue that is there. nullopt: it is gone.
  [[nodiscard]] std::optional<AttemptOutcome> told(HttpDialog& dialog,
                                                   const std::string& key) const {
    const bool over = dialog.notification().kind == NotificationKind::close;
    if (over && !transition.empty() && dialog.left() != kMoved) {
      auto moved = move_on(dialog, key);
      if (moved.code == "404") return std::nullopt;
      if (moved.outcome != OutcomeClass::delivered) return moved;
      dialog.leave(std::string(kMoved));
    }
    const HttpResult result = dialog.ask({.method = "POST",
                                          .path = "/rest/api/2/issue/" + key + "/comment",
                                          .body = dialog.rendered().body});
    if (result.failure == HttpFailure::none && result.response.status == 404) return std::nullopt;
    AttemptOutcome out = actions::classify(result, dialog.now());
    if (out.outcome == OutcomeClass::delivered) out.handles = {{"key", key}};
    return out;
  }

  /// Delivered: it has taken the transition, or was done already.
  [[nodiscard]] AttemptOutcome move_on(HttpDialog& dialog, const std::string& key) const {
    const std::string issue = "/rest/api/2/issue/" + key;
    const HttpResult seen = dialog.ask(
        {.method = "GET", .path = issue + "?fields=status&expand=transitions", .body = {}});
    AttemptOutcome out = actions::classify(seen, dialog.now());
    if (out.outcome != OutcomeClass::delivered) return out;
    const core::Value answer = json_answer(seen.response);
    const auto* category =
        core::as<std::string>(below(&answer, {"fields", "status", "statusCategory", "key"}));
    if (category == nullptr) return foreign(seen, std::move(out));
    if (*category == "done") return out;
    std::string offered;
    const auto* transitions = core::as<core::ValueList>(core::find(answer, "transitions"));
    if (transitions != nullptr) {
      for (const core::Value& one : *transitions) {
        const auto* to = core::as<std::string>(below(&one, {"to", "name"}));
        const std::string name = core::text_at(one, "name");
        if (lower_case(name) == lower_case(transition) ||
            (to != nullptr && lower_case(*to) == lower_case(transition))) {
          const core::ValueMap chosen{
              {"transition", core::ValueMap{{"id", core::text_at(one, "id")}}}};
          return actions::classify(dialog.ask({.method = "POST",
                                               .path = issue + "/transitions",
                                               .body = core::to_json(chosen)}),
                                   dialog.now());
        }
        offered += (offered.empty() ? "" : ", ") + name;
      }
    }
    out.outcome = OutcomeClass::configuration;
    out.code = "no_transition";
    out.detail = key + " has no transition \"" + transition + "\" now; it has: " + offered;
    return out;
  }

  [[nodiscard]] AttemptOutcome create(HttpDialog& dialog) const {
    const HttpResult made = dialog.ask(
        {.method = "POST", .path = "/rest/api/2/issue", .body = dialog.rendered().field("issue")});
    AttemptOutcome out = actions::classify(made, dialog.now());
    if (out.outcome == OutcomeClass::bad_payload && names_a_setting(made.response)) {
      out.outcome = OutcomeClass::configuration;
    }
    if (out.outcome != OutcomeClass::delivered) return out;
    const std::string key = core::text_at(json_answer(made.response), "key");
    if (!is_issue_key(key)) return foreign(made, std::move(out));
    out.handles = {{"key", key}};
    return out;
  }

  /// `errors` of the answer names a field that is not text of ours.
  static bool names_a_setting(const HttpResponse& response) {
    const core::Value answer = json_answer(response);
    const auto* errors = core::as<core::ValueMap>(core::find(answer, "errors"));
    if (errors == nullptr) return false;
    return std::any_of(errors->begin(), errors->end(), [](const auto& one) {
      return one.first != "summary" && one.first != "description";
    });
  }

  static AttemptOutcome foreign(const HttpResult& result, AttemptOutcome out) {
    out.outcome = OutcomeClass::configuration;  // a login page, a proxy
    out.code = "not_jira";
    out.detail = "expected an answer of Jira's API, found " + result.response.body;
    return out;
  }

  [[nodiscard]] core::ValueMap new_issue(const core::Notification& notification,
                                         const Sender& sender, std::size_t text) const {
    constexpr std::size_t kSummary = 250;  // 255 characters are taken
    core::ValueList all{core::Value("tocsin"), core::Value(incident_label(notification))};
    for (const std::string& label : labels) all.emplace_back(label);
    core::ValueMap out{{"project", core::ValueMap{{"key", project}}},
                       {"issuetype", core::ValueMap{{"name", issue_type}}},
                       {"summary", core::visible(headline(notification), kSummary)},
                       {"description", incident_text(notification, sender, jira_markup(), text)},
                       {"labels", std::move(all)}};
    const auto priority = priorities.find(std::string(to_string(core::worst_of(notification))));
    if (priority != priorities.end()) {
      out.emplace_back("priority", core::ValueMap{{"name", priority->second}});
    }
    if (const auto* more = core::as<core::ValueMap>(fields)) {
      for (const auto& [name, value] : *more) {
        if (core::find(out, name) == nullptr) out.emplace_back(name, value);
      }
    }
    return out;
  }
};

}  // namespace

ActionDescriptor jira() {
  return {"jira", "Keeps an issue in Jira for each incident.", {}, read_http<Jira>, {}};
}

}  // namespace tocsin::actions
