#include "app/api/group_routes.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "app/api/page.h"
#include "app/serve/problem.h"
#include "app/view/group_look.h"
#include "core/json.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

bool group_is_asked(const UrlQuery& query, const routing::GroupStanding& group) {
  const auto is_one_of = [&](std::string_view name, std::string_view value) {
    const auto wanted = query.values(name);
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
  };
  const auto wanted = query.values("integration");
  const bool by_integration =
      wanted.empty() ||
      std::any_of(group.integrations.begin(), group.integrations.end(), [&](const auto& one) {
        return std::find(wanted.begin(), wanted.end(), one.integration) != wanted.end();
      });
  return by_integration && is_one_of("route", group.route_id);
}

HttpAnswer list_router_groups(ApiDesk& desk, const ApiCall& call) {
  auto page = ListPage::of(call.query);
  if (!page) return problem(400, "invalid-request", page.error().message, "cursor");
  const auto issue = call.query.value("issue");
  const core::WallTime now = desk.clock.now();
  const auto seen = desk.view.read([&](const TopicView& view) {
    const routing::RouterStanding& standing = desk.standing.standing();
    const RoutingSight sight = desk.sight();
    const HeldBackView held(view, sight, now);
    for (const auto& group : issue ? standing.groups_of(*issue) : standing.groups()) {
      const RowKey place{group.created_at, group.hash};
      if (page->wants(place) && group_is_asked(call.query, group))
        page->add(place, group_look_value(look_at_group(group, view, held, sight, now), false));
    }
  });
  if (!seen) return problem(seen.error());
  return std::move(*page).answer(call.request, {{"as_of", core::to_rfc3339(now)}});
}

HttpAnswer show_router_group(ApiDesk& desk, const ApiCall& call) {
  const std::string& hash = call.request.in_path.find("hash")->second;
  const core::WallTime now = desk.clock.now();
  std::optional<core::Value> out;
  const auto seen = desk.view.read([&](const TopicView& view) {
    auto group = desk.standing.standing().find(hash);
    if (!group) return;
    const RoutingSight sight = desk.sight();
    const HeldBackView held(view, sight, now);
    out = group_look_value(look_at_group(std::move(*group), view, held, sight, now), false);
  });
  if (!seen) return problem(seen.error());
  if (!out) {
    return problem(core::not_found("there is no group \"" + core::visible(hash, 100) +
                                   "\"; list them: GET /api/v1/groups"));
  }
  return {200, core::to_json(*out) + "\n"};
}

ApiParameter repeated_text(const char* name, const char* meaning) {
  ApiParameter out{name, ParameterType::text, meaning};
  out.repeated = true;
  return out;
}

}  // namespace

std::vector<ApiRoute> group_routes(ApiDesk& desk) {
  const auto of_desk = [&desk](auto handler) {
    return [&desk, handler](const ApiCall& call) { return handler(desk, call); };
  };
  std::vector<ApiParameter> listing{
      repeated_text("route", "id of a route (tocsin routes tree)"),
      repeated_text("integration", "id of an integration that was told of something"),
      {"issue", ParameterType::text, "key of an issue: only its groups"}};
  for (ApiParameter& parameter : page_parameters()) listing.push_back(std::move(parameter));
  ApiParameter hash{"hash", ParameterType::text, "of the group, or a beginning that only it has"};
  hash.in_path = true;
  return {
      {"GET",
       "/api/v1/groups",
       ApiRole::viewer,
       "List groups: who was told of what, what is owed, when each is looked at next",
       of_desk(list_router_groups),
       std::move(listing),
       {},
       {{200, "newest first", "RouterGroups"}}},
      {"GET",
       "/api/v1/groups/{hash}",
       ApiRole::viewer,
       "Show a group",
       of_desk(show_router_group),
       {hash},
       {},
       {{200, "as the router's state has it", "RouterGroup"}}},
  };
}

}  // namespace tocsin::app
