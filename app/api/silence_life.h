// The fields of a silence in /api/v1 that say when it holds and what ends it.
#pragma once

#include <optional>
#include <vector>

#include "core/result.h"
#include "core/value.h"
#include "routing/routing.h"

namespace tocsin::app {

/// `recurrence`, `until_resolved`, `quiet_for`, `auto_expire_unmatched`, `announce_on_unmute`,
/// `annotations`. A recurrence that names a time interval has no windows yet. invalid_argument: what is
/// wrong, with the name of its field.
core::Status read_silence_life(const core::Value& body, routing::Silence& out);

/// Copies the windows of the interval that the recurrence names. invalid_argument: none is called so,
/// with the nearest one.
core::Status fill_recurrence(const std::vector<routing::TimeInterval>& intervals,
                             routing::Silence& silence);

/// Begin to end where neither an end nor a duration is given; nullopt: it must name one.
[[nodiscard]] std::optional<core::Duration> usual_length(const routing::Silence& silence);

}  // namespace tocsin::app
