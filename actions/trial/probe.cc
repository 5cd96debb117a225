#include "actions/trial/probe.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "actions/transport/datagram_sender.h"
#include "actions/transport/http_client.h"
#include "actions/transport/http_connector.h"
#include "actions/transport/mailer.h"
#include "actions/transport/mqtt_client.h"
#include "actions/transport/redact.h"
#include "actions/trial/test_message.h"
#include "core/visible_text.h"

namespace tocsin::actions {
namespace {

using namespace std::chrono_literals;

constexpr auto kProbeWait = 5s;
// What a request for a token is told, so that the message's own place is asked too.
constexpr char kNoProbeToken[] = R"({"access_token": "none-in-a-probe"})";

/// Makes connections and keeps what came of them, each place once.
class ProbeLine {
 public:
  ProbeLine(core::Clock& clock, HttpClient* connector)
      : clock_(clock),
        owned_(connector == nullptr ? curl_http_connector() : nullptr),
        connector_(connector == nullptr ? *owned_ : *connector) {}

  void ask(std::string place, HttpRequest request) {
    const bool known = std::any_of(places_.begin(), places_.end(),
                                   [&](const ProbedPlace& one) { return one.place == place; });
    if (known) return;
    request.connect_timeout = request.timeout = kProbeWait;
    const core::Duration began = clock_.monotonic();
    const HttpResult result = connector_.send(request);
    ProbedPlace out;
    out.place = core::visible(place);
    out.took = clock_.monotonic() - began;
    if (result.failure != HttpFailure::none) {
      const std::vector<std::string> credentials(request.credentials.begin(),
                                                 request.credentials.end());
      out.problem = core::visible(redact(result.detail, credentials));
      if (out.problem.empty()) out.problem = "no answer";
    }
    for (const auto& [name, value] : result.response.headers) {
      if (!out.answer.empty()) out.answer += ", ";
      out.answer += core::visible(name == kCertificateEnds ? "certificate until " + value : value);
    }
    places_.push_back(std::move(out));
  }
  /// A place that speaks no HTTP: a connection, with TLS if it begins with it.
  void ask(const std::string& host, std::uint32_t port, HttpTls tls, bool begins_with_tls) {
    const std::string place = host + ":" + std::to_string(port);
    HttpRequest request;
    request.url = (begins_with_tls ? "https://" : "http://") + place;
    request.tls = std::move(tls);
    request.http2 = false;
    request.proxy = "none";
    // No guard stands before mail servers and brokers, which only operators name.
    if (auto everywhere = AddressGuard::create({"0.0.0.0/0", "::/0"})) request.guard = *everywhere;
    ask(place, std::move(request));
  }
  void note(ProbedPlace place) { places_.push_back(std::move(place)); }
  [[nodiscard]] std::vector<ProbedPlace> take() { return std::move(places_); }

 private:
  core::Clock& clock_;
  std::unique_ptr<HttpClient> owned_;
  HttpClient& connector_;
  std::vector<ProbedPlace> places_;
};

/// "https://hooks.example.com:8443": the path may be a credential.
std::string origin_of_url(const std::string& url) {
  const std::size_t scheme = url.find("//");
  return url.substr(0, scheme == std::string::npos ? 0 : url.find_first_of("/?#", scheme + 2));
}

class ProbeHttp final : public HttpClient {
 public:
  explicit ProbeHttp(ProbeLine& line) : line_(line) {}
  HttpResult send(const HttpRequest& request) override {
    line_.ask(origin_of_url(request.url), request);
    if (request.answers_credential) return {HttpFailure::none, "", {200, {}, kNoProbeToken}};
    return {HttpFailure::not_sent, "not sent", {}};
  }

 private:
  ProbeLine& line_;
};

class ProbeMailer final : public Mailer {
 public:
  explicit ProbeMailer(ProbeLine& line) : line_(line) {}
  MailResult send(const Mail& mail) override {
    HttpTls tls;
    tls.ca_file = mail.ca_file;
    line_.ask(mail.host, mail.port, std::move(tls), mail.tls == MailTls::implicit);
    return {MailFailure::unreachable, 0, false, {}, "not sent"};
  }

 private:
  ProbeLine& line_;
};

class ProbeMqttClient final : public MqttClient {
 public:
  ProbeMqttClient(ProbeLine& line, MqttOptions options)
      : line_(line), options_(std::move(options)) {}
  std::vector<MqttResult> publish(std::span<const MqttMessage> messages,
                                  std::chrono::milliseconds /*timeout*/) override {
    HttpTls tls;
    tls.ca_file = options_.ca_file;
    tls.cert_file = options_.cert_file;
    tls.key_file = options_.key_file;
    line_.ask(options_.host, options_.port, std::move(tls), options_.tls);
    return std::vector<MqttResult>(messages.size(), {MqttFailure::unreachable, 0, "not sent"});
  }

 private:
  ProbeLine& line_;
  MqttOptions options_;
};

class ProbeMqtt final : public MqttConnector {
 public:
  explicit ProbeMqtt(ProbeLine& line) : line_(line) {}
  core::Result<std::unique_ptr<MqttClient>> connect(const MqttOptions& options) override {
    return std::unique_ptr<MqttClient>(std::make_unique<ProbeMqttClient>(line_, options));
  }

 private:
  ProbeLine& line_;
};

class ProbeDatagrams final : public DatagramSender {
 public:
  core::Status send(const std::string& /*host*/, const std::string& /*port*/,
                    std::span<const std::string> /*datagrams*/) override {
    return core::ok();
  }
};

void ask_all(core::Action& action, const ConfiguredIntegration& integration,
             const Environment& environment, ProbeLine& line) {
  core::Notification message =
      test_open(integration, {core::Severity::warning, "check --live", environment.cluster},
                environment.clock->now());
  auto rendered = action.render(message);
  if (!rendered) return line.note({"message", rendered.error().message, "", {}});
  message.rendered = std::move(*rendered);
  const auto outcome = action.execute(message, 1, kProbeWait);
  // Topics of the user's: the action has asked, and says what it heard.
  for (const core::OutRecord& record : outcome.records) {
    line.note({"topic " + record.topic.substr(record.topic.starts_with('/') ? 1 : 0),
               "",
               "takes the record",
               {}});
  }
  const bool by_topic = integration.type == "kafka" && outcome.records.empty();
  if (by_topic) line.note({"topic", outcome.detail, "", {}});
}

}  // namespace

Probe probe_integration(const ConfiguredIntegration& integration, Environment environment) {
  Probe out{integration.common.id, integration.type, {}, {}};
  if (integration.traits.reads_issues && !integration.config->takes_test_messages()) {
    out.skipped = "acts on runs and issues, and takes no message";
    return out;
  }
  ProbeLine line(*environment.clock, environment.http);
  ProbeHttp http(line);
  ProbeMailer mailer(line);
  ProbeMqtt mqtt(line);
  ProbeDatagrams datagrams;
  environment.http = &http;
  environment.mailer = &mailer;
  environment.mqtt = &mqtt;
  environment.datagrams = &datagrams;
  if (const auto action = integration.build(environment)) {
    ask_all(**action, integration, environment, line);
  } else {
    line.note({"configuration", action.error().message, "", {}});
  }
  out.places = line.take();
  if (out.places.empty()) out.skipped = "nothing answers it: only a message shows that it arrives";
  return out;
}

}  // namespace tocsin::actions
