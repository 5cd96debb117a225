// Silences as they were at a time: of each only the newest version is in its topic, and every change in the audit.
#pragma once

#include "app/api/api_desk.h"
#include "app/api/silence_desk.h"
#include "core/result.h"
#include "core/time.h"

namespace tocsin::app {

/// As they stood at `at`, by id. A version that was written since then is taken back by what the audit says was
/// there before. not_found: changes of that time are not in memory any more, and since when they are.
core::Result<KnownSilences> silences_at(ApiDesk& desk, core::WallTime at);

}  // namespace tocsin::app
