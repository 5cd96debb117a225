// Runs of /api/v1, as the store remembers them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"
#include "app/view/held_back.h"
#include "core/result.h"
#include "core/time.h"
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

/// The same as it was at `at`: without what came later, and without groups and silences, whose past is not kept.
/// not_found: the issue, or its episode, was not known then. unavailable: the store cannot be read.
core::Result<core::ValueMap> issue_of_the_past(ApiDesk& desk, const std::string& key,
                                               const std::string& episode, core::WallTime at);

}  // namespace tocsin::app
