// What is stored in the outbox and sent by every attempt: body, its type, and the fields that frame
// it (subject, topic, …). Never a credential. Internal to actions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/notification.h"
#include "core/result.h"

namespace tocsin::actions {

struct Rendered {
  std::string content_type;
  std::string body;
  std::vector<std::pair<std::string, std::string>> fields;

  [[nodiscard]] std::string field(std::string_view name) const;
};

/// What `form` makes of the notification; its short form when that has more than `limit` bytes.
template <typename Form>
Rendered fitting(const core::Notification& notification, std::uint64_t limit, const Form& form) {
  Rendered out = form(notification);
  if (out.body.size() <= limit || notification.minimal) return out;
  core::Notification small = notification;
  small.minimal = true;
  return form(small);
}

/// A line of JSON with content type and fields, and behind it the body as it is.
std::string stored(const Rendered& rendered);
/// More than any message: max_payload in its escaped form.
inline constexpr std::size_t kMaxRendered = std::size_t{16} << 20U;

/// Also reads what once was stored, one JSON object. invalid_argument: neither, too deep or too
/// large.
core::Result<Rendered> parse_rendered(std::string_view stored);

}  // namespace tocsin::actions
