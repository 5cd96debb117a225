// Properties of MQTT 5 by libmosquitto. Internal to actions.
#pragma once

#include <mosquitto.h>
#include <mqtt_protocol.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "actions/transport/mqtt_client.h"

namespace tocsin::actions {

/// A list of MQTT v5 properties, freed with its scope.
class MosquittoProperties {
 public:
  MosquittoProperties() = default;
  ~MosquittoProperties() { mosquitto_property_free_all(&list_); }
  MosquittoProperties(MosquittoProperties&& other) noexcept : list_(other.release()) {}
  MosquittoProperties(const MosquittoProperties&) = delete;
  MosquittoProperties& operator=(const MosquittoProperties&) = delete;
  void add(int id, std::uint32_t value) { mosquitto_property_add_int32(&list_, id, value); }
  void add(int id, const std::string& value) {
    mosquitto_property_add_string(&list_, id, value.c_str());
  }
  void add(const std::string& name, const std::string& value) {
    mosquitto_property_add_string_pair(&list_, MQTT_PROP_USER_PROPERTY, name.c_str(),
                                       value.c_str());
  }
  [[nodiscard]] const mosquitto_property* get() const { return list_; }
  mosquitto_property* release() { return std::exchange(list_, nullptr); }

 private:
  mosquitto_property* list_ = nullptr;
};

/// Those of a message; none in MQTT 3.1.1.
MosquittoProperties publish_properties(const MqttMessage& message, MqttVersion version);

/// What a CONNACK says of the broker; what it leaves out is no limit.
struct BrokerLimits {
  std::size_t packet_bytes = 0;  // 0: none
  int qos = 2;
  bool retains = true;
};
BrokerLimits limits_of(const mosquitto_property* connack);

}  // namespace tocsin::actions
