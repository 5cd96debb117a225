// Silences written to `router-control`, and read back from there.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "ingest/ingest.h"
#include "routing/routing.h"

namespace tocsin::app {

/// Writes `silences`, who changed them, and tidies `known` up. ok: the topic has them, and whoever reads it takes them as
/// they are. failed_precondition: somebody changed one of them first; what that person wrote stands.
core::Status write_silences(ingest::Transport& transport,
                            const std::vector<routing::Silence>& silences,
                            const std::map<std::string, routing::Silence>& known,
                            core::WallTime now);

}  // namespace tocsin::app
