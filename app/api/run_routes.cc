#include "app/api/run_routes.h"

#include <chrono>
#include <memory>
#include <utility>

#include "app/api/api_rows.h"
#include "app/api/page.h"
#include "app/api/run_board.h"
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

HttpAnswer list_runs(ApiDesk& desk, const ApiCall& call) {
  if (call.query.value("order") == "trouble") return show_run_board(desk, call);
  for (const char* name : {"q", "offset"}) {
    if (call.query.value(name))
      return problem(400, "invalid-parameter", std::string(name) + ": needs order=trouble", name);
  }
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
      if (!page->wants(place_of_run(run)) || !run_is_asked(call.query, run)) continue;
      page->add(place_of_run(run), run_row(run, (*store)->issues_of(run.uid)));
      ++taken;
    }
    if (runs.size() < kRunsOfATurn) break;
    after = {runs.back().heard, runs.back().uid};
  }
  if (const auto status = (*store)->failure(); !status) return problem(status.error());
  return std::move(*page).answer(call.request, {{"as_of", core::to_rfc3339(desk.clock.now())},
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
  return {200, core::to_json(ValueMap{{"run", run_row(found->line, found->issues)},
                                      {"issues", std::move(issues)},
                                      {"stop", found->story.stop(found->line.uid)},
                                      {"changes", found->story.changes()},
                                      {"rules", found->story.rules()},
                                      {"deliveries", std::move(deliveries)},
                                      {"as_of", core::to_rfc3339(desk.clock.now())}}) +
                   "\n"};
}

HttpAnswer show_history(ApiDesk& desk, const ApiCall& call) {
  HttpAnswer refusal;
  const auto found = find_run(desk, call, refusal);
  if (!found) return refusal;
  return {200, core::to_json(ValueMap{{"run", run_row(found->line, found->issues)},
                                      {"items", found->story.history()},
                                      {"as_of", core::to_rfc3339(desk.clock.now())}}) +
                   "\n"};
}

HttpAnswer list_rules(ApiDesk& desk, const ApiCall& call) {
  HttpAnswer refusal;
  const auto found = find_run(desk, call, refusal);
  if (!found) return refusal;
  return {200, core::to_json(ValueMap{{"run", run_row(found->line, found->issues)},
                                      {"items", found->story.rules()},
                                      {"as_of", core::to_rfc3339(desk.clock.now())}}) +
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
                        std::int64_t{1} << 40)};
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

}  // namespace

std::optional<ValueMap> remembered_issue(ApiDesk& desk, const std::string& key,
                                         const std::string& episode, IssueNow now_is) {
  auto store = desk.insights.reader();
  if (!store) return std::nullopt;
  const auto line = (*store)->issue(key, episode);
  if (!line) return std::nullopt;
  const auto run = line->run.empty() ? std::nullopt : (*store)->run(line->run);
  const auto issues = run ? (*store)->issues_of(run->uid) : std::vector<insights::IssueLine>{*line};
  const auto events =
      line->run.empty() ? (*store)->events_of_issue(key) : (*store)->events_of(line->run);
  if (!(*store)->failure()) return std::nullopt;
  const RunStory story(events, line->event_id);
  const auto seen = story.view().found().find(key);
  if (seen == story.view().found().end()) return std::nullopt;
  FeedbackView said;
  for (const auto& kept : events) said.apply(kept.view());
  const core::WallTime now = desk.clock.now();
  const auto number = static_cast<std::uint64_t>(line->episode.value_or(line->ordinal));
  const IssueState state = state_of(story.view(), seen->second.newest, desk.resolve_timeout, now);
  if (state.status != core::IssueStatus::firing) now_is.held = {};
  ValueList deliveries;
  for (const auto& entry : story.deliveries().entries()) {
    for (const core::IssueRef& one : entry.delivery.issues) {
      if (one.issue_key == key && one.episode == number)
        deliveries.push_back(delivery_value(entry.delivery, entry.key.at, entry.key.id));
    }
  }
  ValueList others;
  for (const auto& one : issues) others.push_back(issue_row(one, run ? &*run : nullptr));
  return ValueMap{
      {"issue", issue_value({key, seen->second, state, number, std::move(now_is.held)})},
      {"deliveries", std::move(deliveries)},
      {"groups", std::move(now_is.groups)},
      {"evidence", evidence_of(seen->second.newest)},
      {"run", run ? run_row(*run, issues) : Value()},
      {"stop", story.stop(line->run)},
      {"changes", story.changes()},
      {"issues_of_run", std::move(others)},
      {"verdict", verdict_value(said.verdict(key, line->event_id))},
      {"notes", note_values(said.notes(key, line->event_id))},
      {"as_of", core::to_rfc3339(now)}};
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
           {run_in_path()},
           {},
           {{200, "the run", "RunDetails"}}},
          {"GET",
           "/api/v1/runs/{run}/history",
           kViewer,
           "Show what happened to a run, newest first",
           of_desk(show_history),
           {run_in_path()},
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
