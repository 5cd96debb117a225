#include "app/api/alertmanager_routes.h"

#include <algorithm>
#include <string>
#include <utility>

#include "app/api/alert_list.h"
#include "app/api/alertmanager_json.h"
#include "app/api/event_intake.h"
#include "app/api/silence_desk.h"
#include "app/process/version.h"
#include "app/serve/problem.h"
#include "core/json.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;
using routing::matcher_sets;
using routing::Silence;

constexpr std::size_t kMostOfAlerts = std::size_t{1} << 20;

HttpAnswer json(const Value& value) { return {200, core::to_json(value) + "\n"}; }
HttpAnswer empty_answer() { return {200, ""}; }

HttpAnswer server_status(ApiDesk& desk, const ApiCall&) {
  return json(ValueMap{
      {"cluster", ValueMap{{"name", desk.cluster}, {"peers", ValueList()}, {"status", "disabled"}}},
      {"config", ValueMap{{"original", ""}}},
      {"uptime", core::to_rfc3339(desk.started)},
      {"versionInfo", ValueMap{{"branch", ""},
                               {"buildDate", ""},
                               {"buildUser", ""},
                               {"goVersion", ""},
                               {"revision", ""},
                               {"version", version_text()}}}});
}

HttpAnswer list_receivers(const ApiDesk& desk, const ApiCall&) {
  ValueList out;
  for (const std::string& name : desk.receivers) out.push_back(ValueMap{{"name", name}});
  return json(out);
}

HttpAnswer with_alerts(
    ApiDesk& desk, const ApiCall& call,
    core::FunctionRef<void(const ShownAlert&, const AlertFilter&, std::string json)> take) {
  const auto filter = AlertFilter::parse(call.query);
  if (!filter) return problem(filter.error());
  const core::WallTime now = desk.clock.now();
  const auto seen = desk.view.read([&](const TopicView& view) {
    for_each_alert(
        view, desk.routing.get(), *filter, desk.resolve_timeout, now, [&](const ShownAlert& alert) {
          take(alert, *filter, core::to_json(alert_value(alert, desk.resolve_timeout, now)));
        });
  });
  return seen ? HttpAnswer() : problem(seen.error());
}

HttpAnswer list_alerts(ApiDesk& desk, const ApiCall& call) {
  std::string list = "[";
  auto out =
      with_alerts(desk, call, [&](const ShownAlert&, const AlertFilter&, const std::string& json) {
        if (list.size() > 1) list += ',';
        list += json;
      });
  if (out.status != 200) return out;
  list += "]\n";
  out.body = std::move(list);
  return out;
}

HttpAnswer list_groups(ApiDesk& desk, const ApiCall& call) {
  AlertGroups groups;
  auto out = with_alerts(
      desk, call, [&](const ShownAlert& alert, const AlertFilter& filter, const std::string& json) {
        groups.add(alert, json, filter.receiver);
      });
  if (out.status == 200) out.body = groups.json() + "\n";
  return out;
}

// A filter asks for the values that a set of the silence names.
bool names_all(const Silence& silence, const routing::Matchers& filter) {
  const auto sets = matcher_sets(silence);
  return std::any_of(sets.begin(), sets.end(), [&](const std::string& set) {
    core::Labels names;
    if (const auto parsed = routing::Matchers::parse(set)) {
      for (const auto& term : parsed->terms()) names.set(term.name, term.value);
    }
    return filter.matches(names);
  });
}

HttpAnswer list_silences(ApiDesk& desk, const ApiCall& call) {
  const auto filter = routing::Matchers::parse(call.query.values("filter"));
  if (!filter) return problem(filter.error().in("filter"));
  ValueList out;
  const auto seen = desk.view.read([&](const TopicView& view) {
    for (const auto& [id, silence] : view.silences()) {
      if (names_all(silence, *filter)) out.push_back(silence_value(silence, desk.clock.now()));
    }
  });
  return seen ? json(out) : problem(seen.error());
}

const std::string& asked_id(const ApiCall& call) { return call.request.in_path.find("id")->second; }

HttpAnswer show_silence(ApiDesk& desk, const ApiCall& call) {
  const auto known = known_silences(desk);
  if (!known) return problem(known.error());
  const auto found = known->find(asked_id(call));
  if (found == known->end()) return problem(no_silence(asked_id(call)));
  return json(silence_value(found->second, desk.clock.now()));
}

HttpAnswer expire_silence(ApiDesk& desk, const ApiCall& call) {
  const auto ended = end_silence(desk, asked_id(call), call);
  return ended ? empty_answer() : problem(ended.error());
}

HttpAnswer ask_silence(ApiDesk& desk, const ApiCall& call) {
  const auto asked = read_asked_silence(call.request.body);
  if (!asked) return problem(asked.error());
  SilenceWish wish{asked->silence, asked->id, asked->version, is_forced(call)};
  const auto made = set_silence(desk, std::move(wish), call);
  if (!made) return problem(made.error());
  return json(ValueMap{{"silenceID", made->id}});
}

HttpAnswer take_alerts(ApiDesk& desk, const ApiCall& call) {
  const auto body = core::parse_json(call.request.body, kMostOfAlerts);
  if (!body) return problem(body.error());
  const auto* alerts = core::as<ValueList>(*body);
  if (alerts == nullptr) return problem(core::invalid_argument("expected a list of alerts"));
  const core::WallTime now = desk.clock.now();
  EventIntake intake(call, now);
  for (const Value& alert : *alerts) intake.take(event_of_alert(alert, desk.resolve_timeout, now));
  return intake.write(desk.writer, 200);
}

std::vector<ApiParameter> alert_parameters() {
  ApiParameter filter{"filter", ParameterType::matcher, "a matcher on labels"};
  filter.repeated = true;
  return {filter,
          {"receiver", ParameterType::regex, "regular expression on names of receivers"},
          {"active", ParameterType::flag, "false: without those that people are told of"},
          {"silenced", ParameterType::flag, "false: without those that a silence holds back"},
          {"inhibited", ParameterType::flag, "taken for Alertmanager's clients; no effect"},
          {"muted", ParameterType::flag, "false: without those whose routes are all muted"},
          {"unprocessed", ParameterType::flag, "taken for Alertmanager's clients; no effect"}};
}

ApiParameter silence_id_parameter() {
  ApiParameter out{"id", ParameterType::text, "of the silence: sil_…"};
  out.in_path = true;
  return out;
}

}  // namespace

std::vector<ApiRoute> alertmanager_routes(ApiDesk& desk) {
  const auto of_desk = [&desk](auto handler) {
    return [&desk, handler](const ApiCall& call) { return handler(desk, call); };
  };
  constexpr auto kViewer = ApiRole::viewer;
  constexpr auto kOperator = ApiRole::operate;
  ApiParameter filter{"filter", ParameterType::matcher, "a matcher on what silences name"};
  filter.repeated = true;
  return {
      {"GET",
       "/api/v2/status",
       kViewer,
       "Show the version, and since when it runs",
       of_desk(server_status),
       {},
       {},
       {{200, "Alertmanager's status", "AlertmanagerStatus"}}},
      {"GET",
       "/api/v2/receivers",
       kViewer,
       "List the names of the receivers",
       of_desk(list_receivers),
       {},
       {},
       {{200, "all of them", "Receivers"}}},
      {"GET",
       "/api/v2/alerts",
       kViewer,
       "List open issues as alerts",
       of_desk(list_alerts),
       alert_parameters(),
       {},
       {{200, "by issue key", "GettableAlerts"}}},
      {"POST",
       "/api/v2/alerts",
       kOperator,
       "Take alerts of other producers",
       of_desk(take_alerts),
       {},
       {{"PostableAlerts"}},
       {{200, "all are written"}}},
      {"GET",
       "/api/v2/alerts/groups",
       kViewer,
       "List open issues by receiver and by the labels that its route groups by",
       of_desk(list_groups),
       alert_parameters(),
       {},
       {{200, "by receiver", "AlertGroups"}}},
      {"GET",
       "/api/v2/silences",
       kViewer,
       "List all silences, those that ended in the last five days too",
       of_desk(list_silences),
       {filter},
       {},
       {{200, "by id", "GettableSilences"}}},
      {"POST",
       "/api/v2/silences",
       kOperator,
       "Begin a silence, or change one",
       of_desk(ask_silence),
       {force_parameter()},
       {{"PostableSilence"}},
       {{200, "it holds", "SilenceID"}}},
      {"GET",
       "/api/v2/silence/{id}",
       kViewer,
       "Show a silence",
       of_desk(show_silence),
       {silence_id_parameter()},
       {},
       {{200, "as it is", "GettableSilence"}}},
      {"DELETE",
       "/api/v2/silence/{id}",
       kOperator,
       "End a silence",
       of_desk(expire_silence),
       {silence_id_parameter()},
       {},
       {{200, "it is over"}}},
  };
}

}  // namespace tocsin::app
