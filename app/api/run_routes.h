// Runs of /api/v1, as the store remembers them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"
#include "app/view/held_back.h"
#include "core/value.h"

namespace tocsin::app {

/// `desk` outlives the routes.
std::vector<ApiRoute> run_routes(ApiDesk& desk);

/// What only the topics' newest records say of an issue. Empty: nothing.
struct IssueNow {
  HeldBack held;
  core::ValueList groups;  // as GET /api/v1/groups gives them
};

/// An episode whenever it was, with its run, its stop and its evidence, as GET
/// /api/v1/issues/{key}/{episode} has it; nullopt: the store does not know it, or cannot be read.
std::optional<core::ValueMap> remembered_issue(ApiDesk& desk, const std::string& key,
                                               const std::string& episode, IssueNow now_is);

}  // namespace tocsin::app
