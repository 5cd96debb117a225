// The small JSON objects of dictionary entries (docs/wire.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/labels.h"

namespace tocsin::hook {

/// {"job":…,"labels":{…}} of a worker's entry.
std::string worker_attrs(std::string_view job, const core::Labels& labels);
/// The caller's `op_type`; empty: it names none.
std::string op_type_of(std::string_view given);
/// The caller's object with `collections` added; what is not an object counts as empty. Empty text
/// when there is nothing to say.
std::string name_attrs(std::string_view given, const std::vector<std::string>& collections);

}  // namespace tocsin::hook
