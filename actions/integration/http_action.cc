#include "actions/integration/http_action.h"

#include <algorithm>
#include <chrono>

#include "actions/integration/attempt_notes.h"
#include "actions/integration/http_dialog.h"
#include "actions/transport/proxy.h"
#include "actions/transport/redact.h"
#include "core/json.h"

namespace tocsin::actions {
namespace {

constexpr std::size_t kMaxDetail = 2048;
constexpr std::size_t kMaxAnswer = 65'536;
// Of batches that are refused although nothing can be taken from them: then all of it is at fault.
constexpr std::size_t kMaxRefused = 50;

// The credential often is the path, its last part or a value of the query; an answer may echo one alone.
void hide_path(const std::string& url, Opened& opened) {
  constexpr std::size_t kCredential = 12;  // shorter ones are words
  std::size_t begin = url.find('/', url.find("//") + 2);
  if (begin == std::string::npos || url.size() - begin < 2) return;
  opened.add(url.substr(begin));
  while (begin != std::string::npos) {
    const std::size_t end = url.find_first_of("/?&=", begin + 1);
    std::string part = url.substr(begin + 1, end == std::string::npos ? end : end - begin - 1);
    if (part.size() >= kCredential) opened.add(std::move(part));
    begin = end;
  }
}

core::AttemptOutcome misconfigured(std::string detail) {
  core::AttemptOutcome out;
  out.outcome = core::OutcomeClass::configuration;
  out.code = "configuration";
  out.detail = std::move(detail);
  return out;
}

class HttpAction final : public core::Action {
 public:
  HttpAction(std::shared_ptr<const HttpIntegration> integration, const Environment& environment,
             const CommonConfig& common)
      : integration_(std::move(integration)),
        common_(common),
        clock_(*environment.clock),
        sender_{environment.cluster, environment.external_url, environment.place},
        http_(environment.http) {
    if (http_ == nullptr) {
      owned_ = curl_http_client();
      http_ = owned_.get();
    }
  }

  [[nodiscard]] core::Result<std::string> render(
      const core::Notification& notification) const override {
    if (integration_->sends_batches()) return stored(integration_->render(notification, sender_));
    return stored(fitting(notification, common_.max_payload.count,
                          [&](const auto& form) { return integration_->render(form, sender_); }));
  }

  core::AttemptOutcome execute(const core::Notification& notification, std::uint32_t attempt,
                               std::chrono::milliseconds budget) override {
    const auto rendered = parse_rendered(notification.rendered.empty() ? *render(notification)
                                                                       : notification.rendered);
    if (!rendered) return misconfigured(rendered.error().message);
    if (integration_->sends_batches()) return send_batches(notification, *rendered, budget);
    Dialog dialog(*this, notification, *rendered, attempt, budget);
    core::AttemptOutcome out = dialog.masked(integration_->carry_out(dialog));
    if (out.outcome == core::OutcomeClass::delivered) dialog.leave({});
    return out;
  }

 private:
  class Dialog final : public HttpDialog {
   public:
    Dialog(HttpAction& action, const core::Notification& notification, const Rendered& rendered,
           std::uint32_t attempt, std::chrono::milliseconds budget)
        : action_(action),
          notification_(notification),
          rendered_(rendered),
          attempt_(attempt),
          end_(action.clock_.monotonic() + budget) {}

    [[nodiscard]] const core::Notification& notification() const override { return notification_; }
    [[nodiscard]] const Rendered& rendered() const override { return rendered_; }
    [[nodiscard]] core::WallTime now() const override { return action_.clock_.now(); }
    [[nodiscard]] const CommonConfig& common() const override { return action_.common_; }
    [[nodiscard]] bool last_attempt() const override {
      const std::uint32_t most = action_.common_.retry.max_attempts;
      return most > 0 && attempt_ >= most;
    }
    [[nodiscard]] std::string left() const override {
      return action_.notes_.at(notification_.notification_id);
    }
    void leave(std::string text) override {
      action_.notes_.set(notification_.notification_id, std::move(text));
    }

    core::AttemptOutcome deliver() override {
      return action_.send(notification_, rendered_, time_left());
    }

    HttpResult ask(const HttpAsk& ask) override {
      HttpRequest request;
      request.timeout = time_left();
      if (request.timeout.count() <= 0) {
        return {HttpFailure::unreachable, "the requests before took the time of the attempt", {}};
      }
      const Rendered asked{ask.content_type, ask.body, rendered_.fields};
      const HttpAttempt attempt{notification_, asked, now(), opened_};
      if (const auto problem = action_.fill(request, attempt, ask); !problem) {
        return {HttpFailure::bad_request, problem.error().message, {}};
      }
      request.credentials = opened_.all();
      return action_.http_->send(request);
    }

    [[nodiscard]] core::AttemptOutcome masked(core::AttemptOutcome out) const {
      mask(opened_, out);
      return out;
    }

   private:
    [[nodiscard]] std::chrono::milliseconds time_left() const {
      return std::chrono::duration_cast<std::chrono::milliseconds>(end_ -
                                                                   action_.clock_.monotonic());
    }

    HttpAction& action_;
    const core::Notification& notification_;
    const Rendered& rendered_;
    std::uint32_t attempt_;
    core::Duration end_;
    Opened opened_;
  };

  static void mask(const Opened& opened, core::AttemptOutcome& out) {
    out.detail = printable(opened.masked(std::move(out.detail)), kMaxDetail);
    for (auto& [name, value] : out.handles) {
      value = printable(opened.masked(std::move(value)), kMaxDetail);
    }
  }

  // One that is refused as bad holds back no other; another failure ends the attempt, and what went
  // before is repeated with the rest: the state is the same.
  core::AttemptOutcome send_batches(const core::Notification& notification,
                                    const Rendered& rendered, std::chrono::milliseconds budget) {
    const core::Duration end = clock_.monotonic() + budget;
    core::AttemptOutcome out;
    std::size_t refused = 0;
    std::vector<std::string> left =
        integration_->batches(rendered, static_cast<std::size_t>(common_.max_payload.count));
    std::reverse(left.begin(), left.end());
    while (!left.empty()) {
      const Rendered batch{rendered.content_type, std::move(left.back()), rendered.fields};
      left.pop_back();
      const auto time =
          std::chrono::duration_cast<std::chrono::milliseconds>(end - clock_.monotonic());
      if (time.count() <= 0) return out_of_time(left.size() + 1);
      core::AttemptOutcome one = send(notification, batch, time);
      if (one.outcome == core::OutcomeClass::bad_payload) {
        const auto instead = integration_->in_place_of(batch.body);
        left.insert(left.end(), instead.rbegin(), instead.rend());
        if (instead.empty() && refused++ == 0) out = std::move(one);
        if (refused < kMaxRefused) continue;
        out.detail = "refused again and again, the first: " + out.detail;
        return out;
      }
      if (one.outcome != core::OutcomeClass::delivered) return one;
      if (refused == 0) out = std::move(one);
    }
    if (refused > 0) {
      out.detail = std::to_string(refused) + " refused, all others taken; the first: " + out.detail;
    }
    return out;
  }

  static core::AttemptOutcome out_of_time(std::size_t left) {
    core::AttemptOutcome out;
    out.outcome = core::OutcomeClass::transient;
    out.code = "timeout";
    out.detail = std::to_string(left) + " requests were not sent within the time of an attempt";
    return out;
  }

  core::AttemptOutcome send(const core::Notification& notification, const Rendered& rendered,
                            std::chrono::milliseconds budget) {
    Opened opened;
    HttpRequest request;
    request.timeout = budget;
    const HttpAttempt attempt{notification, rendered, clock_.now(), opened};
    if (const auto problem = fill(request, attempt, {.method = "POST"}); !problem) {
      return misconfigured(problem.error().message);
    }
    request.credentials = opened.all();
    const core::Duration begin = clock_.monotonic();
    const HttpResult result = http_->send(request);
    if (!notification.handles.empty() && integration_->lost(result.response)) {
      core::Notification anew = notification;
      anew.handles.clear();
      const auto spent =
          std::chrono::duration_cast<std::chrono::milliseconds>(clock_.monotonic() - begin);
      if (spent >= budget) return out_of_time(1);
      return send(anew, rendered, budget - spent);
    }
    core::AttemptOutcome out = integration_->classify(result, clock_.now());
    if (out.outcome == core::OutcomeClass::delivered) {
      out.handles = integration_->handles(result.response, notification);
    }
    mask(opened, out);
    return out;
  }

  core::Status fill(HttpRequest& request, const HttpAttempt& attempt, const HttpAsk& ask) const {
    const HttpSettings& settings = integration_->http();
    const auto url = attempt.opened.reveal(settings.url, "url");
    if (!url) return url.error();
    hide_path(*url, attempt.opened);
    if (std::string problem = url_problem(*url, settings.guard); !problem.empty()) {
      return core::invalid_argument("url: " + problem);
    }
    request.method = ask.method;
    request.url =
        ask.path.empty() ? *url : url->substr(0, url->find_last_not_of('/') + 1) + ask.path;
    request.body = attempt.rendered.body;
    request.connect_timeout =
        std::chrono::duration_cast<std::chrono::milliseconds>(common_.connect_timeout);
    if (settings.proxy.set()) {
      const auto proxy = attempt.opened.reveal(settings.proxy, "proxy");
      if (!proxy) return proxy.error();
      if (std::string problem = proxy_problem(*proxy); !problem.empty()) {
        return core::invalid_argument("proxy: " + problem);
      }
      request.proxy = *proxy;
    }
    request.tls = settings.tls;
    request.guard = settings.guard;
    for (const auto& [name, value] : settings.headers) request.headers.emplace_back(name, value);
    request.headers.emplace_back("content-type", attempt.rendered.content_type);
    request.headers.emplace_back("user-agent", "tocsin");
    if (const auto trace = trace_of(attempt.notification); !trace.parent.empty()) {
      request.headers.emplace_back("traceparent", trace.parent);
      if (!trace.state.empty()) request.headers.emplace_back("tracestate", trace.state);
    }
    if (settings.bearer_token.set()) {
      const auto token = attempt.opened.reveal(settings.bearer_token, "bearer_token");
      if (!token) return token.error();
      request.headers.emplace_back("authorization", "Bearer " + *token);
    }
    return integration_->complete(request, attempt);
  }

  std::shared_ptr<const HttpIntegration> integration_;
  CommonConfig common_;
  core::Clock& clock_;
  Sender sender_;
  std::unique_ptr<HttpClient> owned_;  // of this integration alone, and so are its connections
  HttpClient* http_;
  AttemptNotes notes_;
};

void check_headers(config::Reader& in, const std::map<std::string, std::string>& headers) {
  for (const auto& [name, value] : headers) {
    const bool word = !name.empty() && name.find_first_of(" :\r\n\t") == std::string::npos;
    if (!word || value.find_first_of("\r\n") != std::string::npos) {
      in.error("headers",
               "\"" + printable(name, 100) + "\" is no header, or its value has a line break");
    }
  }
}

void check_settings(config::Reader& in, HttpSettings& http) {
  auto guard = AddressGuard::create(http.allow_private);
  if (!guard) return in.error("allow_private", guard.error().message);
  http.guard = *guard;
  // A secret that comes from a file is checked when it is used: it may not be there yet.
  if (in.has("url")) {
    if (const auto url = http.url.reveal()) {
      if (const auto problem = url_problem(*url, http.guard); !problem.empty()) {
        in.error("url", problem);
      }
    }
  }
  if (in.has("proxy")) {
    if (const auto proxy = http.proxy.reveal()) {
      const std::string problem = proxy_problem(*proxy);
      if (!problem.empty()) in.error("proxy", problem);
    }
  }
  check_headers(in, http.headers);
  if (http.tls.cert_file.empty() != http.tls.key_file.empty()) {
    in.error("tls", "cert_file and key_file belong together");
  }
}

}  // namespace

core::Result<std::string> Opened::reveal(const config::Secret& secret, std::string_view key) {
  auto text = secret.reveal();
  if (!text) return text.error().in(std::string(key));
  secrets_.push_back(*text);
  return text;
}

std::string Opened::masked(std::string text) const { return redact(std::move(text), secrets_); }

void HttpIntegration::declare(config::Reader& in) {
  in.secret("url", http_.url, url_means_, !http_.url.set());
  keys(in);
  in.secret("bearer_token", http_.bearer_token, "sent as Authorization: Bearer …");
  in.optional("headers", http_.headers,
              "further headers; no credentials, they are stored in clear");
  in.optional("allow_private", http_.allow_private,
              "networks that are not public and may be posted to, such as 127.0.0.0/8");
  in.secret("proxy", http_.proxy,
            "environment (the default: https_proxy, http_proxy, no_proxy), none, or a URL");
  in.section("tls", "certificates", [&](config::Reader& tls) {
    tls.optional("ca_file", http_.tls.ca_file, "authorities to trust instead of the system's");
    tls.optional("cert_file", http_.tls.cert_file, "client certificate, PEM");
    tls.optional("key_file", http_.tls.key_file, "its key, PEM");
  });
  check_settings(in, http_);
  check(in);
}

core::AttemptOutcome HttpIntegration::carry_out(HttpDialog& dialog) const {
  return dialog.deliver();
}

core::Value json_answer(const HttpResponse& response) {
  auto read = core::parse_json(response.body, kMaxAnswer);
  return read ? std::move(*read) : core::Value();
}

core::Result<std::unique_ptr<core::Action>> HttpIntegration::build(
    const Environment& environment, const IntegrationName& /*name*/,
    const CommonConfig& common) const {
  return std::unique_ptr<core::Action>(
      std::make_unique<HttpAction>(shared_from_this(), environment, common));
}

}  // namespace tocsin::actions
