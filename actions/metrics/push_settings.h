// What publish_metric keeps and how often it says it. Internal to actions.
#pragma once

#include <chrono>

#include "actions/message/issue_metrics.h"
#include "actions/message/training_scalars.h"
#include "core/time.h"

namespace tocsin::actions {

struct PushSettings {
  IssueMetrics::Options series;
  core::Duration interval = std::chrono::minutes(1);
  TrainingScalars::Options scalars;
};

}  // namespace tocsin::actions
