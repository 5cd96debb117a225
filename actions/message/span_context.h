// In which trace an issue is told, and by which identifiers its spans are known. All of them follow
// from what stands in the records: whoever computes them, and however often, gets the same.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/notification.h"

namespace tocsin::actions {

/// A place in a trace.
struct SpanContext {
  std::string trace;    // 32 hex digits
  std::string parent;   // 16 hex digits; empty: the trace begins here
  bool sampled = true;  // false: its producer does not record it
};

/// The header `traceparent` (W3C Trace Context, versions 00 to fe). nullopt: it is none.
std::optional<SpanContext> parse_traceparent(std::string_view text);

/// The context that a producer gave with its event, else a trace of the episode's own.
SpanContext context_of(std::string_view traceparent, std::string_view issue_key,
                       std::uint64_t episode);
/// Of the first issue that came with a context, else of the first. nullopt: no issue is listed.
std::optional<SpanContext> context_of(const core::Listing& listing);

std::string event_span(std::string_view event_id);
std::string message_span(std::string_view notification_id);
std::string attempt_span(std::string_view notification_id, std::uint32_t attempt);

/// `traceparent` for the far side of a message: what it does is a child of the message's span.
/// Empty: no issue is listed.
std::string traceparent_to(const core::Notification& notification);

}  // namespace tocsin::actions
