#include "actions/transport/mosquitto_properties.h"

namespace tocsin::actions {

MosquittoProperties publish_properties(const MqttMessage& message, MqttVersion version) {
  MosquittoProperties out;
  if (version != MqttVersion::v5) return out;
  if (!message.content_type.empty()) out.add(MQTT_PROP_CONTENT_TYPE, message.content_type);
  if (message.expiry_seconds > 0) {
    out.add(MQTT_PROP_MESSAGE_EXPIRY_INTERVAL, message.expiry_seconds);
  }
  for (const auto& [name, value] : message.user_properties) out.add(name, value);
  return out;
}

BrokerLimits limits_of(const mosquitto_property* connack) {
  BrokerLimits out;
  std::uint32_t bytes = 0;
  if (mosquitto_property_read_int32(connack, MQTT_PROP_MAXIMUM_PACKET_SIZE, &bytes, false) !=
      nullptr) {
    out.packet_bytes = bytes;
  }
  std::uint8_t byte = 0;
  if (mosquitto_property_read_byte(connack, MQTT_PROP_MAXIMUM_QOS, &byte, false) != nullptr) {
    out.qos = byte;
  }
  if (mosquitto_property_read_byte(connack, MQTT_PROP_RETAIN_AVAILABLE, &byte, false) != nullptr) {
    out.retains = byte != 0;
  }
  return out;
}

}  // namespace tocsin::actions
