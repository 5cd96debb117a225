// Port: publishing to an MQTT broker, and what the answer means for a delivery. Internal to
// actions.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/action.h"
#include "core/result.h"

namespace tocsin::actions {

enum class MqttVersion { v5, v311 };

struct MqttOptions {
  std::string host = "localhost";
  std::uint32_t port = 1883;
  MqttVersion version = MqttVersion::v5;
  std::string client_id;
  std::string username;
  /// Asked before each connection, so that a rotated password is used; null: none.
  std::function<core::Result<std::string>()> password;
  bool tls = false;
  std::string ca_file;
  std::string cert_file;
  std::string key_file;
  std::uint32_t keepalive_seconds = 30;
  std::uint32_t session_expiry_seconds = 3600;
  /// Retained "online" after connecting, "offline" as last will; empty: neither.
  std::string status_topic;
  /// Whether this process may be connected now, asked all the time: the routers of one cluster have
  /// one client id, and only the leader uses it. null: always.
  std::function<bool()> wanted;
};

struct MqttMessage {
  std::string topic;
  std::string payload;
  int qos = 1;
  bool retain = false;
  std::string content_type;
  std::uint32_t expiry_seconds = 0;  // 0: never
  bool smallest = false;             // it cannot be made shorter
  std::vector<std::pair<std::string, std::string>> user_properties;
};

enum class MqttFailure {
  none,         // acknowledged (QoS 1, 2) or written (QoS 0); `reason` from the acknowledgement
  bad_message,  // the library does not take it, or the broker closes the connection on it
  too_large,    // larger than the broker takes, as it has announced or shown
  no_retain,    // the broker keeps no retained messages
  unreachable,  // no connection within the time
  login,        // the broker refuses the connection: user, password, client id, certificate
  no_answer,    // written, no acknowledgement within the time
};

struct MqttResult {
  MqttFailure failure = MqttFailure::none;
  int reason = 0;  // MQTT v5 reason code
  std::string detail;
};

/// A connection that is kept and made again by itself. Thread-safe.
class MqttClient {
 public:
  virtual ~MqttClient() = default;
  /// Sends them in this order, several at a time, and waits for the answers: one result each. One
  /// that is not taken keeps back no other. Blocks at most `timeout`.
  virtual std::vector<MqttResult> publish(std::span<const MqttMessage> messages,
                                          std::chrono::milliseconds timeout) = 0;
};

class MqttConnector {
 public:
  virtual ~MqttConnector() = default;
  /// Begins to connect and returns; invalid_argument: options that can never work.
  virtual core::Result<std::unique_ptr<MqttClient>> connect(const MqttOptions& options) = 0;
};

/// The libmosquitto adapter; each client owns the one thread that turns the library's loop.
std::unique_ptr<MqttConnector> mosquitto_connector();

/// docs/actions/mqtt.md: reasons below 0x80 delivered (0x10 says nobody subscribes);
/// 0x87 configuration; 0x90, 0x95, 0x99 bad payload; 0x96, 0x97 throttled; others transient.
core::AttemptOutcome classify(const MqttResult& result, int qos);

/// libmosquitto takes no topic with more.
inline constexpr std::size_t kMaxTopicLevels = 200;
inline constexpr std::size_t kMaxTopicBytes = 65'535;

/// Fills {name} (or {{name}}) by `value`. Each value is one level: + # / %, control characters,
/// code points that are no characters, what is no UTF-8 and a leading $ become %XX, an empty value
/// "_". Different values make different levels. A topic of more than 65535 bytes has its long
/// values cut, with "~" and a hash of the whole at their end.
std::string fill_topic(std::string_view pattern,
                       const std::function<std::string(std::string_view)>& value);
/// What is wrong with a topic pattern, empty if nothing: braces, wildcards, empty levels, length.
/// A pattern of at most kMaxTopicLevels levels.
std::string topic_problem(std::string_view pattern);

}  // namespace tocsin::actions
