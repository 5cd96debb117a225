// Stops of all running jobs whose name begins alike, as SageMaker's own rule action does: pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/notification.h"
#include "core/running_run.h"

namespace tocsin::actions {

/// Of `running`, the runs whose job's name begins with `prefix`, by name.
std::vector<core::RunningRun> named_so(std::vector<core::RunningRun> running,
                                       std::string_view prefix);
/// Their names, the first five of them.
std::string names_of(const std::vector<core::RunningRun>& jobs);
/// The issue as one about that job: what it found stays, its run and labels are the job's.
core::NotifiedIssue on_behalf(const core::NotifiedIssue& notified, const core::RunningRun& job);

}  // namespace tocsin::actions
