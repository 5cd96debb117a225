#include "app/api/run_board.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "app/api/run_first_signs.h"
#include "app/api/run_story.h"
#include "app/api/series_asking.h"
#include "app/serve/problem.h"
#include "core/json.h"

namespace tocsin::app {
namespace {

constexpr std::int64_t kUsualRows = 100;
constexpr std::size_t kMostWords = 8;

std::vector<std::string> words_in(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty() && out.size() < kMostWords) {
    const std::size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    const std::size_t end = std::min(text.find(' '), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return out;
}

}  // namespace

HttpAnswer show_run_board(ApiDesk& desk, const ApiCall& call) {
  for (const char* name : {"cursor", "job", "state"}) {
    if (call.query.value(name))
      return problem(
          400, "invalid-parameter",
          std::string(name) + ": does not go with order=trouble; use q, offset and limit", name);
  }
  auto store = desk.insights.reader();
  if (!store) return problem(store.error());
  insights::RunListAsk ask;
  ask.words = words_in(call.query.value("q").value_or(""));
  ask.from = number_in(call.query, "offset", 0);
  ask.most = static_cast<std::size_t>(number_in(call.query, "limit", kUsualRows));
  const insights::RunListAnswer found = (*store)->run_list(ask);
  const std::vector<insights::IssueLine> none;
  core::ValueList items;
  for (const insights::RunLine& run : found.runs) {
    auto issues = run.issues == 0 ? none : (*store)->issues_of(run.uid);
    mark_first_signs(issues);
    items.push_back(run_row(run, issues));
  }
  if (const auto status = (*store)->failure(); !status) return problem(status.error());
  const auto& [trouble, running, ended] = found.of_grade;
  return {
      200,
      core::to_json(core::ValueMap{
          {"items", std::move(items)},
          {"next", core::Value()},
          {"total", trouble + running + ended},
          {"groups", core::ValueMap{{"trouble", trouble}, {"running", running}, {"ended", ended}}},
          {"as_of", core::to_rfc3339(desk.clock.now())},
          {"current", desk.insights.current()}}) +
          "\n"};
}

}  // namespace tocsin::app
