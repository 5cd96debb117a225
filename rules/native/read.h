// Keys of an item of `rules:` that names a shared object: `library`.
#pragma once

#include "config/config.h"
#include "rules/rules.h"

namespace tocsin::rules::native {

/// Loads the library, unless `allowed` is false (`plugins.native`): then nothing of it is touched.
void read(config::Reader& item, bool allowed, RuleSettings& settings);

}  // namespace tocsin::rules::native
