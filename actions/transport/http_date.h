// Dates of HTTP, in all the forms that a receiver must read (RFC 9110 §5.6.7). Internal to actions.
#pragma once

#include <optional>
#include <string_view>

#include "core/time.h"

namespace tocsin::actions {

/// IMF-fixdate "Sun, 06 Nov 1994 08:49:37 GMT", RFC 850 "Sunday, 06-Nov-94 08:49:37 GMT", asctime
/// "Sun Nov  6 08:49:37 1994"; all are UTC. The name of the day is not checked. A year of two digits
/// that lies more than 50 years behind `now` is one of the past century. nullopt: none of them.
std::optional<core::WallTime> parse_http_date(std::string_view text, core::WallTime now);

}  // namespace tocsin::actions
