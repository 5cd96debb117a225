#include "app/api/past_lists.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "app/api/page.h"
#include "app/api/past_issues.h"
#include "app/api/past_run.h"
#include "app/serve/problem.h"
#include "core/json.h"
#include "core/labels.h"
#include "routing/routing.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueMap;

constexpr std::size_t kMostPastIssues = 10'000;  // that are looked through
constexpr std::size_t kUsualPastRows = 100;
constexpr auto kStillListed = std::chrono::hours(1);  // after its end, as in the list of now

core::WallTime wall_of(std::int64_t micros) {
  return core::WallTime(
      std::chrono::duration_cast<core::WallTime::duration>(std::chrono::microseconds(micros)));
}

bool fits_one(const UrlQuery& query, std::string_view name, std::string_view value) {
  const auto wanted = query.values(name);
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

core::Labels labels_in(const Value& issue) {
  core::Labels out;
  const Value* found = core::find(issue, "labels");
  const auto* members = found == nullptr ? nullptr : core::as<ValueMap>(found);
  if (members == nullptr) return out;
  for (const auto& [name, value] : *members) {
    if (const auto* text = core::as<std::string>(&value)) out.set(name, *text);
  }
  return out;
}

// What the line says already: the records of its run need not be read then.
bool line_fits(const UrlQuery& query, const insights::IssueLine& line, core::WallTime at) {
  const auto time = [&](const char* name) {
    const auto text = query.value(name);
    return text ? core::parse_rfc3339(*text) : std::nullopt;
  };
  const auto from = time("from");
  const auto to = time("to");
  const core::WallTime opened = wall_of(line.opened);
  const bool over = line.closed && wall_of(*line.closed) <= at;
  return opened <= at && !(over && wall_of(*line.closed) < at - kStillListed) &&
         fits_one(query, "run", line.run) && fits_one(query, "rule", line.rule) &&
         !(to && opened > *to) && !(from && over && wall_of(*line.closed) < *from);
}

std::size_t rows_asked(const UrlQuery& query) {
  std::size_t out = kUsualPastRows;
  if (const auto text = query.value("limit"))
    std::from_chars(text->data(), text->data() + text->size(), out);
  return out;
}

bool issue_fits(const UrlQuery& query, const Value& issue, const routing::Matchers& matchers) {
  return fits_one(query, "status", core::text_at(issue, "status")) &&
         fits_one(query, "severity", core::text_at(issue, "severity")) &&
         matchers.matches(labels_in(issue));
}

// `lines`: the newest first.
void fill_page(PastIssues& past, const ApiCall& call, core::WallTime at,
               const std::vector<insights::IssueLine>& lines, const routing::Matchers& matchers,
               ListPage& page) {
  const std::size_t enough = rows_asked(call.query) + 1;
  std::size_t taken = 0;
  for (const insights::IssueLine& line : lines) {
    const RowKey place{wall_of(line.opened), line.key + "/" + std::to_string(line.ordinal)};
    if (taken == enough) break;
    if (!page.wants(place) || !line_fits(call.query, line, at)) continue;
    if (call.query.value("first_signs") == "true" && !past.first_sign(line)) continue;
    Value issue = past.issue(line);
    if (issue.is_null() || !issue_fits(call.query, issue, matchers)) continue;
    page.add(place, std::move(issue));
    ++taken;
  }
}

}  // namespace

HttpAnswer list_past_issues(ApiDesk& desk, const ApiCall& call, core::WallTime at) {
  if (const auto past = check_moment(at, desk.clock.now()); !past)
    return problem(400, "invalid-parameter", past.error().message, "at");
  auto page = ListPage::of(call.query);
  if (!page) return problem(400, "invalid-request", page.error().message, "cursor");
  const auto matchers = routing::Matchers::parse(call.query.values("filter"));
  if (!matchers) return problem(matchers.error().in("filter"));
  auto store = desk.insights.reader();
  if (!store) return problem(store.error());
  const auto lines = (*store)->issues_since(0, kMostPastIssues);
  if (const auto status = (*store)->failure(); !status) return problem(status.error());
  if (lines.size() == kMostPastIssues && wall_of(lines.back().opened) > at)
    return problem(404, "not-found",
                   "at: more than " + std::to_string(kMostPastIssues) +
                       " issues have begun since then; ask for those of one run: "
                       "GET /api/v1/runs/{run}?at=…",
                   "at");
  PastIssues past(**store, desk.resolve_timeout, at);
  fill_page(past, call, at, lines, *matchers, *page);
  if (const auto status = (*store)->failure(); !status) return problem(status.error());
  return std::move(*page).answer(call.request, {{"as_of", core::to_rfc3339(at)}});
}

std::string why_only_now(std::string_view path) {
  struct Reason {
    std::string_view path, words;
  };
  static constexpr std::array kReasons{
      Reason{
          "/api/v1/nodes/{node}/agent",
          "what an agent was told to sample is not kept by time; GET /api/v1/commands?node=… has "
          "what was asked of it, with the times"},
      Reason{"/api/v1/groups", "of a group only what holds now is kept"},
      Reason{"/api/v1/runs/{run}/rules", "of a rule only its last status is kept"},
  };
  for (const Reason& one : kReasons) {
    if (path == one.path || (one.path == "/api/v1/groups" && path.starts_with(one.path)))
      return "at: this is only told as it is now: " + std::string(one.words);
  }
  return "at: this is only told as it is now; a run, its history, its curves, its nodes and their "
         "samples, the faults of its GPUs, an issue, a node, and the lists of runs, issues, nodes, "
         "deliveries, commands and silences are told as they were";
}

}  // namespace tocsin::app
