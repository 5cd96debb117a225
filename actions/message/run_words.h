// What one run came to, and what Tocsin did about it, in words. Internal to actions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/notification.h"

namespace tocsin::actions {

/// Name and value, as a message lists them.
using Rows = std::vector<std::pair<std::string, std::string>>;

/// The attempt that an issue is about; null: the message says nothing of it.
const core::RunTold* run_of(const core::Notification& notification, const core::Issue& issue);

/// Leaves out the runs that none of its issues is about.
void keep_named_runs(core::Notification& notification);

/// What came of it, in a few words: "stopped, checkpoint saved", "job failed, exit code 1", "stop
/// asked". Empty while it goes on and nobody asked for a stop.
std::string run_outcome(const core::RunTold& told);

/// What Tocsin did and what the run answered: stop, answers, checkpoint, end.
Rows stop_rows(const core::RunTold& told);
/// Job, run, hosts, ranks, labels, report.
Rows run_rows(const core::RunTold& told);
/// The same as far as an issue itself says it.
Rows run_rows(const core::Issue& issue);

/// "gpu-17:/data/run/step304.pt".
std::string checkpoint_place(const core::Checkpoint& checkpoint);

}  // namespace tocsin::actions
