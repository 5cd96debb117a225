// MQTT by libmosquitto: one connection and the one thread that turns the library's loop.
#include <mosquitto.h>
#include <mqtt_protocol.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <thread>

#include "actions/mqtt_client.h"

namespace tocsin::actions {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kFirstReconnect{100};
constexpr milliseconds kLongestReconnect{10'000};
constexpr int kLoopMilliseconds = 100;

// A list of MQTT v5 properties, freed with its scope.
class Properties {
 public:
  Properties() = default;
  ~Properties() { mosquitto_property_free_all(&list_); }
  Properties(const Properties&) = delete;
  Properties& operator=(const Properties&) = delete;
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

class MosquittoClient final : public MqttClient {
 public:
  explicit MosquittoClient(MqttOptions options) : options_(std::move(options)) {}

  // What can fail of the construction.
  core::Status start() {
    handle_ = mosquitto_new(options_.client_id.c_str(), /*clean_session=*/false, this);
    if (handle_ == nullptr) return core::invalid_argument("the client id is not usable");
    mosquitto_threaded_set(handle_, true);
    const bool v5 = options_.version == MqttVersion::v5;
    mosquitto_int_option(handle_, MOSQ_OPT_PROTOCOL_VERSION,
                         v5 ? MQTT_PROTOCOL_V5 : MQTT_PROTOCOL_V311);
    mosquitto_connect_v5_callback_set(handle_, on_connect);
    mosquitto_disconnect_v5_callback_set(handle_, on_disconnect);
    mosquitto_publish_v5_callback_set(handle_, on_publish);
    if (options_.tls) {
      const auto file = [](const std::string& path) {
        return path.empty() ? nullptr : path.c_str();
      };
      const char* folder = options_.ca_file.empty() ? "/etc/ssl/certs" : nullptr;
      if (mosquitto_tls_set(handle_, file(options_.ca_file), folder, file(options_.cert_file),
                            file(options_.key_file), nullptr) != MOSQ_ERR_SUCCESS) {
        return core::invalid_argument("a TLS file cannot be read");
      }
    }
    if (!options_.status_topic.empty()) set_will(v5);
    thread_ = std::jthread([this](const std::stop_token& stop) { turn(stop); });
    return core::ok();
  }

  ~MosquittoClient() override {
    if (thread_.joinable()) {
      if (connected() && !options_.status_topic.empty()) {
        // An orderly end sends no will: say so ourselves.
        MqttMessage offline{options_.status_topic, "offline", 1, true, "", 0, {}};
        (void)publish(offline, milliseconds(500));
      }
      thread_.request_stop();
      wake_.notify_all();
      mosquitto_disconnect(handle_);
      thread_.join();
    }
    if (handle_ != nullptr) mosquitto_destroy(handle_);
  }

  MqttResult publish(const MqttMessage& message, milliseconds timeout) override {
    const auto deadline = Clock::now() + timeout;
    {
      std::unique_lock lock(mutex_);
      if (!wake_.wait_until(lock, deadline, [&] { return connected_ || refusal_ != 0; })) {
        return {MqttFailure::unreachable, 0, connect_error_};
      }
      if (!connected_) return {MqttFailure::login, refusal_, mosquitto_reason_string(refusal_)};
    }
    Properties properties;
    if (options_.version == MqttVersion::v5) {
      if (!message.content_type.empty())
        properties.add(MQTT_PROP_CONTENT_TYPE, message.content_type);
      if (message.expiry_seconds > 0) {
        properties.add(MQTT_PROP_MESSAGE_EXPIRY_INTERVAL, message.expiry_seconds);
      }
      for (const auto& [name, value] : message.user_properties) properties.add(name, value);
    }
    int mid = 0;
    const int rc = mosquitto_publish_v5(
        handle_, &mid, message.topic.c_str(), static_cast<int>(message.payload.size()),
        message.payload.data(), message.qos, message.retain, properties.get());
    if (rc == MOSQ_ERR_NO_CONN || rc == MOSQ_ERR_CONN_LOST) {
      if (message.qos == 0) return {MqttFailure::unreachable, 0, mosquitto_strerror(rc)};
    } else if (rc != MOSQ_ERR_SUCCESS) {
      return {MqttFailure::bad_message, 0, mosquitto_strerror(rc)};
    }
    return wait_for_answer(mid, deadline);
  }

 private:
  // The library keeps what was written and repeats it after a reconnect, so the wait goes on over a
  // short interruption.
  MqttResult wait_for_answer(int mid, Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    if (!wake_.wait_until(lock, deadline, [&] { return answers_.contains(mid); })) {
      given_up_.insert(mid);
      return {MqttFailure::no_answer, 0, "no acknowledgement within the time"};
    }
    const int reason = answers_.at(mid);
    answers_.erase(mid);
    return {MqttFailure::none, reason, reason < 0x80 ? "" : mosquitto_reason_string(reason)};
  }

  bool connected() {
    const std::lock_guard lock(mutex_);
    return connected_;
  }

  void set_will(bool v5) {
    static constexpr std::string_view kOffline = "offline";
    Properties properties;
    if (v5) properties.add(MQTT_PROP_WILL_DELAY_INTERVAL, 10);
    mosquitto_will_set_v5(handle_, options_.status_topic.c_str(), static_cast<int>(kOffline.size()),
                          kOffline.data(), 1, true, v5 ? properties.release() : nullptr);
  }

  int connect() {
    if (!options_.username.empty()) {
      const auto password =
          options_.password ? options_.password() : core::Result<std::string>(std::string());
      if (!password) {
        const std::lock_guard lock(mutex_);
        connect_error_ = password.error().message;
        refusal_ = MQTT_RC_BAD_USERNAME_OR_PASSWORD;
        wake_.notify_all();
        return MOSQ_ERR_AUTH;
      }
      mosquitto_username_pw_set(handle_, options_.username.c_str(), password->c_str());
    }
    Properties properties;
    if (options_.version == MqttVersion::v5) {
      properties.add(MQTT_PROP_SESSION_EXPIRY_INTERVAL, options_.session_expiry_seconds);
    }
    const int rc = mosquitto_connect_bind_v5(
        handle_, options_.host.c_str(), static_cast<int>(options_.port),
        static_cast<int>(options_.keepalive_seconds), nullptr, properties.get());
    if (rc != MOSQ_ERR_SUCCESS) {
      const std::lock_guard lock(mutex_);
      connect_error_ = "cannot connect to " + options_.host + ":" + std::to_string(options_.port) +
                       ": " + mosquitto_strerror(rc);
    }
    return rc;
  }

  void turn(const std::stop_token& stop) {
    milliseconds pause = kFirstReconnect;
    while (!stop.stop_requested()) {
      int rc = connect();
      while (rc == MOSQ_ERR_SUCCESS && !stop.stop_requested()) {
        rc = mosquitto_loop(handle_, kLoopMilliseconds, 1);
        if (connected()) pause = kFirstReconnect;
      }
      std::unique_lock lock(mutex_);
      connected_ = false;
      if (stop.stop_requested()) return;
      wake_.wait_for(lock, pause, [&] { return stop.stop_requested(); });
      pause = std::min(pause * 2, kLongestReconnect);
    }
  }

  static void on_connect(mosquitto*, void* user, int reason, int,
                         const mosquitto_property*) noexcept {
    auto& self = *static_cast<MosquittoClient*>(user);
    {
      const std::lock_guard lock(self.mutex_);
      self.connected_ = reason == 0;
      self.refusal_ = reason;
    }
    self.wake_.notify_all();
    if (reason != 0 || self.options_.status_topic.empty()) return;
    int mid = 0;
    mosquitto_publish_v5(self.handle_, &mid, self.options_.status_topic.c_str(), 6, "online", 1,
                         true, nullptr);
    const std::lock_guard lock(self.mutex_);
    self.given_up_.insert(mid);
  }

  static void on_disconnect(mosquitto*, void* user, int, const mosquitto_property*) noexcept {
    auto& self = *static_cast<MosquittoClient*>(user);
    const std::lock_guard lock(self.mutex_);
    self.connected_ = false;
    self.connect_error_ = "the connection was lost";
  }

  static void on_publish(mosquitto*, void* user, int mid, int reason,
                         const mosquitto_property*) noexcept {
    auto& self = *static_cast<MosquittoClient*>(user);
    {
      const std::lock_guard lock(self.mutex_);
      if (self.given_up_.erase(mid) > 0) return;
      self.answers_[mid] = reason;
    }
    self.wake_.notify_all();
  }

  MqttOptions options_;
  mosquitto* handle_ = nullptr;
  std::mutex mutex_;  // guards the rest
  std::condition_variable wake_;
  bool connected_ = false;
  int refusal_ = 0;  // reason of the last CONNACK that refused
  std::string connect_error_ = "not connected yet";
  std::map<int, int> answers_;  // message id → reason
  std::set<int> given_up_;      // ids whose answer nobody waits for
  std::jthread thread_;
};

class Connector final : public MqttConnector {
 public:
  core::Result<std::unique_ptr<MqttClient>> connect(const MqttOptions& options) override {
    static const int once = mosquitto_lib_init();
    (void)once;
    auto client = std::make_unique<MosquittoClient>(options);
    if (const auto started = client->start(); !started) return started.error();
    return std::unique_ptr<MqttClient>(std::move(client));
  }
};

}  // namespace

std::unique_ptr<MqttConnector> mosquitto_connector() { return std::make_unique<Connector>(); }

}  // namespace tocsin::actions
