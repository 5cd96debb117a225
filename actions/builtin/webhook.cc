// Posts each notification as JSON to a URL, signed when a secret is configured.
//
// Sends       POST, body in format cloudevents (structured CloudEvents 1.0), native or
//             alertmanager_v4; headers webhook-id, webhook-timestamp, webhook-signature.
// Retries     by the table in http_outcome.cc; Retry-After obeyed; redirects never followed.
// Idempotent  webhook-id is the notification id, the same in every attempt, as is the body.
// Needs       nothing but the network; private addresses only when allow_private names them.
// Source      Standard Webhooks specification 1.0; CloudEvents 1.0; Alertmanager's webhook format.

#include <map>

#include "actions/descriptor.h"
#include "actions/event_json.h"
#include "actions/http_client.h"
#include "actions/redact.h"
#include "actions/rendered.h"
#include "actions/signature.h"

namespace tocsin::actions {
namespace {

struct Config final : ActionConfig {
  config::Secret url;
  std::string format = "cloudevents";
  config::Secret secret;
  config::Secret previous_secret;
  config::Secret bearer_token;
  std::map<std::string, std::string> headers;
  std::vector<std::string> allow_private;
  bool idempotency_key = false;
  TlsFiles tls;
  AddressGuard guard;

  [[nodiscard]] core::Result<std::unique_ptr<core::Action>> build(
      const Environment& environment, const IntegrationName& name,
      const CommonConfig& common) const override;
};

core::Outcome misconfigured(std::string detail) {
  core::Outcome out;
  out.outcome = core::OutcomeClass::configuration;
  out.code = "configuration";
  out.detail = std::move(detail);
  return out;
}

class Webhook final : public core::Action {
 public:
  Webhook(const Config& cfg, const Environment& environment, const CommonConfig& common)
      : cfg_(cfg),
        common_(common),
        clock_(*environment.clock),
        sender_{environment.cluster, environment.external_url},
        http_(environment.http) {
    if (http_ == nullptr) {
      owned_ = curl_http_client();
      http_ = owned_.get();
    }
  }

  [[nodiscard]] core::Result<std::string> render(
      const core::Notification& notification) const override {
    Rendered out = form(notification);
    if (out.body.size() > common_.max_payload.count && !notification.minimal) {
      core::Notification small = notification;
      small.minimal = true;
      out = form(small);
    }
    return to_json(out);
  }

  core::Outcome execute(const core::Notification& notification, std::uint32_t /*attempt*/,
                        std::chrono::milliseconds budget) override {
    std::string stored = notification.rendered;
    if (stored.empty()) stored = *render(notification);
    const auto rendered = parse_rendered(stored);
    if (!rendered) return misconfigured(rendered.error().message);

    HttpRequest request;
    std::vector<std::string> secrets;
    if (const auto problem = fill(request, secrets, *rendered, notification); !problem) {
      return misconfigured(problem.error().message);
    }
    request.timeout = budget;
    core::Outcome out = classify(http_->send(request), clock_.now());
    out.detail = printable(redact(std::move(out.detail), secrets), 2048);
    return out;
  }

 private:
  [[nodiscard]] Rendered form(const core::Notification& notification) const {
    Rendered out;
    out.content_type = "application/json";
    if (cfg_.format == "cloudevents") {
      out.content_type = "application/cloudevents+json; charset=UTF-8";
      out.body = core::to_json(cloud_event(notification, sender_));
    } else if (cfg_.format == "alertmanager_v4") {
      out.body = core::to_json(alertmanager_v4(notification, sender_));
    } else {
      out.body = core::to_json(native(notification, sender_));
    }
    return out;
  }

  // Opens the secrets; what it opened goes to `secrets`, so that no answer can echo it.
  core::Status fill(HttpRequest& request, std::vector<std::string>& secrets,
                    const Rendered& rendered, const core::Notification& notification) {
    const auto url = cfg_.url.reveal();
    if (!url) return url.error().in("url");
    secrets.push_back(*url);
    if (const auto path = url->find('/', url->find("//") + 2); path != std::string::npos) {
      if (url->size() - path > 1) secrets.push_back(url->substr(path));
    }
    if (std::string problem = url_problem(*url, cfg_.guard); !problem.empty()) {
      return core::invalid_argument("url: " + problem);
    }
    request.url = *url;
    request.body = rendered.body;
    request.connect_timeout =
        std::chrono::duration_cast<std::chrono::milliseconds>(common_.connect_timeout);
    request.tls = cfg_.tls;
    request.guard = cfg_.guard;
    for (const auto& [name, value] : cfg_.headers) request.headers.emplace_back(name, value);
    request.headers.emplace_back("content-type", rendered.content_type);
    request.headers.emplace_back("user-agent", "tocsin");
    if (const auto trace = trace_of(notification); !trace.parent.empty()) {
      request.headers.emplace_back("traceparent", trace.parent);
      if (!trace.state.empty()) request.headers.emplace_back("tracestate", trace.state);
    }
    if (cfg_.bearer_token.set()) {
      const auto token = cfg_.bearer_token.reveal();
      if (!token) return token.error().in("bearer_token");
      secrets.push_back(*token);
      request.headers.emplace_back("authorization", "Bearer " + *token);
    }
    if (cfg_.idempotency_key) {
      request.headers.emplace_back("idempotency-key", notification.notification_id);
    }
    return sign(request, secrets, notification);
  }

  core::Status sign(HttpRequest& request, std::vector<std::string>& secrets,
                    const core::Notification& notification) {
    const std::int64_t timestamp =
        std::chrono::duration_cast<std::chrono::seconds>(clock_.now().time_since_epoch()).count();
    request.headers.emplace_back("webhook-id", notification.notification_id);
    request.headers.emplace_back("webhook-timestamp", std::to_string(timestamp));
    std::string signatures;
    for (const config::Secret* secret : {&cfg_.secret, &cfg_.previous_secret}) {
      if (!secret->set()) continue;
      const auto text = secret->reveal();
      if (!text) return text.error().in("secret");
      secrets.push_back(*text);
      const auto key = webhook_key(*text);
      if (!key) return key.error();
      secrets.push_back(*key);
      if (!signatures.empty()) signatures += ' ';
      signatures += sign_webhook(*key, notification.notification_id, timestamp, request.body);
    }
    if (!signatures.empty()) request.headers.emplace_back("webhook-signature", signatures);
    return core::ok();
  }

  Config cfg_;
  CommonConfig common_;
  core::Clock& clock_;
  Sender sender_;
  std::unique_ptr<HttpClient> owned_;
  HttpClient* http_;
};

core::Result<std::unique_ptr<core::Action>> Config::build(const Environment& environment,
                                                          const IntegrationName& /*name*/,
                                                          const CommonConfig& common) const {
  return std::unique_ptr<core::Action>(std::make_unique<Webhook>(*this, environment, common));
}

void check(config::Reader& in, Config& cfg) {
  auto guard = AddressGuard::create(cfg.allow_private);
  if (!guard) return in.error("allow_private", guard.error().message);
  cfg.guard = *guard;
  // A secret that comes from a file is checked when it is used: it may not be there yet.
  if (in.has("url")) {
    if (const auto url = cfg.url.reveal()) {
      if (const auto problem = url_problem(*url, cfg.guard); !problem.empty()) {
        in.error("url", problem);
      }
    }
  }
  for (const auto& [key, secret] :
       {std::pair{"secret", &cfg.secret}, std::pair{"previous_secret", &cfg.previous_secret}}) {
    if (!in.has(key) || !secret->set()) continue;
    const auto text = secret->reveal();
    if (text && !webhook_key(*text)) in.error(key, webhook_key(*text).error().message);
  }
  for (const auto& [name, value] : cfg.headers) {
    const bool word = !name.empty() && name.find_first_of(" :\r\n\t") == std::string::npos;
    if (!word || value.find_first_of("\r\n") != std::string::npos) {
      in.error("headers",
               "\"" + printable(name, 100) + "\" is no header, or its value has a line break");
    } else if (name.starts_with("webhook-")) {
      in.error("headers", "\"" + name + "\" is set by the signature");
    }
  }
  if (cfg.tls.cert_file.empty() != cfg.tls.key_file.empty()) {
    in.error("tls", "cert_file and key_file belong together");
  }
}

std::shared_ptr<const ActionConfig> read_webhook(config::Reader& in) {
  auto cfg = std::make_shared<Config>();
  in.secret("url", cfg->url, "where to post", true);
  in.optional("format", cfg->format, config::one_of({"cloudevents", "native", "alertmanager_v4"}),
              "form of the body");
  in.secret("secret", cfg->secret, "signing secret, whsec_<base64>");
  in.secret("previous_secret", cfg->previous_secret,
            "the secret before it; both sign while receivers change over");
  in.secret("bearer_token", cfg->bearer_token, "sent as Authorization: Bearer …");
  in.optional("headers", cfg->headers, "further headers; no credentials, they are stored in clear");
  in.optional("allow_private", cfg->allow_private,
              "networks that are not public and may be posted to, such as 127.0.0.0/8");
  in.optional("idempotency_key", cfg->idempotency_key,
              "also send the notification id as Idempotency-Key");
  in.section("tls", "certificates", [&](config::Reader& tls) {
    tls.optional("ca_file", cfg->tls.ca_file, "authorities to trust instead of the system's");
    tls.optional("cert_file", cfg->tls.cert_file, "client certificate, PEM");
    tls.optional("key_file", cfg->tls.key_file, "its key, PEM");
  });
  check(in, *cfg);
  return cfg;
}

}  // namespace

ActionDescriptor webhook() {
  return {"webhook", "Posts signed JSON to a URL.", {true, false, true}, read_webhook, {}};
}

}  // namespace tocsin::actions
