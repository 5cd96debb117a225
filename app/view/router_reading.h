// How the router stands, read once from its changelog.
#pragma once

#include <chrono>

#include "core/result.h"
#include "core/value.h"
#include "ingest/ingest.h"
#include "routing/routing.h"

namespace tocsin::app {

/// All records of `router-state` that are there now. deadline_exceeded: it did not come to an end.
core::Result<routing::RouterStanding> read_standing(ingest::Transport& transport,
                                                    std::chrono::milliseconds patience);

/// A group as /api/v1 and `--json` give it.
core::Value group_value(const routing::GroupStanding& group);

}  // namespace tocsin::app
