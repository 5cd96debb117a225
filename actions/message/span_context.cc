#include "actions/message/span_context.h"

#include <algorithm>
#include <span>

#include "core/identity.h"

namespace tocsin::actions {
namespace {

constexpr std::size_t kTraceBytes = 16;
constexpr std::size_t kSpanBytes = 8;

bool is_lower_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool all_zero(std::string_view text) { return text.find_first_not_of('0') == text.npos; }

/// The parts by lengths, so that no two of them can be read in two ways.
std::string hashed(std::size_t bytes, std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) {
    text += std::to_string(part.size());
    text += ':';
    text += part;
  }
  const auto digest = core::sha256(text);
  return core::hex(std::span(digest).first(bytes));
}

}  // namespace

std::optional<SpanContext> parse_traceparent(std::string_view text) {
  // 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
  constexpr std::size_t kLength = 55;
  if (text.size() < kLength || text[2] != '-' || text[35] != '-' || text[52] != '-') {
    return std::nullopt;
  }
  const std::string_view version = text.substr(0, 2);
  const std::string_view trace = text.substr(3, 32);
  const std::string_view parent = text.substr(36, 16);
  const std::string_view flags = text.substr(53, 2);
  if (!is_lower_hex(version) || version == "ff" || !is_lower_hex(trace) || all_zero(trace) ||
      !is_lower_hex(parent) || all_zero(parent) || !is_lower_hex(flags)) {
    return std::nullopt;
  }
  // A later version may have more behind a dash; this one may not.
  if (text.size() > kLength && (version == "00" || text[kLength] != '-')) return std::nullopt;
  const char last = flags[1];
  const int bits = last <= '9' ? last - '0' : last - 'a' + 10;
  return SpanContext{std::string(trace), std::string(parent), (bits & 1) != 0};
}

SpanContext context_of(std::string_view traceparent, std::string_view issue_key,
                       std::uint64_t episode) {
  if (auto given = parse_traceparent(traceparent)) return std::move(*given);
  return {hashed(kTraceBytes, {"trace", issue_key, std::to_string(episode)}), "", true};
}

std::optional<SpanContext> context_of(const core::Listing& listing) {
  if (auto given = parse_traceparent(listing.traceparent)) return given;
  if (listing.issues.empty()) return std::nullopt;
  return context_of("", listing.issues.front().issue_key, listing.issues.front().episode);
}

std::string event_span(std::string_view event_id) {
  return hashed(kSpanBytes, {"event", event_id});
}

std::string message_span(std::string_view notification_id) {
  return hashed(kSpanBytes, {"message", notification_id});
}

std::string attempt_span(std::string_view notification_id, std::uint32_t attempt) {
  return hashed(kSpanBytes, {"attempt", notification_id, std::to_string(attempt)});
}

std::string traceparent_to(const core::Notification& notification) {
  const auto context = context_of(core::listing_of(notification));
  if (!context) return {};
  return "00-" + context->trace + "-" + message_span(notification.notification_id) +
         (context->sampled ? "-01" : "-00");
}

}  // namespace tocsin::actions
