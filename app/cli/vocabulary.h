// The tables of `core` as one document, for tools/docs and programs in other languages.
#pragma once

#include "core/value.h"

namespace tocsin::app {

/// {modes, dtypes, roles: name → code, collections: [..], statistics: [..]}
core::Value vocabulary();

}  // namespace tocsin::app
