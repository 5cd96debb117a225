#include "actions/transport/mqtt_packet.h"

#include <algorithm>

namespace tocsin::actions {
namespace {

constexpr std::size_t kMaxSizes = 64;  // of messages with strikes

/// Bytes of a variable byte integer (MQTT 5.0, 1.5.5).
std::size_t length_of(std::size_t value) {
  std::size_t bytes = 1;
  for (; value >= 128; value /= 128) ++bytes;
  return bytes;
}

/// Properties of the packet as mosquitto_client.cc sets them.
std::size_t property_bytes(const MqttMessage& message) {
  std::size_t sum = 0;
  if (!message.content_type.empty()) sum += 3 + message.content_type.size();
  if (message.expiry_seconds > 0) sum += 5;
  for (const auto& [name, value] : message.user_properties) sum += 5 + name.size() + value.size();
  return sum;
}

}  // namespace

std::size_t packet_bytes(const MqttMessage& message, MqttVersion version) {
  std::size_t rest = 2 + message.topic.size() + (message.qos > 0 ? 2 : 0) + message.payload.size();
  if (version == MqttVersion::v5) {
    const std::size_t properties = property_bytes(message);
    rest += length_of(properties) + properties;
  }
  return 1 + length_of(rest) + rest;
}

void PacketLimit::taken(std::size_t bytes) {
  largest_taken_ = std::max(largest_taken_, bytes);
  if (learned_ && bytes >= *learned_) learned_.reset();
  strikes_.erase(bytes);
}

bool PacketLimit::closed_on(std::size_t bytes, core::Duration now) {
  if (strikes_.size() >= kMaxSizes && !strikes_.contains(bytes)) strikes_.clear();
  if (++strikes_[bytes] < kStrikes) return false;
  strikes_.erase(bytes);
  // Larger ones arrived: this one has another fault than its size.
  if (bytes > largest_taken_) {
    const bool known = learned_ && now - learned_at_ < kRemembered;
    learned_ = known ? std::min(*learned_, bytes) : bytes;
    learned_at_ = now;
  }
  return true;
}

bool PacketLimit::refuses(std::size_t bytes, bool smallest, core::Duration now) const {
  if (announced_ > 0 && bytes > announced_) return true;
  const auto bound = too_large(now);
  return !smallest && bound && bytes >= *bound;
}

std::optional<std::size_t> PacketLimit::too_large(core::Duration now) const {
  std::optional<std::size_t> out;
  if (announced_ > 0) out = announced_ + 1;
  if (learned_ && now - learned_at_ < kRemembered)
    out = std::min(out.value_or(*learned_), *learned_);
  return out;
}

}  // namespace tocsin::actions
