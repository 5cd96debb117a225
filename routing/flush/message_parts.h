// Several messages of one flush, for integrations that act on each issue (docs/routing.md).
#pragma once

#include <vector>

#include "routing/flush/flush.h"
#include "routing/tables/state.h"

namespace tocsin::routing {

/// Cuts a decision, with a kind, into messages that each list all of their issues: at most
/// `max_alerts` of them, and bytes as far as a record holds them. At least one part; each has the
/// number of its message, and `log.told` says which message each issue depends on.
std::vector<FlushDecision> in_parts(FlushDecision decision, const FlushContext& context,
                                    TellLog& log);

}  // namespace tocsin::routing
