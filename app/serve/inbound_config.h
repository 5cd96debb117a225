// Which tools may tell us that somebody has answered an alarm there: the list `http.inbound`.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace tocsin::app {

/// One webhook that a tool calls: POST /hooks/<name>.
struct InboundHook {
  std::string name;
  std::string type;         // pagerduty, jsm
  std::string integration;  // id of the integration whose incidents it is about
  config::Secret secret;
  config::Secret previous_secret;  // of a rotation that is under way; not set: there is none
};
void read_inbound(config::Reader& in, std::vector<InboundHook>& out);

}  // namespace tocsin::app
