// What an evaluation speaks of.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "core/function_ref.h"
#include "core/issue.h"
#include "rules/contract/finding.h"
#include "rules/engine/memory/open_issue.h"
#include "rules/evaluate/place.h"

namespace tocsin::rules {

/// The unit of an evaluation: its number, and its labels when somebody needs them.
struct Unit {
  OpenKey key;  // without kind
  std::uint32_t worker = kNoRoster;
  core::FunctionRef<Labels()> labels;
};

/// What the engine knows about a unit beyond its labels, for evidence.
struct Extra {
  std::optional<core::TensorRef> tensor = {};
  core::Affected affected = {};
  std::optional<core::Role> role = {};  // of the tensor or scalar, where the unit is one
};

using Explain = core::FunctionRef<std::pair<Finding, Extra>(unsigned kind)>;

}  // namespace tocsin::rules
