// Tells ServiceNow of each group of issues: as events of Event Management, or as one incident.
//
// Sends       mode event: POST /api/global/em/jsonv2, one record with the hash of the group as message_key.
//             mode incident: GET /api/now/table/incident by correlation_id, then POST or PATCH.
// Retries     by the table in http_outcome.cc; Retry-After obeyed.
// Idempotent  events of one message_key are one alert. An incident is looked for before it is created, which
//             is not atomic: a repeat within the moment of a creation may make a second one.
// Needs       a user with the role evt_mgmt_integration, or one that may write incidents.
// Source      servicenow.com/docs: pushing events to the instance using web service API; Table API.

#include <array>

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

constexpr char kIncidentTable[] = "/api/now/table/incident";
constexpr std::size_t kServiceNowText = 4'000;
constexpr std::size_t kShortDescription = 160;

/// "2026-01-02 03:04:05", UTC.
std::string servicenow_time(core::WallTime time) {
  std::string out = core::to_rfc3339(time).substr(0, 19);
  if (out.size() > 10) out[10] = ' ';
  return out;
}

std::string event_severity(core::Severity severity) {
  switch (severity) {
    case core::Severity::critical:
      return "1";
    case core::Severity::error:
      return "2";
    case core::Severity::warning:
      return "4";
    case core::Severity::info:
      return "5";
  }
  return "4";
}

/// Impact and urgency, from which ServiceNow computes the priority.
std::pair<std::string, std::string> impact_of(core::Severity severity) {
  switch (severity) {
    case core::Severity::critical:
      return {"1", "1"};
    case core::Severity::error:
      return {"2", "2"};
    case core::Severity::warning:
      return {"3", "2"};
    case core::Severity::info:
      return {"3", "3"};
  }
  return {"3", "3"};
}

bool is_sys_id(const std::string& text) {
  constexpr std::size_t kSysId = 32;
  return text.size() == kSysId && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

struct ServiceNow final : HttpIntegration {
  std::string mode;
  std::string close_state = "6";
  std::string close_code = "Solution provided";
  std::map<std::string, std::string> fields;

  ServiceNow() { url_means_ = "the instance, https://acme.service-now.com"; }

  void keys(config::Reader& in) override {
    in.required("mode", mode, config::one_of({"event", "incident"}),
                "event: Event Management makes alerts; incident: one record in the table incident");
    in.optional("close_state", close_state,
                "mode incident: state of one that is over; 6: resolved");
    in.optional("close_code", close_code, "mode incident: its resolution code");
    in.optional("fields", fields,
                "mode incident: further fields of a new record, such as assignment_group");
  }

  void check(config::Reader& in) const override {
    if (in.describing()) return;
    if (!http_.basic_auth.set() && !http_.bearer_token.set() && !http_.oauth2.set()) {
      in.error("basic_auth", "expected a login: basic_auth, oauth2 or bearer_token");
    }
    if (close_state.empty() || close_state.find_first_not_of("0123456789") != std::string::npos) {
      in.error("close_state", "expected the number of a state");
    }
    if (mode == "event" && !fields.empty()) in.error("fields", "belongs to mode: incident");
    static constexpr std::array<std::string_view, 3> kOurs{"correlation_id", "state", "close_code"};
    for (const std::string_view one : kOurs) {
      if (fields.count(std::string(one)) > 0) {
        in.error("fields", std::string(one) + " is set by Tocsin");
      }
    }
  }

  [[nodiscard]] Rendered render(const core::Notification& notification,
                                const Sender& sender) const override {
    if (mode == "event") return {"application/json", event(notification, sender), {}};
    const bool over = notification.kind == NotificationKind::close;
    Rendered out{"application/json",
                 core::to_json(over ? closed(notification, sender) : opened(notification, sender)),
                 {{"key", notification.group_hash}}};
    if (!over) out.fields.emplace_back("news", core::to_json(news(notification, sender)));
    return out;
  }

  core::Status complete(HttpRequest& request, const HttpAttempt& /*attempt*/) const override {
    request.headers.emplace_back("accept", "application/json");
    if (mode == "event") {
      while (request.url.ends_with('/')) request.url.pop_back();
      request.url += "/api/global/em/jsonv2";
    }
    return core::ok();
  }

  [[nodiscard]] AttemptOutcome carry_out(HttpDialog& dialog) const override {
    if (mode == "event") return dialog.deliver();
    const std::string known(value_of(dialog.notification().handles, "sys_id"));
    if (is_sys_id(known)) {
      if (auto out = change(dialog, known)) return *out;
    }
    return find_first(dialog);
  }

 private:
  /// nullopt: a person has closed it or it is gone.
  [[nodiscard]] std::optional<AttemptOutcome> change(HttpDialog& dialog,
                                                     const std::string& sys_id) const {
    const bool over = dialog.notification().kind == NotificationKind::close;
    const HttpResult result =
        dialog.ask({.method = "PATCH",
                    .path = std::string(kIncidentTable) + "/" + sys_id + fields_wanted("?"),
                    .body = over ? dialog.rendered().body : dialog.rendered().field("news")});
    AttemptOutcome out = actions::classify(result, dialog.now());
    const int status = result.response.status;
    // A closed record may not be changed.
    if (status == 403 || status == 404) return std::nullopt;
    if (out.outcome != OutcomeClass::delivered) return out;
    const core::Value answer = json_answer(result.response);
    const core::Value* record = core::find(answer, "result");
    if (record == nullptr) return foreign(result, std::move(out));
    const std::string state = core::text_at(*record, "state");
    const bool closed = state == close_state || core::text_at(*record, "active") == "false";
    if (!over && closed) return std::nullopt;
    out.handles = names_of(*record);
    return out;
  }

  [[nodiscard]] AttemptOutcome find_first(HttpDialog& dialog) const {
    const std::string query =
        "correlation_id=" + dialog.rendered().field("key") + "^active=true^state!=" + close_state;
    const HttpResult found = dialog.ask({.method = "GET",
                                         .path = std::string(kIncidentTable) +
                                                 "?sysparm_query=" + percent_encode(query) +
                                                 "&sysparm_limit=1" + fields_wanted("&"),
                                         .body = {}});
    if (found.failure == HttpFailure::not_sent) return create(dialog);  // a dry run shows it too
    AttemptOutcome out = actions::classify(found, dialog.now());
    if (out.outcome != OutcomeClass::delivered) return out;
    const core::Value answer = json_answer(found.response);
    const auto* records = core::as<core::ValueList>(core::find(answer, "result"));
    if (records == nullptr) return foreign(found, std::move(out));
    const bool over = dialog.notification().kind == NotificationKind::close;
    if (!records->empty()) {
      const std::string sys_id = core::text_at(records->front(), "sys_id");
      if (!is_sys_id(sys_id)) return foreign(found, std::move(out));
      if (auto changed = change(dialog, sys_id)) return *changed;
      out.outcome = OutcomeClass::configuration;
      out.code = "403";
      out.detail = "the user may not change incident " + core::text_at(records->front(), "number");
      return out;
    }
    if (over) {
      out.code = "no_incident";
      out.detail = "no open incident has this correlation_id";
      return out;
    }
    return create(dialog);
  }

  [[nodiscard]] AttemptOutcome create(HttpDialog& dialog) const {
    const HttpResult made = dialog.ask({.method = "POST",
                                        .path = std::string(kIncidentTable) + fields_wanted("?"),
                                        .body = dialog.rendered().body});
    AttemptOutcome out = actions::classify(made, dialog.now());
    if (out.outcome != OutcomeClass::delivered) return out;
    const core::Value answer = json_answer(made.response);
    const core::Value* record = core::find(answer, "result");
    if (record == nullptr) return foreign(made, std::move(out));
    out.handles = names_of(*record);
    return out;
  }

  static std::string fields_wanted(std::string_view before) {
    return std::string(before) + "sysparm_fields=sys_id,number,state,active";
  }

  static Handles names_of(const core::Value& record) {
    Handles out;
    const std::string sys_id = core::text_at(record, "sys_id");
    if (is_sys_id(sys_id)) out.emplace_back("sys_id", sys_id);
    const std::string number = core::text_at(record, "number");
    if (!number.empty()) out.emplace_back("number", core::visible(number, 40));
    return out;
  }

  /// A hibernating instance and a login page answer 200 with HTML.
  static AttemptOutcome foreign(const HttpResult& result, AttemptOutcome out) {
    out.outcome = OutcomeClass::configuration;
    out.code = "not_servicenow";
    out.detail = "expected a JSON answer with result, found " + result.response.body;
    return out;
  }

  [[nodiscard]] core::ValueMap opened(const core::Notification& notification,
                                      const Sender& sender) const {
    const auto [impact, urgency] = impact_of(core::worst_of(notification));
    core::ValueMap out{
        {"short_description", core::visible(headline(notification), kShortDescription)},
        {"description", incident_text(notification, sender, plain_text(), kServiceNowText)},
        {"correlation_id", notification.group_hash},
        {"correlation_display", "tocsin"},
        {"impact", impact},
        {"urgency", urgency}};
    for (const auto& [name, value] : fields) {
      std::erase_if(out, [&known = name](const auto& one) { return one.first == known; });
      out.emplace_back(name, value);
    }
    return out;
  }

  static core::ValueMap news(const core::Notification& notification, const Sender& sender) {
    core::ValueMap out{
        {"short_description", core::visible(headline(notification), kShortDescription)},
        {"work_notes", incident_news(notification, sender, plain_text(), kServiceNowText)}};
    // An incident that somebody has taken on is in progress.
    if (notification.reason == "acknowledged") out.emplace_back("state", "2");
    // A person may have changed them meanwhile: they are only raised.
    if (core::worst_of(notification) == core::Severity::critical) {
      out.emplace_back("impact", "1");
      out.emplace_back("urgency", "1");
    }
    return out;
  }

  [[nodiscard]] core::ValueMap closed(const core::Notification& notification,
                                      const Sender& sender) const {
    return {{"state", close_state},
            {"close_code", close_code},
            {"close_notes", incident_news(notification, sender, plain_text(), kServiceNowText)}};
  }

  static std::string event(const core::Notification& notification, const Sender& sender) {
    constexpr std::size_t kWord = 100;
    const bool over = notification.kind == NotificationKind::close;
    core::ValueMap record{
        {"source", "tocsin"},
        {"event_class", core::visible("tocsin " + sender.cluster, kWord)},
        {"node", core::visible(first_host(notification), kWord)},
        {"resource", core::visible(job_or_cluster(notification, sender), kWord)},
        {"message_key", notification.group_hash},
        {"severity", over ? "0" : event_severity(core::worst_of(notification))},
        {"resolution_state", over ? "Closing" : "New"},
        {"time_of_event", servicenow_time(notification.decided_at)},
        {"description", incident_news(notification, sender, plain_text(), kServiceNowText)}};
    if (const core::NotifiedIssue* lead = lead_of(notification)) {
      record.emplace_back("type", core::visible(lead->issue.rule, kWord));
      record.emplace_back("metric_name", core::visible(lead->issue.evidence.observed.name, kWord));
    }
    if (!notification.minimal) {
      record.emplace_back("additional_info",
                          core::to_json(incident_details(notification, sender, kServiceNowText)));
    }
    return core::to_json(
        core::ValueMap{{"records", core::ValueList{core::Value(std::move(record))}}});
  }
};

}  // namespace

ActionDescriptor servicenow() {
  return {"servicenow",
          "Sends events to ServiceNow, or keeps an incident there.",
          {.dedup = true, .acknowledges = true},
          read_http<ServiceNow>,
          {}};
}

}  // namespace tocsin::actions
