// Which run a person means.
#pragma once

#include <map>
#include <string>

#include "app/view/topic_view.h"
#include "core/identity.h"
#include "core/issue.h"
#include "core/result.h"

namespace tocsin::app {

/// `run`: a uid or its beginning (4 digits or more), a job, or with `job` the name of one of its
/// runs. A job stands for the one run of it that has not ended, or for its newest. Errors: not_found
/// (with the nearest name), failed_precondition (several, which are named).
core::Result<core::JobEvent> which_run(const std::map<core::RunUid, core::JobEvent>& runs,
                                       const std::string& run, const std::string& job);

/// All runs that the topics name, also those of which nothing but issues is known.
std::map<core::RunUid, core::JobEvent> known_runs(const TopicView& view);

}  // namespace tocsin::app
