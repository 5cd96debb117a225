// The key `router.silence_notices`: who hears of silences, without a route of one's own (docs/silences.md).
#pragma once

#include <string>

#include "app/config/app_config.h"
#include "config/config.h"

namespace tocsin::app {

/// Reports a receiver that does not exist, and notices without a `route`.
void check_silence_notices(const config::Reader& root, const AppConfig& config,
                           const std::string& receiver);
/// The receiver that the document names; empty: none.
std::string silence_notices_receiver(const config::Reader& root);
/// A route for `rule=silence_notice` to this receiver, before all others: each silence is an incident
/// of its own. The routes that are there keep their identities, and with them their groups.
void add_silence_notices(routing::RouteConfig& tree, const std::string& receiver);

}  // namespace tocsin::app
