// Clients that keep what an action asked and was answered, and pass it on. Internal to actions.
#pragma once

#include <memory>
#include <vector>

#include "actions/contract/descriptor.h"
#include "actions/transport/datagram_sender.h"
#include "actions/transport/http_client.h"
#include "actions/transport/mailer.h"
#include "actions/transport/mqtt_client.h"
#include "actions/trial/exchange.h"

namespace tocsin::actions {

/// What the recording clients share. Actions of a trial run on one thread.
struct Recording {
  bool send = true;  // false: requests are kept and not sent
  std::vector<Exchange> exchanges;
};

class RecordingHttp final : public HttpClient {
 public:
  /// null: libcurl.
  RecordingHttp(HttpClient* inner, Recording& recording);
  HttpResult send(const HttpRequest& request) override;

 private:
  std::unique_ptr<HttpClient> owned_;
  HttpClient* inner_;
  Recording& recording_;
};

class RecordingMailer final : public Mailer {
 public:
  /// null: libcurl.
  RecordingMailer(Mailer* inner, Recording& recording);
  MailResult send(const Mail& mail) override;

 private:
  std::unique_ptr<Mailer> owned_;
  Mailer* inner_;
  Recording& recording_;
};

/// Connects by a client id of its own and without `status_topic`: the router keeps its session.
/// Nothing is retained: what a test says is over at once.
class RecordingMqtt final : public MqttConnector {
 public:
  /// null: libmosquitto.
  RecordingMqtt(MqttConnector* inner, Recording& recording)
      : inner_(inner), recording_(recording) {}
  core::Result<std::unique_ptr<MqttClient>> connect(const MqttOptions& options) override;

 private:
  std::unique_ptr<MqttConnector> owned_;
  MqttConnector* inner_;
  Recording& recording_;
};

class RecordingDatagrams final : public DatagramSender {
 public:
  /// null: UDP.
  RecordingDatagrams(DatagramSender* inner, Recording& recording);
  core::Status send(const std::string& host, const std::string& port,
                    std::span<const std::string> datagrams) override;

 private:
  std::unique_ptr<DatagramSender> owned_;
  DatagramSender* inner_;
  Recording& recording_;
};

}  // namespace tocsin::actions
