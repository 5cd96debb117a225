// Private to this room: the bound on an issue's annotations (docs/events.md).
#pragma once

#include <cstddef>

#include "core/issue.h"

namespace tocsin::ingest {

/// Bytes of all annotations: texts, and names of the further ones.
std::size_t annotation_bytes(const core::Issue& issue);
/// Cuts the longest annotations until all together fit; true when something was cut.
bool cut_annotations(core::Issue& issue, std::size_t max_bytes);

}  // namespace tocsin::ingest
