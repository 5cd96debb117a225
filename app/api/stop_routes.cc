#include "app/api/stop_routes.h"

#include <utility>

#include "app/api/page.h"
#include "app/api/stop_desk.h"
#include "app/serve/problem.h"
#include "app/view/listed_stops.h"
#include "core/json.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueMap;

constexpr std::size_t kMostOfAStopWord = 16 * 1024;
constexpr std::size_t kMostOfAComment = 2000;

HttpAnswer list_stops(ApiDesk& desk, const ApiCall& call) {
  auto page = ListPage::of(call.query);
  if (!page) return problem(400, "invalid-request", page.error().message, "cursor");
  const bool all = call.query.value("all") == "true";
  const core::WallTime now = desk.clock.now();
  const auto seen = desk.view.read([&](const TopicView& view) {
    for (const ListedStop& stop : stops_of(view)) {
      if (!stop.open() && !all) continue;
      const core::WallTime asked =
          stop.request != nullptr ? stop.request->asked_at : stop.stop->command.issued_at;
      page->add({asked, stop.id}, stop_value(stop, view));
    }
  });
  if (!seen) return problem(seen.error());
  return std::move(*page).answer(call.request, {{"as_of", core::to_rfc3339(now)}});
}

core::Result<std::string> comment_of(std::string_view json) {
  if (json.empty()) return std::string();
  const auto body = core::parse_json(json, kMostOfAStopWord);
  if (!body) return body.error();
  const auto* members = core::as<ValueMap>(*body);
  if (members == nullptr) return core::invalid_argument("expected an object");
  std::string out;
  for (const auto& [name, value] : *members) {
    const auto* text = core::as<std::string>(value);
    if (name != "comment") {
      return core::invalid_argument("unknown field \"" + core::visible(name, 100) +
                                    "\"; did you mean \"comment\"?");
    }
    if (text == nullptr || text->size() > kMostOfAComment)
      return core::invalid_argument("comment: expected a text of at most 2000 bytes");
    out = *text;
  }
  return out;
}

template <typename Decide>
HttpAnswer say_word(ApiDesk& desk, const ApiCall& call, Decide decide) {
  const auto comment = comment_of(call.request.body);
  if (!comment) return problem(comment.error());
  const auto done = decide(desk, call.request.in_path.find("id")->second, *comment, call);
  if (!done) return problem(done.error());
  return {202, core::to_json(ValueMap{
                   {"command_id", done->id}, {"state", done->state}, {"detail", done->detail}}) +
                   "\n"};
}

}  // namespace

std::vector<ApiRoute> stop_routes(ApiDesk& desk) {
  ApiParameter id{"id", ParameterType::text, "of the stop or its beginning: cmd_…"};
  id.in_path = true;
  std::vector<ApiParameter> listing{{"all", ParameterType::flag, "true: those that are over too"}};
  for (ApiParameter& parameter : page_parameters()) listing.push_back(std::move(parameter));
  const ApiBody word{"StopWord", {"application/json"}, false};
  return {
      {"GET",
       "/api/v1/stops",
       ApiRole::viewer,
       "List stops that are open or wait for approval",
       [&desk](const ApiCall& call) { return list_stops(desk, call); },
       std::move(listing),
       {},
       {{200, "newest first", "Stops"}}},
      {"POST",
       "/api/v1/stops/{id}/approve",
       ApiRole::stopper,
       "Approve a stop that waits",
       [&desk](const ApiCall& call) { return say_word(desk, call, approve_stop); },
       {id},
       {word},
       {{202, "the word is written", "StopDecided"}}},
      {"POST",
       "/api/v1/stops/{id}/cancel",
       ApiRole::stopper,
       "Reject a stop that waits, or withdraw one that was requested",
       [&desk](const ApiCall& call) { return say_word(desk, call, cancel_stop); },
       {id},
       {word},
       {{202, "the word is written", "StopDecided"}}},
  };
}

}  // namespace tocsin::app
