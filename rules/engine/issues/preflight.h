// What the hook saw in the first steps of a run: parts of a model that do not train.
#pragma once

#include <optional>

#include "core/frame_body.h"
#include "rules/contract/finding.h"

namespace tocsin::rules {

/// nullopt: nothing that this version knows.
std::optional<Finding> preflight_finding(const core::Lifecycle& body);

/// Where the hook has looked and found the protocol kept: a line of the run card. Empty: it does not say so.
core::ValueMap protocol_kept(const core::Lifecycle& body);

}  // namespace tocsin::rules
