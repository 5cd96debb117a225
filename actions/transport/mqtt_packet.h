// How large a PUBLISH packet is, and how large a broker lets it be. Pure; internal to actions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "actions/transport/mqtt_client.h"
#include "core/time.h"

namespace tocsin::actions {

/// Bytes of the PUBLISH packet of this message, with its fixed header.
std::size_t packet_bytes(const MqttMessage& message, MqttVersion version);

/// What a broker takes: announced (MQTT 5), or learned, because a broker of MQTT 3.1.1 says nothing
/// and closes the connection. `now` is steady time. One owner.
class PacketLimit {
 public:
  /// Times that the broker must close the connection on one message, sent alone, before the message
  /// is at fault and not the connection.
  static constexpr std::uint32_t kStrikes = 3;
  /// A learned limit is tried again after this time: somebody may have raised it.
  static constexpr core::Duration kRemembered = std::chrono::hours(1);

  /// By the CONNACK of this connection; 0: it announces none.
  void announced(std::size_t bytes) { announced_ = bytes; }
  /// A message of this size was acknowledged: what was learned of smaller ones is wrong.
  void taken(std::size_t bytes);
  /// The broker closed the connection on a message of this size, sent alone. True: so often that
  /// the message is not sent again.
  bool closed_on(std::size_t bytes, core::Duration now);
  /// May a message of this size not be sent? One that cannot be made smaller is tried in spite of
  /// what was learned.
  [[nodiscard]] bool refuses(std::size_t bytes, bool smallest, core::Duration now) const;
  /// The smallest size known as too large; nullopt: none.
  [[nodiscard]] std::optional<std::size_t> too_large(core::Duration now) const;

 private:
  std::size_t announced_ = 0;
  std::size_t largest_taken_ = 0;
  std::optional<std::size_t> learned_;
  core::Duration learned_at_{};
  std::map<std::size_t, std::uint32_t> strikes_;  // by size
};

}  // namespace tocsin::actions
