// Groups of the router as people read them.
#pragma once

#include <span>
#include <string>

#include "app/view/group_look.h"

namespace tocsin::app {

/// A line per group.
std::string groups_text(std::span<const GroupLook> looks, core::WallTime now);
/// Everything about one.
std::string group_text(const GroupLook& look, const TopicView& view, core::WallTime now);

}  // namespace tocsin::app
