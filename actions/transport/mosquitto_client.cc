// MQTT by libmosquitto: one connection and the one thread that turns the library's loop.
#include <mosquitto.h>
#include <mqtt_protocol.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <stop_token>
#include <thread>

#include "actions/transport/mosquitto_properties.h"
#include "actions/transport/mqtt_client.h"
#include "actions/transport/mqtt_flights.h"
#include "actions/transport/mqtt_packet.h"
#include "core/mutex.h"

namespace tocsin::actions {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kFirstReconnect{100};
constexpr milliseconds kLongestReconnect{10'000};
constexpr milliseconds kLookAgain{200};
constexpr int kLoopMilliseconds = 100;

// Refusals that say nothing of our options: the broker may take us the next time.
bool passes(int refusal, bool v5) {
  if (!v5) return refusal == 3;  // server unavailable
  return refusal == MQTT_RC_UNSPECIFIED || refusal == MQTT_RC_SERVER_UNAVAILABLE ||
         refusal == MQTT_RC_SERVER_BUSY || refusal == MQTT_RC_QUOTA_EXCEEDED ||
         refusal == MQTT_RC_CONNECTION_RATE_EXCEEDED;
}

class MosquittoClient final : public MqttClient {
 public:
  explicit MosquittoClient(MqttOptions options) : options_(std::move(options)) {}

  // What can fail of the construction.
  core::Status start() {
    handle_ = mosquitto_new(options_.client_id.c_str(), /*clean_session=*/false, this);
    if (handle_ == nullptr) return core::invalid_argument("the client id is not usable");
    if (const auto status = configure(); !status) return status;
    thread_ = std::jthread([this](const std::stop_token& stop) { turn(stop); });
    return core::ok();
  }

  ~MosquittoClient() override {
    if (thread_.joinable()) {
      if (connected() && !options_.status_topic.empty()) {
        // An orderly end sends no will: say so ourselves.
        const MqttMessage offline{options_.status_topic, "offline", 1, true, "", 0, true, {}};
        (void)publish({&offline, 1}, milliseconds(500));
      }
      {
        // Else the loop may just have looked, and then sleeps through the call.
        const core::MutexLock lock(mutex_);
        thread_.request_stop();
      }
      wake_.notify_all();
      {
        const core::MutexLock lock(handle_mutex_);
        mosquitto_disconnect(handle_);
      }
      thread_.join();
    }
    if (handle_ != nullptr) mosquitto_destroy(handle_);
  }

  std::vector<MqttResult> publish(std::span<const MqttMessage> messages,
                                  milliseconds timeout) override {
    const auto deadline = Clock::now() + timeout;
    std::vector<MqttResult> out(messages.size());
    std::vector<std::size_t> left(messages.size());
    std::iota(left.begin(), left.end(), std::size_t{0});
    while (!left.empty()) {
      std::vector<std::pair<std::size_t, Ticket>> sent;
      for (const std::size_t i : left) {
        if (const auto ticket = send(messages[i], deadline, out[i])) sent.emplace_back(i, *ticket);
      }
      left.clear();
      for (const auto& [i, ticket] : sent) {
        // Lost with its connection: once more, until the broker has shown that it is at fault.
        if (!await(ticket, deadline, out[i])) left.push_back(i);
      }
    }
    return out;
  }

 private:
  using Ticket = MqttFlights::Ticket;

  core::Status configure() {
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
    return core::ok();
  }

  // Gives the message to the library. nullopt: `out` says why not.
  std::optional<Ticket> send(const MqttMessage& message, Clock::time_point deadline,
                             MqttResult& out) {
    const std::size_t bytes = packet_bytes(message, options_.version);
    MqttMessage fitting = message;
    {
      const core::MutexLock lock(mutex_);
      const auto may_send = [&]() REQUIRES(mutex_) {
        return (connected_ && flights_.room(steady())) || refusal_ != 0;
      };
      if (!wake_.wait_until(mutex_, deadline, may_send)) {
        out = {MqttFailure::unreachable, 0, connected_ ? "other messages wait" : connect_error_};
        return std::nullopt;
      }
      if (!connected_) {
        const bool later = passes(refusal_, options_.version == MqttVersion::v5);
        out = {later ? MqttFailure::unreachable : MqttFailure::login, refusal_,
               mosquitto_reason_string(refusal_)};
        return std::nullopt;
      }
      if (flights_.limit().refuses(bytes, message.smallest, steady())) {
        out = {MqttFailure::too_large, 0,
               std::to_string(bytes) + " bytes; the broker takes no packet of " +
                   std::to_string(flights_.limit().too_large(steady()).value_or(bytes)) + " bytes"};
        return std::nullopt;
      }
      if (message.retain && !keeps_retained_) {
        out = {MqttFailure::no_retain, 0, "the broker keeps no retained messages"};
        return std::nullopt;
      }
      fitting.qos = std::min(fitting.qos, most_qos_);
      flights_.reserve();
    }
    return hand_over(fitting, bytes, out);
  }

  std::optional<Ticket> hand_over(const MqttMessage& message, std::size_t bytes, MqttResult& out) {
    const MosquittoProperties properties = publish_properties(message, options_.version);
    int mid = 0;
    int rc = MOSQ_ERR_SUCCESS;
    // Whoever takes the library's queue away does it before this message or after it is known.
    const core::MutexLock handle(handle_mutex_);
    rc = mosquitto_publish_v5(handle_, &mid, message.topic.c_str(),
                              static_cast<int>(message.payload.size()), message.payload.data(),
                              message.qos, message.retain, properties.get());
    const core::MutexLock lock(mutex_);
    const bool kept = (rc == MOSQ_ERR_NO_CONN || rc == MOSQ_ERR_CONN_LOST) && message.qos > 0;
    if (rc == MOSQ_ERR_SUCCESS || kept) {
      return flights_.enter(mid, bytes);
    }
    flights_.release();
    wake_.notify_all();
    const bool gone = rc == MOSQ_ERR_NO_CONN || rc == MOSQ_ERR_CONN_LOST;
    const bool large = rc == MOSQ_ERR_OVERSIZE_PACKET || rc == MOSQ_ERR_PAYLOAD_SIZE;
    out = {gone    ? MqttFailure::unreachable
           : large ? MqttFailure::too_large
                   : MqttFailure::bad_message,
           0, mosquitto_strerror(rc)};
    return std::nullopt;
  }

  // The library keeps what was written and repeats it after a reconnect, so the wait goes on over a
  // short interruption. False: it was taken from the library, and may be sent once more.
  bool await(Ticket ticket, Clock::time_point deadline, MqttResult& out) {
    const core::MutexLock lock(mutex_);
    if (!wake_.wait_until(mutex_, deadline,
                          [&]() REQUIRES(mutex_) { return flights_.settled(ticket); })) {
      flights_.abandon(ticket);
      wake_.notify_all();
      out = {MqttFailure::no_answer, 0, "no acknowledgement within the time"};
      return true;
    }
    const MqttFlights::Flight flight = flights_.take(ticket);
    if (flight.reason) {
      out = {MqttFailure::none, *flight.reason,
             *flight.reason < 0x80 ? "" : mosquitto_reason_string(*flight.reason)};
      return true;
    }
    if (flight.refused) {
      out = {MqttFailure::too_large, 0,
             "the broker closes the connection on this message of " + std::to_string(flight.bytes) +
                 " bytes"};
      return true;
    }
    return false;
  }

  bool connected() {
    const core::MutexLock lock(mutex_);
    return connected_;
  }
  static core::Duration steady() { return Clock::now().time_since_epoch(); }

  void set_will(bool v5) {
    static constexpr std::string_view kOffline = "offline";
    MosquittoProperties properties;
    if (v5) properties.add(MQTT_PROP_WILL_DELAY_INTERVAL, 10);
    mosquitto_will_set_v5(handle_, options_.status_topic.c_str(), static_cast<int>(kOffline.size()),
                          kOffline.data(), 1, true, v5 ? properties.release() : nullptr);
  }

  int connect() {
    if (!options_.username.empty()) {
      const auto password =
          options_.password ? options_.password() : core::Result<std::string>(std::string());
      if (!password) {
        const core::MutexLock lock(mutex_);
        connect_error_ = password.error().message;
        refusal_ = MQTT_RC_BAD_USERNAME_OR_PASSWORD;
        wake_.notify_all();
        return MOSQ_ERR_AUTH;
      }
      mosquitto_username_pw_set(handle_, options_.username.c_str(), password->c_str());
    }
    MosquittoProperties properties;
    if (options_.version == MqttVersion::v5) {
      properties.add(MQTT_PROP_SESSION_EXPIRY_INTERVAL, options_.session_expiry_seconds);
    }
    const int rc = mosquitto_connect_bind_v5(
        handle_, options_.host.c_str(), static_cast<int>(options_.port),
        static_cast<int>(options_.keepalive_seconds), nullptr, properties.get());
    if (rc != MOSQ_ERR_SUCCESS) {
      const core::MutexLock lock(mutex_);
      connect_error_ = "cannot connect to " + options_.host + ":" + std::to_string(options_.port) +
                       ": " + mosquitto_strerror(rc);
    }
    return rc;
  }

  [[nodiscard]] bool wanted() const { return !options_.wanted || options_.wanted(); }

  void turn(const std::stop_token& stop) {
    milliseconds pause = kFirstReconnect;
    while (!stop.stop_requested()) {
      if (!wanted()) {
        forget();
        const core::MutexLock lock(mutex_);
        wake_.wait_for(mutex_, kLookAgain, [&] { return stop.stop_requested(); });
        continue;
      }
      const auto began = Clock::now();
      int rc = connect();
      while (rc == MOSQ_ERR_SUCCESS && !stop.stop_requested()) {
        rc = mosquitto_loop(handle_, kLoopMilliseconds, 1);
        if (rc == MOSQ_ERR_SUCCESS && !wanted()) rc = leave();
        if (rc == MOSQ_ERR_SUCCESS && stuck()) mosquitto_disconnect(handle_);
      }
      if (stop.stop_requested()) return;
      const bool good = lost() || Clock::now() - began >= kLongestReconnect;
      const core::MutexLock lock(mutex_);
      pause = taken_over_ ? kLongestReconnect
              : good      ? kFirstReconnect
                          : std::min(pause * 2, kLongestReconnect);
      taken_over_ = false;
      wake_.wait_for(mutex_, pause, [&] { return stop.stop_requested(); });
    }
  }

  // This process does not deliver any more. Who does next says "online" after this.
  int leave() {
    int mid = 0;
    if (!options_.status_topic.empty()) {
      const core::MutexLock handle(handle_mutex_);
      mosquitto_publish_v5(handle_, &mid, options_.status_topic.c_str(), 7, "offline", 0, true,
                           nullptr);
      {
        const core::MutexLock lock(mutex_);
        flights_.enter_own(mid);
      }
      (void)mosquitto_loop_write(handle_, 1);
    }
    mosquitto_disconnect(handle_);
    return mosquitto_loop(handle_, kLoopMilliseconds, 1);
  }

  // The broker answers none of so many messages that the library sends no more.
  bool stuck() {
    const core::MutexLock lock(mutex_);
    return flights_.stuck();
  }

  // Another router delivers now: what the library has not sent is not ours to send later.
  void forget() {
    const core::MutexLock handle(handle_mutex_);
    const core::MutexLock lock(mutex_);
    if (!flights_.empty()) take_back();
  }

  // Those who wait may send their messages again.
  void take_back() REQUIRES(handle_mutex_, mutex_) {
    flights_.taken_back();
    // Message ids begin again: a session of before could take one for another.
    mosquitto_reinitialise(handle_, options_.client_id.c_str(), /*clean_session=*/true, this);
    (void)configure();
    wake_.notify_all();
  }

  // True: the next connection need not wait.
  bool lost() {
    const core::MutexLock handle(handle_mutex_);
    const core::MutexLock lock(mutex_);
    connected_ = false;
    const auto loss = flights_.connection_lost(steady());
    if (loss.take_back) take_back();
    return loss.quick;
  }

  static void on_connect(mosquitto*, void* user, int reason, int,
                         const mosquitto_property* properties) noexcept {
    auto& self = *static_cast<MosquittoClient*>(user);
    {
      const core::MutexLock lock(self.mutex_);
      self.connected_ = reason == 0;
      self.refusal_ = reason;
      if (reason == 0) {
        self.flights_.connected();
        self.read_limits(properties);
      }
    }
    self.wake_.notify_all();
    if (reason != 0 || self.options_.status_topic.empty()) return;
    int mid = 0;
    mosquitto_publish_v5(self.handle_, &mid, self.options_.status_topic.c_str(), 6, "online", 1,
                         true, nullptr);
    const core::MutexLock lock(self.mutex_);
    self.flights_.enter_own(mid);
  }

  void read_limits(const mosquitto_property* properties) REQUIRES(mutex_) {
    const BrokerLimits limits = limits_of(properties);
    flights_.limit().announced(limits.packet_bytes);
    most_qos_ = limits.qos;
    keeps_retained_ = limits.retains;
  }

  static void on_disconnect(mosquitto*, void* user, int reason,
                            const mosquitto_property*) noexcept {
    auto& self = *static_cast<MosquittoClient*>(user);
    const core::MutexLock lock(self.mutex_);
    self.connected_ = false;
    self.taken_over_ = reason == MQTT_RC_SESSION_TAKEN_OVER;
    self.connect_error_ = self.taken_over_ ? "another client connected with the same client id"
                                           : "the connection was lost";
  }

  static void on_publish(mosquitto*, void* user, int mid, int reason,
                         const mosquitto_property*) noexcept {
    auto& self = *static_cast<MosquittoClient*>(user);
    {
      const core::MutexLock lock(self.mutex_);
      self.flights_.answer(mid, reason);
    }
    self.wake_.notify_all();
  }

  MqttOptions options_;
  mosquitto* handle_ = nullptr;
  // Held while a message is handed to the library, and while its queue is taken away; before mutex_.
  core::Mutex handle_mutex_;
  core::Mutex mutex_;
  core::CondVar wake_;
  bool connected_ GUARDED_BY(mutex_) = false;
  bool taken_over_ GUARDED_BY(mutex_) = false;
  bool keeps_retained_ GUARDED_BY(mutex_) = true;
  int most_qos_ GUARDED_BY(mutex_) = 2;
  int refusal_ GUARDED_BY(mutex_) = 0;  // reason of the last CONNACK that refused
  std::string connect_error_ GUARDED_BY(mutex_) = "not connected yet";
  MqttFlights flights_ GUARDED_BY(mutex_);
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
