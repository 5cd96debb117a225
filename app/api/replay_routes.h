// Would another value of a rule's parameter have fired? A sweep over what is recorded of a run, as a task.
#pragma once

#include <string_view>
#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"
#include "app/api/task_desk.h"
#include "app/config/app_config.h"
#include "ingest/ingest.h"

namespace tocsin::app {

/// All but `config` outlive the routes.
std::vector<ApiRoute> replay_routes(ApiDesk& desk, TaskDesk& tasks, ingest::Transport& transport,
                                    const AppConfig& config);
/// Schemas of their bodies and answers, and of tasks: a JSON object, by name.
std::string_view replay_schemas() noexcept;

}  // namespace tocsin::app
