// A worker says that its loop stands still, and where; that it goes on; or, being asked, where it is.
#pragma once

#include <cstdint>
#include <optional>

#include "core/frame_body.h"
#include "rules/contract/finding.h"

namespace tocsin::rules {

struct Standing {
  enum class What : std::uint8_t { stands_still, goes_on, place };
  What what = What::stands_still;
  Finding finding;  // where it stands, unless it goes on
};

/// `worker`: its name. nullopt: it says something else.
std::optional<Standing> standing_of(const core::Lifecycle& body, std::string_view worker);

}  // namespace tocsin::rules
