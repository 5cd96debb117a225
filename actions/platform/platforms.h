// The platforms whose jobs this cluster's leader may end: the section `platforms`.
#pragma once

#include <memory>
#include <vector>

#include "actions/platform/platform_stop.h"
#include "config/config.h"
#include "core/clock.h"

namespace tocsin::actions {

class HttpClient;

/// The checked configuration; immutable once it is read.
struct PlatformsConfig;
std::shared_ptr<const PlatformsConfig> no_platforms();
/// Reads the section. Never null.
std::shared_ptr<const PlatformsConfig> read_platforms(config::Reader& in);

/// Those that are configured, ready to be asked. `http`: null for the real client. `clock` outlives
/// them: signatures carry the time.
std::vector<std::unique_ptr<PlatformStop>> make_platforms(const PlatformsConfig& config,
                                                          core::Clock& clock, HttpClient* http);

}  // namespace tocsin::actions
