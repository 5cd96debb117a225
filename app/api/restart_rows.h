// Where attempts of a run begin in its curves, with what is known of each attempt.
#pragma once

#include <string>
#include <vector>

#include "app/api/api_desk.h"
#include "core/value.h"
#include "insights/insights.h"

namespace tocsin::app {

/// {mode, step, attempt, workers, again, number, before, world_size, reason, exit_code}: `number`
/// counts the attempts of the run from 1, `before` is that of the curve up to there, `reason` is how the attempt
/// before it ended. Null: nobody has said.
core::ValueList restart_rows(ApiDesk& desk, const std::string& run,
                             const std::vector<insights::Restart>& restarts);

}  // namespace tocsin::app
