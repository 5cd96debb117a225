// publish_metric by records of the topic `metrics`, and by the series that Prometheus scrapes.
// Internal to actions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actions/contract/descriptor.h"
#include "actions/metrics/push_settings.h"

namespace tocsin::actions {

/// The state of the issues of a message, as JSON scalars: what is stored of it.
std::string state_text(const core::Notification& notification,
                       const std::vector<std::string>& labels);

/// One record per issue, key = run uid; scalars of runs every `settings.interval`. failed_precondition:
/// no topic to write to.
core::Result<std::unique_ptr<core::Action>> recorded_metrics(const PushSettings& settings,
                                                             const Environment& environment,
                                                             const IntegrationName& name);
/// Nothing is sent; `environment.issue_metrics` shows it. failed_precondition: nothing serves it.
core::Result<std::unique_ptr<core::Action>> scraped_metrics(const PushSettings& settings,
                                                            const Environment& environment,
                                                            const IntegrationName& name);

}  // namespace tocsin::actions
