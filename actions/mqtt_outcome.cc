// MQTT topics, and what a broker's answer means for a delivery: pure.
#include <array>
#include <cstdio>

#include "actions/mqtt_client.h"

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

void append_escaped(std::string& out, std::string_view level) {
  static constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (level.empty()) out += '_';
  for (std::size_t i = 0; i < level.size(); ++i) {
    const auto c = static_cast<unsigned char>(level[i]);
    const bool plain = c >= 0x20 && c != 0x7F && c != '+' && c != '#' && c != '/' && c != '%' &&
                       !(c == '$' && i == 0);
    if (plain) {
      out += level[i];
      continue;
    }
    out += '%';
    out += kDigits[c >> 4U];
    out += kDigits[c & 0xFU];
  }
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
  std::string out;
  for (std::size_t i = 0; i < pattern.size();) {
    if (pattern[i] != '{') {
      out += pattern[i++];
      continue;
    }
    const std::size_t first = pattern.find_first_not_of('{', i);
    const std::size_t end = pattern.find('}', i);
    append_escaped(out, value(pattern.substr(first, end - first)));
    i = pattern.find_first_not_of('}', end);
    if (i == std::string_view::npos) i = pattern.size();
  }
  return out;
}

std::string topic_problem(std::string_view pattern) {
  if (pattern.empty()) return "expected a topic";
  if (pattern.size() > 1000) return "a topic pattern has at most 1000 bytes";
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
    if (static_cast<unsigned char>(c) < 0x20) return "a topic has no control characters";
    if (c != '{') continue;
    const std::size_t braces = pattern.substr(i).starts_with("{{") ? 2 : 1;
    const std::size_t end = pattern.find('}', i);
    const std::string_view name =
        end == std::string_view::npos ? "" : pattern.substr(i + braces, end - i - braces);
    if (name.empty() || name.find_first_of("{/ ") != std::string_view::npos) {
      return "expected {name}, such as {job} or {rule}";
    }
    if (!pattern.substr(end).starts_with(braces == 2 ? "}}" : "}")) return "{{ is closed by }}";
    i = end + braces - 1;
  }
  return level_empty ? "a topic has no empty levels" : "";
}

}  // namespace tocsin::actions
