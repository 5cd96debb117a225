// Posts each notification as JSON to a URL, signed when a secret is configured.
//
// Sends       POST, body in format cloudevents (structured CloudEvents 1.0), native or
//             alertmanager_v4, or your own (template); headers webhook-id, webhook-timestamp,
//             webhook-signature.
// Retries     by the table in http_outcome.cc; Retry-After obeyed; redirects never followed.
// Idempotent  webhook-id is the notification id, the same in every attempt, as is the body.
// Needs       nothing but the network; private addresses only when allow_private names them.
// Source      Standard Webhooks specification 1.0; CloudEvents 1.0; Alertmanager's webhook format.

#include <optional>

#include "actions/integration/http_action.h"
#include "actions/message/json_body.h"
#include "actions/transport/redact.h"
#include "actions/transport/signature.h"

namespace tocsin::actions {
namespace {

struct Webhook final : HttpIntegration {
  std::string format = "cloudevents";
  config::Secret secret;
  config::Secret previous_secret;
  bool idempotency_key = false;
  std::optional<JsonBody> body;  // format template

  void keys(config::Reader& in) override {
    in.optional("format", format,
                config::one_of({"cloudevents", "native", "alertmanager_v4", "template"}),
                "form of the body");
    std::string text;
    in.optional("body", text, "format template: JSON with the {{names}} of a message");
    in.secret("secret", secret, "signing secret, whsec_<base64>");
    in.secret("previous_secret", previous_secret,
              "the secret before it; both sign while receivers change over");
    in.optional("idempotency_key", idempotency_key,
                "also send the notification id as Idempotency-Key");
    if ((format == "template") == text.empty()) in.error("body", "belongs to format: template");
    if (text.empty()) return;
    auto parsed = JsonBody::parse(std::move(text));
    if (!parsed) return in.error("body", parsed.error().message);
    body = std::move(*parsed);
  }

  void check(config::Reader& in) const override {
    for (const auto& [key, one] :
         {std::pair{"secret", &secret}, std::pair{"previous_secret", &previous_secret}}) {
      if (!in.has(key) || !one->set()) continue;
      const auto text = one->reveal();
      if (text && !webhook_key(*text)) in.error(key, webhook_key(*text).error().message);
    }
    for (const auto& [name, value] : http_.headers) {
      if (!name.starts_with("webhook-")) continue;
      in.error("headers", "\"" + printable(name, 100) + "\" is set by the signature");
    }
  }

  [[nodiscard]] Rendered render(const core::Notification& notification,
                                const Sender& sender) const override {
    if (body) return {"application/json", body->fill(notification, sender), {}};
    if (format == "native") return {"application/json", native(notification, sender), {}};
    if (format == "alertmanager_v4")
      return {"application/json", core::to_json(alertmanager_v4(notification, sender)), {}};
    return {"application/cloudevents+json; charset=UTF-8", cloud_event(notification, sender), {}};
  }

  core::Status complete(HttpRequest& request, const HttpAttempt& attempt) const override {
    const std::string& id = attempt.notification.notification_id;
    const std::int64_t timestamp = core::nanoseconds(attempt.now) / 1'000'000'000;
    if (idempotency_key) request.headers.emplace_back("idempotency-key", id);
    request.headers.emplace_back("webhook-id", id);
    request.headers.emplace_back("webhook-timestamp", std::to_string(timestamp));
    std::string signatures;
    for (const config::Secret* one : {&secret, &previous_secret}) {
      if (!one->set()) continue;
      const auto text = attempt.opened.reveal(*one, "secret");
      if (!text) return text.error();
      const auto key = webhook_key(*text);
      if (!key) return key.error();
      attempt.opened.add(*key);
      if (!signatures.empty()) signatures += ' ';
      signatures += sign_webhook(*key, id, timestamp, request.body);
    }
    if (!signatures.empty()) request.headers.emplace_back("webhook-signature", signatures);
    return core::ok();
  }
};

}  // namespace

ActionDescriptor webhook() {
  return {"webhook", "Posts signed JSON to a URL.", {.dedup = true}, read_http<Webhook>, {}};
}

}  // namespace tocsin::actions
