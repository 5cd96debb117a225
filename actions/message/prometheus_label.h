// Labels as Prometheus and its relatives take them. Internal to actions.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/labels.h"
#include "core/value.h"

namespace tocsin::actions {

/// The name with `_` for every character that a label name may not have (Prometheus data model).
std::string prometheus_label(std::string_view name);
/// All labels under such names; names that become one (a.b, a_b) stay apart by further `_`.
std::map<std::string, std::string> prometheus_labels(const core::Labels& labels);

/// As a map of a message; an empty text is none.
core::Value text_map(const std::map<std::string, std::string>& texts);

}  // namespace tocsin::actions
