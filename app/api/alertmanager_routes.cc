#include "app/api/alertmanager_routes.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <utility>

#include "app/api/alert_list.h"
#include "app/api/alertmanager_json.h"
#include "app/api/event_intake.h"
#include "app/process/version.h"
#include "app/serve/problem.h"
#include "app/view/silence_records.h"
#include "core/json.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using core::Value;
using core::ValueList;
using core::ValueMap;
using routing::Silence;

constexpr auto kReadBack = 5s;  // until what was written stands in our own view
constexpr std::size_t kMostOfAlerts = std::size_t{1} << 20;

HttpAnswer json(const Value& value) { return {200, core::to_json(value) + "\n"}; }
HttpAnswer empty_answer() { return {200, ""}; }

HttpAnswer server_status(ApiDesk& desk) {
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

HttpAnswer list_receivers(const ApiDesk& desk) {
  ValueList out;
  for (const std::string& name : desk.receivers) out.push_back(ValueMap{{"name", name}});
  return json(out);
}

// Alerts of a request that has parameters of alerts.
core::Result<std::vector<ShownAlert>> asked_alerts(ApiDesk& desk, const AlertFilter& filter) {
  std::vector<ShownAlert> alerts;
  const auto seen = desk.view.read([&](const TopicView& view) {
    alerts = shown_alerts(view, desk.routing.get(), filter, desk.resolve_timeout, desk.clock.now());
  });
  if (!seen) return seen.error();
  return alerts;
}

HttpAnswer with_alerts(
    ApiDesk& desk, const HttpRequest& request,
    core::FunctionRef<Value(const std::vector<ShownAlert>&, const AlertFilter&)> make) {
  const auto query = UrlQuery::parse(request.query);
  if (!query) return problem(query.error());
  const auto filter = AlertFilter::parse(*query);
  if (!filter) return problem(filter.error());
  const auto alerts = asked_alerts(desk, *filter);
  if (!alerts) return problem(alerts.error());
  return json(make(*alerts, *filter));
}

HttpAnswer list_alerts(ApiDesk& desk, const HttpRequest& request) {
  return with_alerts(desk, request, [&](const auto& alerts, const AlertFilter&) {
    ValueList out;
    for (const ShownAlert& alert : alerts)
      out.push_back(alert_value(alert, desk.resolve_timeout, desk.clock.now()));
    return Value(std::move(out));
  });
}

HttpAnswer list_groups(ApiDesk& desk, const HttpRequest& request) {
  return with_alerts(desk, request, [&](const auto& alerts, const AlertFilter& filter) {
    return alert_groups_value(alerts, filter.receiver, desk.resolve_timeout, desk.clock.now());
  });
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

HttpAnswer list_silences(ApiDesk& desk, const HttpRequest& request) {
  constexpr std::array<std::string_view, 1> kKnown{"filter"};
  const auto query = UrlQuery::parse(request.query);
  if (!query) return problem(query.error());
  if (const auto known = query->only(kKnown); !known) return problem(known.error());
  const auto filter = routing::Matchers::parse(query->values("filter"));
  if (!filter) return problem(filter.error().in("filter"));
  ValueList out;
  const auto seen = desk.view.read([&](const TopicView& view) {
    for (const auto& [id, silence] : view.silences()) {
      if (names_all(silence, *filter)) out.push_back(silence_value(silence, desk.clock.now()));
    }
  });
  return seen ? json(out) : problem(seen.error());
}

core::Error changed_meanwhile(const Silence& silence) {
  return {core::Code::failed_precondition,
          "silence " + silence.id + " is at version " + std::to_string(silence.version) +
              " now: somebody changed it; read it, and send the change again with that version"};
}

core::Error no_silence(std::string_view id) {
  return {core::Code::not_found, "there is no silence \"" + core::visible(id, 100) + "\""};
}

std::string asked_id(const HttpRequest& request) { return request.in_path.find("id")->second; }

core::Result<std::map<std::string, Silence>> known_silences(ApiDesk& desk) {
  std::map<std::string, Silence> known;
  const auto seen = desk.view.read([&](const TopicView& view) { known = view.silences(); });
  if (!seen) return seen.error();
  return known;
}

HttpAnswer show_silence(ApiDesk& desk, const HttpRequest& request) {
  const auto known = known_silences(desk);
  if (!known) return problem(known.error());
  const auto found = known->find(asked_id(request));
  if (found == known->end()) return problem(no_silence(asked_id(request)));
  return json(silence_value(found->second, desk.clock.now()));
}

// Who has written may rely on it: it stands in the topic, and our own view has read it. Somebody else
// may have changed it first; then that stands.
core::Status put_silences(ApiDesk& desk, const std::vector<Silence>& silences,
                          const std::map<std::string, Silence>& known, core::WallTime now) {
  if (auto written = desk.writer.write(silence_records(silences, known, now)); !written)
    return written;
  std::optional<Silence> other;
  const auto read = desk.view.await(
      [&](const TopicView& view) {
        for (const Silence& silence : silences) {
          const auto found = view.silences().find(silence.id);
          if (found == view.silences().end() || found->second.version < silence.version)
            return false;
          if (!(found->second == silence)) other = found->second;
        }
        return true;
      },
      kReadBack);
  if (!read || !other) return read;
  return changed_meanwhile(*other);
}

HttpAnswer end_silence(ApiDesk& desk, const HttpRequest& request, const Principal& who) {
  const auto known = known_silences(desk);
  if (!known) return problem(known.error());
  const auto found = known->find(asked_id(request));
  if (found == known->end()) return problem(no_silence(asked_id(request)));
  const core::WallTime now = desk.clock.now();
  if (found->second.ends_at <= now) return empty_answer();  // over already
  const auto written = put_silences(desk, {ended_silence(found->second, now)}, *known, now);
  if (!written) return problem(written.error());
  desk.log.info("api_silence_ended",
                {{"id", found->first}, {"by", who.name}, {"client", std::string(request.client)}});
  return empty_answer();
}

// What Alertmanager's form does not say of a silence stays as it is.
void keep_the_rest(const Silence& old, Silence& asked) {
  asked.actions = old.actions;
  asked.until_resolved = old.until_resolved;
  asked.quiet_for = old.quiet_for;
  asked.auto_expire_unmatched = old.auto_expire_unmatched;
  asked.announce_on_unmute = old.announce_on_unmute;
  asked.recurrence = old.recurrence;
  if (asked.annotations.empty()) asked.annotations = old.annotations;
  // A client that knows one set shows and sends back the first.
  if (asked.matcher_sets.empty() && old.matcher_sets.size() > 1 &&
      asked.matchers == old.matcher_sets.front()) {
    asked.matchers.clear();
    asked.matcher_sets = old.matcher_sets;
  }
}

core::Result<bool> is_forced(const HttpRequest& request) {
  const auto query = UrlQuery::parse(request.query);
  if (!query) return query.error();
  constexpr std::array<std::string_view, 1> kKnown{"force"};
  if (const auto known = query->only(kKnown); !known) return known.error();
  return query->flag("force", false);
}

HttpAnswer ask_silence(ApiDesk& desk, const HttpRequest& request, const Principal& who) {
  const auto force = is_forced(request);
  if (!force) return problem(force.error());
  auto asked = read_asked_silence(request.body);
  if (!asked) return problem(asked.error());
  const auto known = known_silences(desk);
  if (!known) return problem(known.error());
  const core::WallTime now = desk.clock.now();
  Silence& silence = asked->silence;
  if (silence.created_by.empty()) silence.created_by = who.name;
  const auto old = asked->id.empty() ? known->end() : known->find(asked->id);
  if (!asked->id.empty() && old == known->end()) return problem(no_silence(asked->id));
  std::vector<Silence> to_write;
  if (old == known->end()) {
    to_write.push_back(new_silence(std::move(silence), now));
  } else {
    if (asked->version != 0 && asked->version != old->second.version)
      return problem(changed_meanwhile(old->second));
    keep_the_rest(old->second, silence);
    to_write = changed_silence(old->second, std::move(silence), now);
  }
  const Silence& standing = to_write.back();
  const bool fresh = !known->contains(standing.id);
  const auto good = routing::check_asked(standing, known->size() - (fresh ? 0 : 1), now, *force);
  if (!good) return problem(good.error());
  if (const auto written = put_silences(desk, to_write, *known, now); !written)
    return problem(written.error());
  desk.log.info("api_silence_set", {{"id", standing.id},
                                    {"matchers", matchers_text(standing)},
                                    {"by", who.name},
                                    {"client", std::string(request.client)}});
  return json(ValueMap{{"silenceID", standing.id}});
}

HttpAnswer take_alerts(ApiDesk& desk, const HttpRequest& request, const Principal& who) {
  const auto body = core::parse_json(request.body, kMostOfAlerts);
  if (!body) return problem(body.error());
  const auto* alerts = core::as<ValueList>(*body);
  if (alerts == nullptr) return problem(core::invalid_argument("expected a list of alerts"));
  EventIntake intake(who, desk.clock.now());
  for (const Value& alert : *alerts) {
    intake.take(event_of_alert(alert, desk.resolve_timeout, desk.clock.now()));
  }
  return intake.write(desk.writer, 200);
}

}  // namespace

std::vector<ApiRoute> alertmanager_routes(ApiDesk& desk) {
  const auto reads = [&desk](auto handler) {
    return [&desk, handler](const HttpRequest& request, const Principal&) {
      return handler(desk, request);
    };
  };
  const auto writes = [&desk](auto handler) {
    return [&desk, handler](const HttpRequest& request, const Principal& who) {
      return handler(desk, request, who);
    };
  };
  const auto of_desk = [&desk](auto handler) {
    return [&desk, handler](const HttpRequest&, const Principal&) { return handler(desk); };
  };
  constexpr auto kViewer = ApiRole::viewer;
  constexpr auto kOperator = ApiRole::operate;
  return {
      {"GET", "/api/v2/status", kViewer, of_desk(server_status)},
      {"GET", "/api/v2/receivers", kViewer, of_desk(list_receivers)},
      {"GET", "/api/v2/alerts", kViewer, reads(list_alerts)},
      {"POST", "/api/v2/alerts", kOperator, writes(take_alerts)},
      {"GET", "/api/v2/alerts/groups", kViewer, reads(list_groups)},
      {"GET", "/api/v2/silences", kViewer, reads(list_silences)},
      {"POST", "/api/v2/silences", kOperator, writes(ask_silence)},
      {"GET", "/api/v2/silence/{id}", kViewer, reads(show_silence)},
      {"DELETE", "/api/v2/silence/{id}", kOperator, writes(end_silence)},
  };
}

}  // namespace tocsin::app
