// MQTT topics, and what a broker's answer means for a delivery: pure.
#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

#include "actions/transport/mqtt_client.h"
#include "core/identity.h"
#include "core/text.h"

namespace tocsin::actions {

using core::OutcomeClass;

namespace {

OutcomeClass class_of_reason(int reason) {
  if (reason < 0x80) return OutcomeClass::delivered;
  switch (reason) {
    case 0x87:  // not authorized
      return OutcomeClass::configuration;
    case 0x90:  // topic name invalid
    case 0x95:  // packet too large
    case 0x99:  // payload format invalid
    case 0x9A:  // retain not supported
    case 0x9B:  // QoS not supported
      return OutcomeClass::bad_payload;
    case 0x96:  // message rate too high
    case 0x97:  // quota exceeded
      return OutcomeClass::throttled;
    default:
      return OutcomeClass::transient;
  }
}

std::string hex_code(const char* what, int reason) {
  std::array<char, 40> out{};
  std::snprintf(out.data(), out.size(), "%s 0x%02x", what, static_cast<unsigned>(reason));
  return out.data();
}

/// May the text of a packet have it (MQTT 5.0, 1.5.4)? Neither control characters nor what is no
/// character.
bool is_mqtt_text(char32_t point) {
  if (point < 0x20 || (point >= 0x7F && point <= 0x9F)) return false;
  return !((point >= 0xFDD0 && point <= 0xFDEF) || (point & 0xFFFEU) == 0xFFFE);
}

/// Of a value: what may stand as it is.
bool plain(char32_t point, bool first) {
  if (!is_mqtt_text(point)) return false;
  if (point == '+' || point == '#' || point == '/' || point == '%') return false;
  return !(first && point == '$');
}

/// The code point at the beginning of `text`, valid UTF-8, and its bytes.
std::pair<char32_t, std::size_t> first_point(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  const std::size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  char32_t point = size == 1 ? lead : lead & (0x7FU >> size);
  for (std::size_t i = 1; i < size; ++i) point = point << 6U | (byte(i) & 0x3FU);
  return {point, size};
}

/// At the beginning of `text`: how many bytes belong together, and whether they may stand as they
/// are.
std::pair<std::size_t, bool> next_unit(std::string_view text, std::size_t valid, bool first) {
  if (valid == 0) return {1, false};
  const auto [point, size] = first_point(text);
  return {size, plain(point, first)};
}

std::string escaped(std::string_view level) {
  static constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (level.empty()) return "_";
  if (level == "_") return "%5F";
  std::string out;
  std::size_t valid = core::first_invalid_utf8(level).value_or(level.size());
  for (std::size_t i = 0; i < level.size();) {
    if (i > valid) {
      const auto next = core::first_invalid_utf8(level.substr(i));
      valid = next ? i + *next : level.size();
    }
    const auto [size, stays] = next_unit(level.substr(i), valid - i, i == 0);
    for (const char c : level.substr(i, size)) {
      if (stays) {
        out += c;
        continue;
      }
      out += '%';
      out += kDigits[static_cast<unsigned char>(c) >> 4U];
      out += kDigits[static_cast<unsigned char>(c) & 0xFU];
    }
    i += size;
  }
  return out;
}

/// At most kShortLevel bytes, and still another one for another value.
std::string shortened(std::string level, std::string_view value) {
  constexpr std::size_t kShortLevel = 128;
  if (level.size() <= kShortLevel) return level;
  const std::string hash = core::make_id("~", {std::string(value)});
  std::string_view kept = core::cut_utf8(level, kShortLevel - hash.size());
  // No half of a %XX.
  if (const auto at = kept.rfind('%'); at != std::string_view::npos && at + 3 > kept.size()) {
    kept = kept.substr(0, at);
  }
  return std::string(kept) + hash;
}

std::string filled(std::string_view pattern, bool cut,
                   const std::function<std::string(std::string_view)>& value) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size();) {
    if (pattern[i] != '{') {
      out += pattern[i++];
      continue;
    }
    const std::size_t first = pattern.find_first_not_of('{', i);
    const std::size_t end = pattern.find('}', i);
    const std::string text = value(pattern.substr(first, end - first));
    out += cut ? shortened(escaped(text), text) : escaped(text);
    i = pattern.find_first_not_of('}', end);
    if (i == std::string_view::npos) i = pattern.size();
  }
  return out;
}

}  // namespace

core::AttemptOutcome classify(const MqttResult& result, int qos) {
  core::AttemptOutcome out;
  out.detail = result.detail;
  switch (result.failure) {
    case MqttFailure::none:
      out.outcome = class_of_reason(result.reason);
      out.confirmed = qos > 0;
      out.code = qos == 0 ? "sent" : hex_code(qos == 1 ? "puback" : "pubcomp", result.reason);
      if (result.reason == 0x10) out.detail = "nobody is subscribed to the topic";
      break;
    case MqttFailure::bad_message:
      out.outcome = OutcomeClass::bad_payload;
      out.code = "bad_message";
      break;
    case MqttFailure::too_large:
      out.outcome = OutcomeClass::bad_payload;
      out.code = "too_large";
      break;
    case MqttFailure::no_retain:
      out.outcome = OutcomeClass::configuration;
      out.code = "no_retain";
      break;
    case MqttFailure::unreachable:
      out.outcome = OutcomeClass::transient;
      out.code = "unreachable";
      break;
    case MqttFailure::login:
      out.outcome = OutcomeClass::configuration;
      out.code = hex_code("connack", result.reason);
      break;
    case MqttFailure::no_answer:
      out.outcome = OutcomeClass::unknown;
      out.code = "no_answer";
      break;
  }
  return out;
}

std::string fill_topic(std::string_view pattern,
                       const std::function<std::string(std::string_view)>& value) {
  std::string out = filled(pattern, false, value);
  return out.size() <= kMaxTopicBytes ? out : filled(pattern, true, value);
}

namespace {

// Where the {name} or {{name}} that begins at `i` ends; nullopt: there is no name; npos: {{ is not closed by }}.
std::optional<std::size_t> placeholder_end(std::string_view pattern, std::size_t i) {
  const std::size_t braces = pattern.substr(i).starts_with("{{") ? 2 : 1;
  const std::size_t end = pattern.find('}', i);
  const std::string_view name =
      end == std::string_view::npos ? "" : pattern.substr(i + braces, end - i - braces);
  if (name.empty() || name.find_first_of("{/ ") != std::string_view::npos) return std::nullopt;
  if (!pattern.substr(end).starts_with(braces == 2 ? "}}" : "}")) return std::string_view::npos;
  return end + braces - 1;
}

}  // namespace

std::string topic_problem(std::string_view pattern) {
  if (pattern.empty()) return "expected a topic";
  if (pattern.size() > 1000) return "a topic pattern has at most 1000 bytes";
  if (static_cast<std::size_t>(std::count(pattern.begin(), pattern.end(), '/')) >=
      kMaxTopicLevels) {
    return "a topic has at most 200 levels";
  }
  if (core::first_invalid_utf8(pattern)) return "a topic is UTF-8";
  for (std::string_view rest = pattern; !rest.empty();) {
    const auto [point, size] = first_point(rest);
    if (!is_mqtt_text(point)) return "a topic has no control characters and no U+FFFE and the like";
    rest.remove_prefix(size);
  }
  bool level_empty = true;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '/') {
      if (level_empty) return "a topic has no empty levels";
      level_empty = true;
      continue;
    }
    level_empty = false;
    if (c == '+' || c == '#') return "a topic to publish to has no wildcards + and #";
    if (c == '}') return "} without {";
    if (c != '{') continue;
    const auto end = placeholder_end(pattern, i);
    if (!end) return "expected {name}, such as {job} or {rule}";
    if (*end == std::string_view::npos) return "{{ is closed by }}";
    i = *end;
  }
  return level_empty ? "a topic has no empty levels" : "";
}

}  // namespace tocsin::actions
