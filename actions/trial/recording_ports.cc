#include "actions/trial/recording_ports.h"

#include <utility>

namespace tocsin::actions {
namespace {

constexpr char kNotSent[] = "not sent";
// What a request for a token is told in a dry run, so that the message is shown too.
constexpr char kNoToken[] = R"({"access_token": "none-in-a-dry-run"})";

std::string words_of(HttpFailure failure) {
  switch (failure) {
    case HttpFailure::none:
      return "answered";
    case HttpFailure::bad_request:
      return "cannot be sent";
    case HttpFailure::blocked:
      return "address refused";
    case HttpFailure::unreachable:
      return "unreachable";
    case HttpFailure::certificate:
      return "certificate refused";
    case HttpFailure::proxy:
      return "refused by the proxy";
    case HttpFailure::no_answer:
      return "no answer in time";
    case HttpFailure::not_sent:
      return "not sent";
  }
  return {};
}

std::string words_of(MailFailure failure) {
  switch (failure) {
    case MailFailure::none:
      return "taken";
    case MailFailure::unreachable:
      return "unreachable";
    case MailFailure::tls:
      return "TLS failed";
    case MailFailure::login:
      return "login refused";
    case MailFailure::refused:
      return "refused";
    case MailFailure::no_answer:
      return "no answer after the message";
  }
  return {};
}

std::string words_of(MqttFailure failure) {
  switch (failure) {
    case MqttFailure::none:
      return "acknowledged";
    case MqttFailure::bad_message:
      return "message not accepted";
    case MqttFailure::too_large:
      return "message too large";
    case MqttFailure::no_retain:
      return "the broker keeps no retained messages";
    case MqttFailure::unreachable:
      return "unreachable";
    case MqttFailure::login:
      return "login refused";
    case MqttFailure::no_answer:
      return "no answer in time";
  }
  return {};
}

std::string with_detail(std::string words, const std::string& detail) {
  return detail.empty() ? words : words + ": " + detail;
}

class RecordingMqttClient final : public MqttClient {
 public:
  RecordingMqttClient(std::unique_ptr<MqttClient> inner, MqttOptions options, Recording& recording)
      : inner_(std::move(inner)), options_(std::move(options)), recording_(recording) {}

  std::vector<MqttResult> publish(std::span<const MqttMessage> messages,
                                  std::chrono::milliseconds timeout) override {
    std::vector<MqttMessage> passing(messages.begin(), messages.end());
    for (MqttMessage& message : passing) message.retain = false;
    std::vector<MqttResult> results(passing.size(), {MqttFailure::unreachable, 0, kNotSent});
    if (recording_.send) results = inner_->publish(passing, timeout);
    std::vector<std::string> credentials;
    if (options_.password) {
      if (const auto password = options_.password()) credentials.push_back(*password);
    }
    const ExchangeMask mask(credentials);
    for (std::size_t i = 0; i < passing.size(); ++i) keep(passing[i], results.at(i), mask);
    return results;
  }

 private:
  void keep(const MqttMessage& message, const MqttResult& result, const ExchangeMask& mask) {
    Exchange out;
    out.request = mask.line("publish " + message.topic + " to " + options_.host + ":" +
                            std::to_string(options_.port) + ", QoS " + std::to_string(message.qos));
    out.request_headers = mask.headers(message.user_properties);
    out.request_body = mask.lines(message.payload);
    if (recording_.send) {
      std::string answer = with_detail(words_of(result.failure), result.detail);
      if (result.reason != 0) answer += ", reason " + std::to_string(result.reason);
      out.answer = mask.line(answer);
    }
    recording_.exchanges.push_back(std::move(out));
  }

  std::unique_ptr<MqttClient> inner_;  // null: nothing is sent
  MqttOptions options_;
  Recording& recording_;
};

}  // namespace

RecordingHttp::RecordingHttp(HttpClient* inner, Recording& recording)
    : owned_(inner == nullptr ? curl_http_client() : nullptr),
      inner_(inner == nullptr ? owned_.get() : inner),
      recording_(recording) {}

HttpResult RecordingHttp::send(const HttpRequest& request) {
  const ExchangeMask mask(request.credentials);
  Exchange out;
  out.request = request.method + " " + mask.url(request.url);
  out.request_headers = mask.headers(request.headers);
  out.request_body =
      mask.lines(request.body_in_words.empty() ? request.body : request.body_in_words);
  HttpResult result{HttpFailure::not_sent, kNotSent, {}};
  if (recording_.send) {
    result = inner_->send(request);
    const HttpResponse& response = result.response;
    out.answer = result.failure == HttpFailure::none
                     ? "HTTP " + std::to_string(response.status)
                     : mask.line(with_detail(words_of(result.failure), result.detail));
    out.answer_headers = mask.headers(response.headers);
    out.answer_body = request.answers_credential ? "<redacted>" : mask.lines(response.body);
  } else if (request.answers_credential) {
    result = {HttpFailure::none, "", {200, {}, kNoToken}};
  }
  recording_.exchanges.push_back(std::move(out));
  return result;
}

RecordingMailer::RecordingMailer(Mailer* inner, Recording& recording)
    : owned_(inner == nullptr ? curl_mailer() : nullptr),
      inner_(inner == nullptr ? owned_.get() : inner),
      recording_(recording) {}

MailResult RecordingMailer::send(const Mail& mail) {
  const ExchangeMask mask(
      std::span<const std::string>(&mail.password, mail.password.empty() ? 0U : 1U));
  Exchange out;
  std::string to;
  for (const std::string& address : mail.to) to += (to.empty() ? "" : ", ") + address;
  out.request = mask.line("mail to " + to + " by " + mail.host + ":" + std::to_string(mail.port));
  out.request_body = mask.lines(mail.message);
  MailResult result{MailFailure::unreachable, 0, false, {}, kNotSent};
  if (recording_.send) {
    result = inner_->send(mail);
    std::string answer = with_detail(words_of(result.failure), result.detail);
    if (result.code != 0) answer = "SMTP " + std::to_string(result.code) + ", " + answer;
    out.answer = mask.line(answer);
    for (const auto& [address, code] : result.refused) {
      out.answer_headers.emplace_back(mask.line(address), "refused, SMTP " + std::to_string(code));
    }
  }
  recording_.exchanges.push_back(std::move(out));
  return result;
}

core::Result<std::unique_ptr<MqttClient>> RecordingMqtt::connect(const MqttOptions& options) {
  MqttOptions own = options;
  own.client_id += "-send-test";
  own.status_topic.clear();
  std::unique_ptr<MqttClient> client;
  if (recording_.send) {
    if (inner_ == nullptr) {
      owned_ = mosquitto_connector();
      inner_ = owned_.get();
    }
    auto made = inner_->connect(own);
    if (!made) return made.error();
    client = std::move(*made);
  }
  return std::unique_ptr<MqttClient>(
      std::make_unique<RecordingMqttClient>(std::move(client), std::move(own), recording_));
}

RecordingDatagrams::RecordingDatagrams(DatagramSender* inner, Recording& recording)
    : owned_(inner == nullptr ? udp_sender() : nullptr),
      inner_(inner == nullptr ? owned_.get() : inner),
      recording_(recording) {}

core::Status RecordingDatagrams::send(const std::string& host, const std::string& port,
                                      std::span<const std::string> datagrams) {
  const ExchangeMask mask({});
  core::Status out;
  if (recording_.send) out = inner_->send(host, port, datagrams);
  for (const std::string& datagram : datagrams) {
    Exchange one;
    one.request = mask.line("datagram to " + host + ":" + port);
    one.request_body = mask.lines(datagram);
    if (recording_.send) one.answer = out ? "sent, nobody answers" : mask.line(out.error().message);
    recording_.exchanges.push_back(std::move(one));
  }
  return out;
}

}  // namespace tocsin::actions
