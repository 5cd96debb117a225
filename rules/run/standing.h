// A worker says that its loop stands still, and where; or that it goes on.
#pragma once

#include <optional>

#include "core/frame_body.h"
#include "rules/finding.h"

namespace tocsin::rules {

struct Standing {
  bool goes_on = false;
  Finding finding;  // where it stands, unless it goes on
};

/// `worker`: its name. nullopt: it says something else.
std::optional<Standing> standing_of(const core::Lifecycle& body, std::string_view worker);

}  // namespace tocsin::rules
