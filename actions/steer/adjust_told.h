// The issues by which people hear what became of an adjustment (docs/actions/adjust.md). Internal to
// actions.
#pragma once

#include <string>

#include "core/command.h"
#include "core/issue.h"
#include "core/notification.h"
#include "core/time.h"

namespace tocsin::actions {

/// `adjusted` (info) if every rank applied it, else `adjust_failed` (warning). One event per command,
/// however often it is made. Stands until the run ends.
/// `what`: "lr = 0.001". `words`: what the ranks said.
core::Issue adjust_told(const core::NotifiedIssue& because, const core::Command& command,
                        bool applied, const std::string& what, const std::string& words,
                        const std::string& cluster, core::WallTime now);

}  // namespace tocsin::actions
