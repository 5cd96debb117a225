// A start from the changelog: what it tells is joined, and follows the present configuration
// (docs/routing.md, Limits).
#pragma once

#include "core/time.h"
#include "routing/flush/teller.h"
#include "routing/tables/limits.h"
#include "routing/tables/tables.h"

namespace tocsin::routing {

/// All records are there. Groups whose route or grouping is gone are closed, and their issues go
/// where they lead now. What is overdue is told once, by the next turn.
void restart(Tables& tables, Teller& teller, const Config& limits, core::WallTime now);

}  // namespace tocsin::routing
