#include "app/api/inbound_event.h"

#include <algorithm>

#include "app/serve/session_table.h"
#include "core/identity.h"
#include "core/json.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using core::Value;
using Kind = InboundEvent::Kind;

constexpr std::size_t kLongestWho = 200;
constexpr std::size_t kGroupHash = 64;      // hexadecimal digits
constexpr std::size_t kMostSignatures = 8;  // a rotation has two

const Value kNoValue;

const Value& member(const Value& of, const char* name) {
  const Value* found = core::find(of, name);
  return found == nullptr ? kNoValue : *found;
}

std::string group_hash_of(const std::string& text) {
  const bool ours =
      text.size() == kGroupHash && text.find_first_not_of("0123456789abcdef") == std::string::npos;
  return ours ? text : std::string();
}

std::string hex(const std::array<std::uint8_t, 32>& bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const std::uint8_t byte : bytes) out += {kDigits[byte >> 4U], kDigits[byte & 15U]};
  return out;
}

// Hashes are compared, so that the time it takes tells nothing of the signature.
bool same_text(std::string_view given, std::string_view wanted) {
  return core::sha256(given) == core::sha256(wanted);
}

}  // namespace

bool has_pagerduty_signature(std::string_view header, std::string_view secret,
                             std::string_view body) {
  const std::string wanted = "v1=" + hex(keyed_hash(secret, body));
  bool out = false;
  for (std::size_t i = 0; i < kMostSignatures && !header.empty(); ++i) {
    const std::size_t comma = std::min(header.find(','), header.size());
    std::string_view one = header.substr(0, comma);
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    out = same_text(one, wanted) || out;
    header.remove_prefix(std::min(comma + 1, header.size()));
  }
  return out;
}

core::Result<InboundEvent> read_pagerduty_hook(std::string_view body) {
  const auto read = core::parse_json(body, kMostOfAHook);
  if (!read) return read.error();
  const Value& event = member(*read, "event");
  const std::string type = core::text_at(event, "event_type");
  InboundEvent out;
  out.id = core::text_at(event, "id");
  if (out.id.empty() || type.empty())
    return core::invalid_argument("expected event.id and event.event_type");
  if (type == "incident.acknowledged") out.kind = Kind::acknowledged;
  if (type == "incident.unacknowledged") out.kind = Kind::unacknowledged;
  if (out.kind == Kind::other) return out;
  out.at = core::parse_rfc3339(core::text_at(event, "occurred_at"));
  if (!out.at) return core::invalid_argument("event.occurred_at: expected a time");
  out.group = group_hash_of(core::text_at(member(event, "data"), "incident_key"));
  out.by = core::visible(core::text_at(member(event, "agent"), "summary"), kLongestWho);
  return out;
}

core::Result<InboundEvent> read_jsm_hook(std::string_view body) {
  const auto read = core::parse_json(body, kMostOfAHook);
  if (!read) return read.error();
  const std::string action = core::text_at(*read, "action");
  if (action.empty()) return core::invalid_argument("expected action");
  InboundEvent out;
  if (action == "Acknowledge") out.kind = Kind::acknowledged;
  if (action == "UnAcknowledge") out.kind = Kind::unacknowledged;
  if (out.kind == Kind::other) return out;
  const Value& alert = member(*read, "alert");
  out.group = group_hash_of(core::text_at(alert, "alias"));
  out.by = core::visible(core::text_at(alert, "username"), kLongestWho);
  return out;
}

}  // namespace tocsin::app
