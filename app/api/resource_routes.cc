#include "app/api/resource_routes.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "app/api/api_rows.h"
#include "app/api/page.h"
#include "app/api/past_lists.h"
#include "app/api/past_run.h"
#include "app/api/run_first_signs.h"
#include "app/api/run_routes.h"
#include "app/serve/problem.h"
#include "app/view/router_reading.h"
#include "core/json.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueMap;

std::optional<core::WallTime> time_in(const UrlQuery& query, std::string_view name) {
  const auto text = query.value(name);
  return text ? core::parse_rfc3339(*text) : std::nullopt;
}

// A parameter that is not given takes everything.
bool is_asked(const UrlQuery& query, std::string_view name, std::string_view value) {
  const auto wanted = query.values(name);
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

bool is_within(const UrlQuery& query, core::WallTime begin, core::WallTime end) {
  const auto from = time_in(query, "from");
  const auto to = time_in(query, "to");
  return (!from || end >= *from) && (!to || begin <= *to);
}

bool is_of_run(const UrlQuery& query, const core::RunUid& run) {
  return is_asked(query, "run", core::to_text(run));
}

Value since_or_null(const std::optional<core::WallTime>& since) {
  return since ? Value(core::to_rfc3339(*since)) : Value();
}

core::Error no_issue(std::string_view key) {
  return {core::Code::not_found,
          "there is no issue \"" + core::visible(key, 100) +
              "\" that is open or ended within the last hour; issues of the past: tocsin issues"};
}

// --- issues

class IssueList {
 public:
  IssueList(const ApiDesk& desk, const TopicView& view, core::WallTime now)
      : desk_(desk), view_(view), now_(now), held_(view, desk.sight(), now) {}

  [[nodiscard]] IssueRow row(const std::string& key, const TopicView::SeenIssue& seen) const {
    return {key, seen, state_of(view_, seen.newest, desk_.resolve_timeout, now_),
            desk_.deliveries.episode_of(key, seen.newest.event_id), held_.of(view_, key, seen)};
  }

 private:
  const ApiDesk& desk_;
  const TopicView& view_;
  core::WallTime now_;
  HeldBackView held_;
};

// Which issues are first signs: by all issues of their runs, which the store has. What it has not heard of yet is one
// if no cause was named.
class StoredFirstSigns {
 public:
  explicit StoredFirstSigns(ApiDesk& desk) : desk_(desk) {}

  bool contains(const core::Issue& issue) {
    if (!issue.caused_by.empty()) return false;
    if (issue.run.uid.nil()) return true;
    const auto [run, fresh] = preceded_.try_emplace(core::to_text(issue.run.uid));
    if (fresh) run->second = preceded_of(run->first);
    return !run->second.contains(issue.event_id);
  }

 private:
  std::set<std::string> preceded_of(const std::string& run) {
    std::set<std::string> out;
    const auto store = desk_.insights.reader();
    if (!store) return out;
    auto issues = (*store)->issues_of(run);
    mark_first_signs(issues);
    for (insights::IssueLine& one : issues)
      if (!one.first_sign) out.insert(std::move(one.event_id));
    return out;
  }

  ApiDesk& desk_;
  std::map<std::string, std::set<std::string>> preceded_;  // event ids, by run
};

bool issue_is_asked(const UrlQuery& query, const IssueRow& row, const routing::Matchers& matchers,
                    StoredFirstSigns& signs) {
  const core::Issue& issue = row.seen.newest;
  const bool fires = row.state.status == core::IssueStatus::firing;
  return !issue.shadow && is_of_run(query, issue.run.uid) &&
         is_asked(query, "status", core::to_string(row.state.status)) &&
         is_asked(query, "severity", core::to_string(issue.severity)) &&
         is_asked(query, "rule", issue.rule) &&
         is_within(query, row.seen.since, fires ? core::WallTime::max() : issue.time) &&
         (query.value("first_signs") != "true" || signs.contains(issue)) &&
         matchers.matches(issue.labels);
}

HttpAnswer list_issues(ApiDesk& desk, const ApiCall& call) {
  if (const auto at = moment_of(call)) return list_past_issues(desk, call, *at);
  auto page = ListPage::of(call.query);
  if (!page) return problem(400, "invalid-request", page.error().message, "cursor");
  const auto matchers = routing::Matchers::parse(call.query.values("filter"));
  if (!matchers) return problem(matchers.error().in("filter"));
  const core::WallTime now = desk.clock.now();
  const auto seen = desk.view.read([&](const TopicView& view) {
    const IssueList list(desk, view, now);
    StoredFirstSigns signs(desk);
    for (const auto& [key, issue] : view.issues()) {
      const RowKey place{issue.since, key};
      if (!page->wants(place)) continue;
      const IssueRow row = list.row(key, issue);
      if (issue_is_asked(call.query, row, *matchers, signs)) page->add(place, issue_value(row));
    }
  });
  if (!seen) return problem(seen.error());
  return std::move(*page).answer(call.request, {{"as_of", core::to_rfc3339(now)}});
}

// As GET /api/v1/groups gives them.
core::ValueList groups_of(const ApiDesk& desk, const std::string& key) {
  core::ValueList out;
  for (const auto& group : desk.standing.standing().groups_of(key))
    out.push_back(group_value(group));
  return out;
}

IssueNow issue_now(ApiDesk& desk, const std::string& key, core::WallTime now) {
  IssueNow out;
  // While the topics are still being read, the store alone answers.
  (void)desk.view.read([&](const TopicView& view) {
    const auto found = view.issues().find(key);
    if (found == view.issues().end()) return;
    out.held = HeldBackView(view, desk.sight(), now).of(view, key, found->second);
    out.groups = groups_of(desk, key);
  });
  return out;
}

// All that is known of it: its deliveries too, and its groups.
HttpAnswer show_issue(ApiDesk& desk, const ApiCall& call) {
  const std::string& key = call.request.in_path.find("key")->second;
  const std::string& asked = call.request.in_path.find("episode")->second;
  const core::WallTime now = desk.clock.now();
  if (const auto at = moment_of(call)) {
    auto past = issue_of_the_past(desk, key, asked, *at);
    if (past) return {200, core::to_json(Value(std::move(*past))) + "\n"};
    const core::Code code = past.error().code;
    if (code == core::Code::not_found) return problem(404, "not-found", past.error().message, "at");
    if (code != core::Code::invalid_argument) return problem(past.error());
    return problem(400, "invalid-parameter", past.error().message, "at");
  }
  if (auto remembered = remembered_issue(desk, key, asked, issue_now(desk, key, now)))
    return {200, core::to_json(Value(std::move(*remembered))) + "\n"};
  std::optional<ValueMap> out;
  const auto seen = desk.view.read([&](const TopicView& view) {
    const auto found = view.issues().find(key);
    if (found == view.issues().end()) return;
    const IssueRow row = IssueList(desk, view, now).row(found->first, found->second);
    if (asked != "newest" && (!row.episode || std::to_string(*row.episode) != asked)) return;
    core::ValueList deliveries;
    for (const auto& entry : desk.deliveries.entries()) {
      const auto& issues = entry.delivery.issues;
      const bool of_it = std::any_of(issues.begin(), issues.end(), [&](const core::IssueRef& one) {
        return one.issue_key == key && row.episode == one.episode;
      });
      if (of_it) deliveries.push_back(delivery_value(entry.delivery, entry.key.at, entry.key.id));
    }
    out = ValueMap{{"issue", issue_value(row)},
                   {"deliveries", std::move(deliveries)},
                   {"groups", groups_of(desk, key)},
                   {"evidence", Value()},
                   {"run", Value()},
                   {"stop", Value()},
                   {"changes", core::ValueList{}},
                   {"issues_of_run", core::ValueList{}},
                   {"earlier", core::ValueList{}},
                   {"verdict", Value()},
                   {"notes", core::ValueList{}},
                   {"as_of", core::to_rfc3339(now)}};
  });
  if (!seen) return problem(seen.error());
  if (!out) return problem(no_issue(key + "/" + asked));
  return {200, core::to_json(Value(std::move(*out))) + "\n"};
}

// --- deliveries, commands, changes

bool is_about(const TopicView& view, const core::Delivery& delivery, const UrlQuery& query) {
  const auto& issues = delivery.issues;
  const bool of_run =
      !query.value("run") ||
      std::any_of(issues.begin(), issues.end(), [&](const core::IssueRef& issue) {
        const auto found = view.issues().find(issue.issue_key);
        return found != view.issues().end() && is_of_run(query, found->second.newest.run.uid);
      });
  const bool of_issue = !query.value("issue") ||
                        std::any_of(issues.begin(), issues.end(), [&](const core::IssueRef& issue) {
                          return is_asked(query, "issue", issue.issue_key);
                        });
  return of_run && of_issue;
}

HttpAnswer list_deliveries(ApiDesk& desk, const ApiCall& call) {
  const auto at = moment_of(call);
  if (const auto past = check_moment(at.value_or(core::WallTime{}), desk.clock.now()); !past)
    return problem(400, "invalid-parameter", past.error().message, "at");
  auto page = ListPage::of(call.query);
  if (!page) return problem(400, "invalid-request", page.error().message, "cursor");
  std::optional<core::WallTime> since;
  const auto seen = desk.view.read([&](const TopicView& view) {
    since = desk.deliveries.complete_since();
    for (const auto& entry : desk.deliveries.entries()) {
      const core::Delivery& delivery = entry.delivery;
      const bool asked = page->wants(entry.key) && (!at || entry.key.at <= *at) &&
                         is_asked(call.query, "integration", delivery.integration) &&
                         is_asked(call.query, "state", core::to_string(delivery.state)) &&
                         is_within(call.query, entry.key.at, entry.key.at) &&
                         is_about(view, delivery, call.query);
      if (asked) page->add(entry.key, delivery_value(delivery, entry.key.at, entry.key.id));
    }
  });
  if (!seen) return problem(seen.error());
  if (at && since && *at < *since)
    return problem(404, "not-found",
                   "at: deliveries are kept here since " + core::to_rfc3339(*since) +
                       "; GET /api/v1/runs/{run}?at=… has those of a run",
                   "at");
  return std::move(*page).answer(call.request, {{"complete_since", since_or_null(since)}});
}

HttpAnswer list_changes(ApiDesk& desk, const ApiCall& call) {
  auto page = ListPage::of(call.query);
  if (!page) return problem(400, "invalid-request", page.error().message, "cursor");
  std::optional<core::WallTime> since;
  const auto seen = desk.view.read([&](const TopicView&) {
    since = desk.audit.complete_since();
    for (const auto& entry : desk.audit.entries()) {
      const AuditEntry& change = entry.change;
      const bool asked = page->wants(entry.key) && is_asked(call.query, "who", change.who) &&
                         is_asked(call.query, "what", change.what) &&
                         is_asked(call.query, "subject", change.subject) &&
                         is_within(call.query, change.at, change.at);
      if (asked) page->add(entry.key, audit_value(change));
    }
  });
  if (!seen) return problem(seen.error());
  return std::move(*page).answer(call.request, {{"complete_since", since_or_null(since)}});
}

// --- declarations

ApiParameter several(std::string name, std::string meaning) {
  ApiParameter out{std::move(name), ParameterType::text, std::move(meaning)};
  out.repeated = true;
  return out;
}

ApiParameter one_of_these(std::string name, std::string meaning, std::vector<std::string> choices) {
  ApiParameter out{std::move(name), ParameterType::choice, std::move(meaning)};
  out.choices = std::move(choices);
  out.repeated = true;
  return out;
}

ApiParameter part_of_path(std::string name, std::string meaning) {
  ApiParameter out{std::move(name), ParameterType::text, std::move(meaning)};
  out.in_path = true;
  return out;
}

std::vector<ApiParameter> with_page(std::vector<ApiParameter> out) {
  out.push_back({"from", ParameterType::time, "not what was over before"});
  out.push_back({"to", ParameterType::time, "not what began after"});
  for (ApiParameter& parameter : page_parameters()) out.push_back(std::move(parameter));
  return out;
}

std::vector<ApiParameter> issue_parameters() {
  ApiParameter filter{"filter", ParameterType::matcher, "a matcher on labels"};
  filter.repeated = true;
  return with_page(
      {several("run", "UUID of the run"),
       one_of_these("status", "how it stands", {"firing", "resolved"}),
       one_of_these("severity", "how bad it is", {"info", "warning", "error", "critical"}),
       several("rule", "name of the rule"),
       filter,
       {"first_signs", ParameterType::flag, "true: only those that nothing caused"},
       moment_parameter()});
}

std::vector<ApiParameter> delivery_parameters() {
  return with_page(
      {several("run", "UUID of a run that the message is about"),
       several("issue", "key of an issue that the message lists"),
       several("integration", "id of the integration"),
       one_of_these("state", "of the attempt or the end",
                    {"pending", "delivered", "delivered_via_digest", "sent_unconfirmed",
                     "superseded", "expired", "dead", "cancelled"}),
       moment_parameter()});
}

}  // namespace

std::vector<ApiRoute> resource_routes(ApiDesk& desk) {
  const auto of_desk = [&desk](auto handler) {
    return [&desk, handler](const ApiCall& call) { return handler(desk, call); };
  };
  constexpr auto kViewer = ApiRole::viewer;
  return {
      {"GET",
       "/api/v1/issues",
       kViewer,
       "List issues that are open or ended within the last hour",
       of_desk(list_issues),
       issue_parameters(),
       {},
       {{200, "newest first", "Issues"}}},
      {"GET",
       "/api/v1/issues/{key}/{episode}",
       kViewer,
       "Show an issue, and who was told of it",
       of_desk(show_issue),
       {part_of_path("key", "of the issue"), part_of_path("episode", "its number, or `newest`"),
        moment_parameter()},
       {},
       {{200, "the issue", "IssueDetails"}}},
      {"GET",
       "/api/v1/deliveries",
       kViewer,
       "List attempts and ends of deliveries",
       of_desk(list_deliveries),
       delivery_parameters(),
       {},
       {{200, "newest first", "Deliveries"}}},
      {"GET",
       "/api/v1/audit",
       ApiRole::operate,
       "List who changed what",
       of_desk(list_changes),
       with_page({several("who", "name of who did it"), several("what", "kind of the change"),
                  several("subject", "id of what was changed")}),
       {},
       {{200, "newest first", "Changes"}}},
  };
}

}  // namespace tocsin::app
