#include "app/api/run_routes.h"

#include <chrono>
#include <memory>
#include <utility>

#include "app/api/api_rows.h"
#include "app/api/page.h"
#include "app/api/past_run.h"
#include "app/api/run_board.h"
#include "app/api/run_first_signs.h"
#include "app/api/run_story.h"
#include "app/api/series_asking.h"
#include "app/serve/problem.h"
#include "app/view/issue_feedback.h"
#include "core/json.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;

constexpr std::size_t kRunsOfATurn = 200;

RowKey place_of_run(const insights::RunLine& run) {
  return {core::WallTime(std::chrono::duration_cast<core::WallTime::duration>(
              std::chrono::microseconds(run.heard))),
          run.uid};
}

bool run_is_asked(const UrlQuery& query, const insights::RunLine& run) {
  const auto job = query.value("job");
  if (job && run.job != *job) return false;
  const auto state = query.value("state");
  if (!state) return true;
  const bool ended = run.phase == "ended";
  if (*state == "trouble")
    return run.open_issues > 0 || run.outcome == "stopped_by_rule" || run.outcome == "failed" ||
           run.outcome == "lost";
  return (*state == "ended") == ended;
}

// A run as it stands, or stood at `at`; false: it was not known then.
bool load_run(insights::EventReader& store, std::optional<core::WallTime> at,
              insights::RunLine& run, std::vector<insights::IssueLine>& issues) {
  issues = store.issues_of(run.uid);
  if (at) {
    auto events = store.events_of(run.uid);
    if (!put_back(run, issues, events, *at)) return false;
  }
  mark_first_signs(issues);
  return true;
}

// What does not go together in a list by when runs were heard of; ok: nothing.
core::Status check_list(const ApiCall& call, core::WallTime now, std::string& field) {
  for (const char* name : {"q", "offset"}) {
    field = name;
    if (call.query.value(name))
      return core::invalid_argument(std::string(name) + ": needs order=trouble");
  }
  field = "at";
  const auto at = moment_of(call);
  return at ? check_moment(*at, now) : core::ok();
}

HttpAnswer list_runs(ApiDesk& desk, const ApiCall& call) {
  const auto at = moment_of(call);
  if (call.query.value("order") == "trouble") {
    if (!at) return show_run_board(desk, call);
    return problem(400, "invalid-parameter", "at: the order by trouble is that of now", "at");
  }
  std::string field;
  if (const auto good = check_list(call, desk.clock.now(), field); !good)
    return problem(400, "invalid-parameter", good.error().message, field);
  auto page = ListPage::of(call.query);
  if (!page) return problem(400, "invalid-request", page.error().message, "cursor");
  auto store = desk.insights.reader();
  if (!store) return problem(store.error());
  std::optional<insights::EventReader::After> after;
  std::size_t taken = 0;
  const std::size_t enough = 1001;  // the longest page, and one that says that there is more
  while (taken < enough) {
    const auto runs = (*store)->runs(after, kRunsOfATurn);
    for (const auto& run : runs) {
      const RowKey place = place_of_run(run);
      if (!page->wants(place) || (!at && !run_is_asked(call.query, run))) continue;
      insights::RunLine line = run;
      std::vector<insights::IssueLine> issues;
      if (!load_run(**store, at, line, issues) || !run_is_asked(call.query, line)) continue;
      page->add(place, run_row(line, issues));
      ++taken;
    }
    if (runs.size() < kRunsOfATurn) break;
    after = {runs.back().heard, runs.back().uid};
  }
  if (const auto status = (*store)->failure(); !status) return problem(status.error());
  if (at && taken == 0 && !call.query.value("cursor"))
    return problem(404, "not-found",
                   "at: nothing is kept of that time, or no run that fits was known then", "at");
  return std::move(*page).answer(call.request,
                                 {{"as_of", core::to_rfc3339(at.value_or(desk.clock.now()))},
                                  {"current", desk.insights.current()}});
}

// The run that a path names, and everything of it; nullopt: `refusal` says why.
struct FoundRun {
  FoundRun(insights::RunLine of, std::vector<insights::IssueLine> found,
           const std::vector<insights::KeptRecord>& events)
      : line(std::move(of)), issues(std::move(found)), story(events, "") {}

  insights::RunLine line;
  std::vector<insights::IssueLine> issues;
  RunStory story;
};
std::unique_ptr<FoundRun> find_run(ApiDesk& desk, const ApiCall& call, HttpAnswer& refusal) {
  auto store = desk.insights.reader();
  if (!store) {
    refusal = problem(store.error());
    return nullptr;
  }
  const std::string& asked = call.request.in_path.find("run")->second;
  auto line = (*store)->run(asked);
  if (!line) {
    const auto failed = (*store)->failure();
    refusal =
        problem(failed ? core::Error{core::Code::not_found,
                                     "no run, or more than one, has a uid that begins with \"" +
                                         core::visible(asked, 100) + "\""}
                       : failed.error());
    return nullptr;
  }
  auto issues = (*store)->issues_of(line->uid);
  auto events = (*store)->events_of(line->uid);
  if (const auto status = (*store)->failure(); !status) {
    refusal = problem(status.error());
    return nullptr;
  }
  if (const auto at = moment_of(call)) {
    auto past = check_moment(*at, desk.clock.now());
    if (past) past = put_back(*line, issues, events, *at);
    if (!past) {
      const bool absent = past.error().code == core::Code::not_found;
      refusal = problem(absent ? 404 : 400, absent ? "not-found" : "invalid-parameter",
                        past.error().message, "at");
      return nullptr;
    }
    // Heartbeats before the newest are not kept: the curves know the step.
    if (const auto curves = desk.curves.reader()) {
      if (const auto step = step_at(**curves, line->uid, *at)) line->step = step;
    }
  }
  mark_first_signs(issues);
  return std::make_unique<FoundRun>(std::move(*line), std::move(issues), events);
}

HttpAnswer show_run(ApiDesk& desk, const ApiCall& call) {
  HttpAnswer refusal;
  const auto found = find_run(desk, call, refusal);
  if (!found) return refusal;
  ValueList issues;
  for (const auto& one : found->issues) issues.push_back(issue_row(one, &found->line));
  ValueList deliveries;
  for (const auto& entry : found->story.deliveries().entries())
    deliveries.push_back(delivery_value(entry.delivery, entry.key.at, entry.key.id));
  return {200, core::to_json(ValueMap{
                   {"run", run_row(found->line, found->issues)},
                   {"issues", std::move(issues)},
                   {"stop", found->story.stop(found->line.uid)},
                   {"changes", found->story.changes()},
                   {"attempts", found->story.attempts()},
                   {"rules", found->story.rules()},
                   {"deliveries", std::move(deliveries)},
                   {"as_of", core::to_rfc3339(moment_of(call).value_or(desk.clock.now()))}}) +
                   "\n"};
}

HttpAnswer show_history(ApiDesk& desk, const ApiCall& call) {
  HttpAnswer refusal;
  const auto found = find_run(desk, call, refusal);
  if (!found) return refusal;
  return {200, core::to_json(ValueMap{
                   {"run", run_row(found->line, found->issues)},
                   {"items", found->story.history()},
                   {"as_of", core::to_rfc3339(moment_of(call).value_or(desk.clock.now()))}}) +
                   "\n"};
}

HttpAnswer list_rules(ApiDesk& desk, const ApiCall& call) {
  HttpAnswer refusal;
  const auto found = find_run(desk, call, refusal);
  if (!found) return refusal;
  return {200, core::to_json(ValueMap{
                   {"run", run_row(found->line, found->issues)},
                   {"items", found->story.rules()},
                   {"as_of", core::to_rfc3339(moment_of(call).value_or(desk.clock.now()))}}) +
                   "\n"};
}

ApiParameter run_in_path() {
  ApiParameter out{"run", ParameterType::text, "its uid, or the beginning of it"};
  out.in_path = true;
  return out;
}

std::vector<ApiParameter> run_parameters() {
  ApiParameter state{"state", ParameterType::choice, "how it stands"};
  state.choices = {"running", "ended", "trouble"};
  ApiParameter order{"order", ParameterType::choice, "heard (of last first) if not given"};
  order.choices = {"heard", "trouble"};
  std::vector<ApiParameter> out{
      {"job", ParameterType::text, "name of the job"},
      state,
      order,
      {"q", ParameterType::text, "words that stand in the run or its issues; with order=trouble"},
      integer_parameter("offset", "runs before the first of the page; with order=trouble", 0,
                        std::int64_t{1} << 40),
      moment_parameter()};
  for (ApiParameter& parameter : page_parameters()) out.push_back(std::move(parameter));
  return out;
}

Value evidence_of(const core::Issue& issue) {
  const core::OutRecord record = ingest::encode_issue(issue);
  auto data = core::parse_json(record.value.value_or("null"), std::size_t{1} << 20U);
  const auto* members = data ? core::as<ValueMap>(*data) : nullptr;
  if (members == nullptr) return {};
  for (const auto& [name, value] : *members) {
    if (name == "evidence") return value;
  }
  return {};
}

// Everything that the store has of an episode.
struct IssueInStore {
  insights::IssueLine line;
  std::optional<insights::RunLine> run;
  std::vector<insights::IssueLine> issues;  // of its run; else itself
  std::vector<insights::KeptRecord> events;
};

std::optional<IssueInStore> issue_in_store(insights::EventReader& store, const std::string& key,
                                           const std::string& episode) {
  auto line = store.issue(key, episode);
  if (!line) return std::nullopt;
  IssueInStore out;
  out.line = std::move(*line);
  const std::string& run = out.line.run;
  if (!run.empty()) out.run = store.run(run);
  out.issues = out.run ? store.issues_of(out.run->uid) : std::vector{out.line};
  out.events = run.empty() ? store.events_of_issue(key) : store.events_of(run);
  if (!store.failure()) return std::nullopt;
  return out;
}

// `fires`: what the store knows of its status at `now`; nullopt: what the records say.
std::optional<ValueMap> told_issue(const ApiDesk& desk, const IssueInStore& of, IssueNow now_is,
                                   core::WallTime now, std::optional<bool> fires) {
  const std::string& key = of.line.key;
  const RunStory story(of.events, of.line.event_id);
  const auto seen = story.view().found().find(key);
  if (seen == story.view().found().end()) return std::nullopt;
  FeedbackView said;
  for (const auto& kept : of.events) said.apply(kept.view());
  const auto number = static_cast<std::uint64_t>(of.line.episode.value_or(of.line.ordinal));
  const core::Issue& newest = seen->second.newest;
  // Reports between its first and its newest one are not kept: it had not been silent.
  const IssueState state = state_of(story.view(), newest, desk.resolve_timeout,
                                    fires.value_or(false) ? newest.time : now);
  if (state.status != core::IssueStatus::firing) now_is.held = {};
  ValueList deliveries;
  for (const auto& entry : story.deliveries().entries()) {
    for (const core::IssueRef& one : entry.delivery.issues) {
      if (one.issue_key == key && one.episode == number)
        deliveries.push_back(delivery_value(entry.delivery, entry.key.at, entry.key.id));
    }
  }
  auto issues = of.issues;
  mark_first_signs(issues);
  const auto rows = [&](const std::vector<insights::IssueLine>& lines) {
    ValueList out;
    for (const auto& one : lines) out.push_back(issue_row(one, of.run ? &*of.run : nullptr));
    return out;
  };
  return ValueMap{
      {"issue", issue_value({key, seen->second, state, number, std::move(now_is.held)})},
      {"deliveries", std::move(deliveries)},
      {"groups", std::move(now_is.groups)},
      {"evidence", evidence_of(newest)},
      {"run", of.run ? run_row(*of.run, issues) : Value()},
      {"stop", story.stop(of.line.run)},
      {"changes", story.changes()},
      {"issues_of_run", rows(issues)},
      {"earlier", rows(begun_before(of.line, issues))},
      {"verdict", verdict_value(said.verdict(key, of.line.event_id))},
      {"notes", note_values(said.notes(key, of.line.event_id))},
      {"as_of", core::to_rfc3339(now)}};
}

}  // namespace

std::optional<ValueMap> remembered_issue(ApiDesk& desk, const std::string& key,
                                         const std::string& episode, IssueNow now_is) {
  auto store = desk.insights.reader();
  if (!store) return std::nullopt;
  const auto found = issue_in_store(**store, key, episode);
  if (!found) return std::nullopt;
  return told_issue(desk, *found, std::move(now_is), desk.clock.now(), std::nullopt);
}

core::Result<ValueMap> issue_of_the_past(ApiDesk& desk, const std::string& key,
                                         const std::string& episode, core::WallTime at) {
  if (const auto past = check_moment(at, desk.clock.now()); !past) return past.error();
  auto store = desk.insights.reader();
  if (!store) return store.error();
  auto found = issue_in_store(**store, key, episode);
  const core::Error unknown{core::Code::not_found,
                            "at: the store knew of no such issue at " + core::to_rfc3339(at)};
  if (!found) return unknown;
  insights::RunLine line = found->run.value_or(insights::RunLine());
  if (const auto back = put_back(line, found->issues, found->events, at); !back)
    return back.error();
  if (found->run) found->run = std::move(line);
  const insights::IssueLine* then = nullptr;  // the newest of then is not that of now
  for (const insights::IssueLine& one : found->issues) {
    if (one.key == key && (episode == "newest" || one.ordinal == found->line.ordinal)) then = &one;
  }
  if (then == nullptr) return unknown;
  found->line = *then;
  auto out = told_issue(desk, *found, {}, at, then->firing);
  if (!out) return unknown;
  return std::move(*out);
}

std::vector<ApiRoute> run_routes(ApiDesk& desk) {
  const auto of_desk = [&desk](auto handler) {
    return [&desk, handler](const ApiCall& call) { return handler(desk, call); };
  };
  constexpr auto kViewer = ApiRole::viewer;
  return {{"GET",
           "/api/v1/runs",
           kViewer,
           "List runs, those of the past too",
           of_desk(list_runs),
           run_parameters(),
           {},
           {{200, "heard of last first", "Runs"}}},
          {"GET",
           "/api/v1/runs/{run}",
           kViewer,
           "Show a run: its issues, its stop, who was told",
           of_desk(show_run),
           {run_in_path(), moment_parameter()},
           {},
           {{200, "the run", "RunDetails"}}},
          {"GET",
           "/api/v1/runs/{run}/history",
           kViewer,
           "Show what happened to a run, newest first",
           of_desk(show_history),
           {run_in_path(), moment_parameter()},
           {},
           {{200, "what happened", "RunHistory"}}},
          {"GET",
           "/api/v1/runs/{run}/rules",
           kViewer,
           "Show how each rule stands in a run: what it judged, what it lacks",
           of_desk(list_rules),
           {run_in_path()},
           {},
           {{200, "by name", "RunRules"}}}};
}

}  // namespace tocsin::app
