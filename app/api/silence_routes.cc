#include "app/api/silence_routes.h"

#include <algorithm>
#include <utility>

#include "app/api/api_rows.h"
#include "app/api/page.h"
#include "app/api/past_run.h"
#include "app/api/silence_desk.h"
#include "app/api/silence_past.h"
#include "app/api/silence_request.h"
#include "app/serve/problem.h"
#include "app/view/silence_records.h"
#include "core/json.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;
using routing::Silence;

constexpr std::size_t kMostMatching = 100;  // rows of a preview

HttpAnswer list_rows(ApiDesk& desk, const ApiCall& call) {
  auto page = ListPage::of(call.query);
  if (!page) return problem(400, "invalid-request", page.error().message, "cursor");
  const auto at = moment_of(call);
  const core::WallTime now = at.value_or(desk.clock.now());
  if (const auto past = check_moment(now, desk.clock.now()); !past)
    return problem(400, "invalid-parameter", past.error().message, "at");
  const auto known = at ? silences_at(desk, *at) : known_silences(desk);
  if (!known && at && known.error().code == core::Code::not_found)
    return problem(404, "not-found", known.error().message, "at");
  if (!known) return problem(known.error());
  const auto states = call.query.values("state");
  for (const auto& [id, silence] : *known) {
    if (at && silence.ends_at < now - routing::kSilenceKept) continue;
    const std::string state = silence_state(silence, now);
    const bool asked =
        states.empty() || std::find(states.begin(), states.end(), state) != states.end();
    if (asked) page->add({silence.created_at, id}, silence_row(silence, now));
  }
  return std::move(*page).answer(call.request, {{"as_of", core::to_rfc3339(now)}});
}

// The open issues that it holds back now.
core::Result<ValueMap> with_matching(ApiDesk& desk, const Silence& silence) {
  const core::WallTime now = desk.clock.now();
  const auto scope = routing::SilenceScope::of(silence);
  if (!scope) return scope.error();
  ValueList rows;
  std::int64_t count = 0;
  const auto seen = desk.view.read([&](const TopicView& view) {
    const HeldBackView held_back(view, desk.sight(), now);
    for (const auto& [key, issue] : view.issues()) {
      const IssueState state = state_of(view, issue.newest, desk.resolve_timeout, now);
      const bool held = state.status == core::IssueStatus::firing && !issue.newest.shadow &&
                        scope->matches(issue.newest.labels);
      if (!held) continue;
      ++count;
      if (rows.size() >= kMostMatching) continue;
      rows.push_back(
          issue_value({key, issue, state, desk.deliveries.episode_of(key, issue.newest.event_id),
                       held_back.of(view, key, issue)}));
    }
  });
  if (!seen) return seen.error();
  return ValueMap{{"silence", silence_row(silence, now)},
                  {"matching", std::move(rows)},
                  {"matching_count", count}};
}

HttpAnswer put_row(ApiDesk& desk, const ApiCall& call) {
  const auto asked = read_silence_request(call.request.body, desk.clock.now());
  if (!asked) return problem(asked.error());
  const bool preview = call.query.value("preview") == "true";
  const SilenceWish wish{asked->silence, asked->id, asked->version, is_forced(call), asked->named};
  const auto silence = preview ? preview_silence(desk, wish, call) : set_silence(desk, wish, call);
  if (!silence) return problem(silence.error());
  auto out = with_matching(desk, *silence);
  if (!out) return problem(out.error());
  return {preview ? 200 : 202, core::to_json(Value(std::move(*out))) + "\n"};
}

HttpAnswer end_row(ApiDesk& desk, const ApiCall& call) {
  const auto ended = end_silence(desk, call.request.in_path.find("id")->second, call);
  return ended ? HttpAnswer{204, ""} : problem(ended.error());
}

}  // namespace

std::vector<ApiRoute> silence_routes(ApiDesk& desk) {
  const auto of_desk = [&desk](auto handler) {
    return [&desk, handler](const ApiCall& call) { return handler(desk, call); };
  };
  ApiParameter state{"state", ParameterType::choice, "how it stands"};
  state.choices = {"pending", "active", "expired"};
  state.repeated = true;
  std::vector<ApiParameter> listing{state, moment_parameter()};
  for (ApiParameter& parameter : page_parameters()) listing.push_back(std::move(parameter));
  ApiParameter id{"id", ParameterType::text, "of the silence: sil_…"};
  id.in_path = true;
  return {
      {"GET",
       "/api/v1/silences",
       ApiRole::viewer,
       "List silences, those that ended in the last five days too",
       of_desk(list_rows),
       std::move(listing),
       {},
       {{200, "newest first", "Silences"}}},
      {"POST",
       "/api/v1/silences",
       ApiRole::operate,
       "Begin a silence, or change one",
       of_desk(put_row),
       {{"preview", ParameterType::flag, "true: only show what it would hold back"},
        force_parameter()},
       {{"SilenceRequest"}},
       {{200, "what it would hold back", "SilenceDetails"}, {202, "it holds", "SilenceDetails"}}},
      {"DELETE",
       "/api/v1/silences/{id}",
       ApiRole::operate,
       "End a silence",
       of_desk(end_row),
       {id},
       {},
       {{204, "it is over"}}},
  };
}

}  // namespace tocsin::app
