// New stores of the page, filled from the topics without serving anybody.
#pragma once

#include <string>

#include "app/config/app_config.h"
#include "core/function_ref.h"
#include "core/result.h"

namespace tocsin::app {

/// Fills a store of events at `path`, and curves.db beside it, until both have read their topics to the
/// end; closes them then. `tell` is called some times a second. unavailable: a store cannot be written,
/// or the topics cannot be read.
core::Status refill_stores(AppConfig config, const std::string& path,
                           core::FunctionRef<void()> tell);

}  // namespace tocsin::app
