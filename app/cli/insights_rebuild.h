// `tocsin insights rebuild`: new stores of the page from the topics, in place of the old ones.
#pragma once

#include "app/cli/insights_command.h"

namespace tocsin::app {

/// No process may write the stores meanwhile. 0: done; 1: runs would be lost, and nothing was changed;
/// 3: configuration; 4: a store is in use, or the topics cannot be read.
int insights_rebuild(const InsightsOptions& options);

}  // namespace tocsin::app
