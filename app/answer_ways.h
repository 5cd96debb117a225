// Which messages carry buttons and links, by the configuration.
#pragma once

#include "actions/actions.h"
#include "app/config/app_config.h"

namespace tocsin::app {

/// Buttons where a webhook of the tool tells us of clicks, links where a secret signs them.
actions::AnswerWays answer_ways(const AppConfig& config);

}  // namespace tocsin::app
