// Private to this room: an issue as large as an event may be (core/limits.h).
#pragma once

#include <cstddef>

#include "core/issue.h"

namespace tocsin::ingest {

/// `bytes`: of its JSON.
bool fits(const core::Issue& issue, std::size_t bytes);
/// The same issue, made to fit: annotations are cut, then evidence goes, what is longest first; its names stand in
/// `evidence.values.left_out`. Labels are as they were, unless they break the limits by themselves.
core::Issue fitting(core::Issue issue);

}  // namespace tocsin::ingest
