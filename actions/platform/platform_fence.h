// Reading a fence: what comes from a hook may be anything, and becomes part of a URL. Pure; internal
// to actions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/time.h"
#include "core/value.h"

namespace tocsin::actions {

/// A whole number, also one that was written as a text or as {"set": true, "number": 7}.
std::optional<std::int64_t> whole_at(const core::Value& value, std::string_view key);

/// A name as Kubernetes takes it (RFC 1123 subdomain, at most 253 bytes).
bool is_dns_name(std::string_view text);
/// 1 … `most` characters of A-Z a-z 0-9 and `more`, and not a path of dots.
bool is_plain_name(std::string_view text, std::size_t most, std::string_view more);

/// A job that its platform made after the run's client had opened is another one. Clocks of two
/// machines are compared, so a little is allowed.
inline constexpr std::int64_t kClocksDiffer = 10;  // seconds
/// True: made in time, or the fence says nothing of it and `unknown` is true.
bool made_before_opening(std::int64_t made_seconds, const core::Value& fence, bool unknown);

/// RFC 3339 → seconds since 1970; nullopt: no time.
std::optional<std::int64_t> seconds_of(std::string_view rfc3339);
std::string time_text(std::int64_t seconds);

}  // namespace tocsin::actions
