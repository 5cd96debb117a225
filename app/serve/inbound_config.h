// Which tools may tell us that somebody has answered an alarm there: the list `http.inbound`.
#pragma once

#include <string>
#include <vector>

#include "app/serve/slack_hook.h"
#include "config/config.h"

namespace tocsin::app {

/// One webhook that a tool calls: POST /hooks/<name>.
struct InboundHook {
  std::string name;
  std::string type;         // pagerduty, jsm, slack
  std::string integration;  // id of the integration whose incidents it is about; slack has several
  config::Secret secret;
  config::Secret previous_secret;  // of a rotation that is under way; not set: there is none
  SlackHook slack = {};            // of type slack
};
void read_inbound(config::Reader& in, std::vector<InboundHook>& out);

}  // namespace tocsin::app
