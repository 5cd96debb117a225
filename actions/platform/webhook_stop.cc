// Reads       the `status` request: `gone` is the proof, `stale` is another job, `running` must hold to act.
// Stops       the `stop` request; `taken` says that it was heard, which proves nothing.
// Fenced      by what the operator compares: `stale` may name fields of the fence.
// Source      our own; signed by the Standard Webhooks specification.
#include "actions/platform/webhook_stop.h"

#include <algorithm>

#include "actions/platform/platform_fence.h"
#include "actions/transport/redact.h"
#include "actions/transport/signature.h"
#include "core/identity.h"
#include "core/json.h"

namespace tocsin::actions {
namespace {

using core::Value;
using std::chrono::milliseconds;

std::string plain_text(const Value& value) {
  if (const auto* text = core::as<std::string>(value)) return *text;
  return core::to_json(value);
}

std::string in_json(const std::string& text) {
  const std::string quoted = core::to_json(Value(text));
  return quoted.substr(1, quoted.size() - 2);  // the template has the quotes
}

std::string in_url(const std::string& text) { return percent_encode(text); }
std::string as_it_is(const std::string& text) { return text; }

bool status_is(const std::vector<std::string>& wanted, int status) {
  if (wanted.empty()) return true;
  const std::string exact = std::to_string(status);
  return std::any_of(wanted.begin(), wanted.end(), [&](const std::string& one) {
    return one == exact || (one.size() == 3 && one.ends_with("xx") && one[0] == exact[0]);
  });
}

bool met(const AnswerIs& wanted, const PlatformReply& reply, const Value& fence) {
  if (!wanted.given() || reply.status == 0 || !status_is(wanted.status, reply.status)) return false;
  if (wanted.at.empty()) return true;
  const Value* found = json_at(reply.json, wanted.at);
  if (found == nullptr) return false;
  const std::string text = plain_text(*found);
  return std::any_of(wanted.in.begin(), wanted.in.end(), [&](const std::string& one) {
    const auto filled = with_fence(one, fence, as_it_is);
    return filled && *filled == text;
  });
}

class WebhookStop final : public PlatformStop {
 public:
  WebhookStop(const WebhookStopConfig& cfg, core::Clock& clock, HttpClient* http)
      : cfg_(cfg), clock_(clock), http_(cfg.place, http) {}

  [[nodiscard]] std::string_view name() const override { return "webhook"; }

  [[nodiscard]] bool reaches(const Value& fence) const override {
    const std::string platform = core::text_at(fence, "platform");
    if (std::find(cfg_.platforms.begin(), cfg_.platforms.end(), platform) == cfg_.platforms.end()) {
      return false;
    }
    return std::all_of(cfg_.needs.begin(), cfg_.needs.end(), [&](const std::string& name) {
      const Value* found = core::find(fence, name);
      return found != nullptr && !plain_text(*found).empty();
    });
  }

  PlatformAnswer carry_out(const PlatformTarget& target, PlatformRung rung,
                           milliseconds budget) override {
    const std::string what = "the job of platform " + core::text_at(target.fence, "platform");
    const PlatformReply now = send(cfg_.status, target.fence, budget);
    if (met(cfg_.stale, now, target.fence)) {
      return {PlatformSeen::stale, what + " is another one now: " + now.body, false};
    }
    if (met(cfg_.gone, now, target.fence)) return {PlatformSeen::ended, what + " has ended", true};
    if (!met(cfg_.running, now, target.fence)) {
      return not_answered(now, "the status request", "the question for " + what);
    }
    if (rung == PlatformRung::look) return {PlatformSeen::running, what + " runs", false};
    const bool hard = rung == PlatformRung::force && !cfg_.force.path.empty();
    const PlatformReply reply = send(hard ? cfg_.force : cfg_.stop, target.fence, budget);
    if (met(cfg_.taken, reply, target.fence)) {
      return {PlatformSeen::running, "the stop request was taken for " + what, true};
    }
    return not_answered(reply, "the stop request", "the stop of " + what);
  }

 private:
  PlatformReply send(const WebhookRequest& wanted, const Value& fence, milliseconds budget) {
    const auto path = with_fence(wanted.path, fence, in_url);
    const auto body = with_fence(wanted.body, fence, in_json);
    PlatformReply out;
    if (!path || !body) {
      out.problem = "the fence of the run lacks what the request names";
      out.permanent = true;
      return out;
    }
    PlatformRequest request{wanted.method, *path, {{"accept", "application/json"}}, *body, {}};
    if (!body->empty()) request.headers.emplace_back("content-type", "application/json");
    if (const auto with_signature = sign(request); !with_signature) {
      out.problem = with_signature.error().message;
      return out;
    }
    return http_.send(request, budget);
  }

  // As the action `webhook` does: a receiver checks both alike.
  core::Status sign(PlatformRequest& request) {
    if (!cfg_.secret.set()) return core::ok();
    const auto text = cfg_.secret.reveal();
    if (!text) return text.error();
    const auto key = webhook_key(*text);
    if (!key) return key.error();
    const std::int64_t now = core::nanoseconds(clock_.now()) / 1'000'000'000;
    const std::string id = core::make_id("stp_", {request.method, request.path, request.body});
    request.secrets = {*text, *key};
    request.headers.emplace_back("webhook-id", id);
    request.headers.emplace_back("webhook-timestamp", std::to_string(now));
    request.headers.emplace_back("webhook-signature", sign_webhook(*key, id, now, request.body));
    return core::ok();
  }

  WebhookStopConfig cfg_;
  core::Clock& clock_;
  PlatformHttp http_;
};

void read_request(config::Reader& in, const char* key, const char* help, WebhookRequest& request,
                  bool needed) {
  in.section(key, help, [&](config::Reader& one) {
    one.optional("method", request.method,
                 config::one_of({"GET", "POST", "PUT", "PATCH", "DELETE"}), "of the request");
    if (needed) {
      one.required("path", request.path, config::not_empty(),
                   "behind the URL; {{fence.name}} stands for what the run reported");
    } else {
      one.optional("path", request.path, "behind the URL");
    }
    one.optional("body", request.body, "JSON; {{fence.name}} within quotes");
  });
  if (needed && !in.describing() && !in.has(key)) in.error("", std::string(key) + " is missing");
}

void read_condition(config::Reader& in, const char* key, const char* help, AnswerIs& wanted) {
  in.section(key, help, [&](config::Reader& one) {
    one.optional("status", wanted.status, "HTTP statuses, such as 404 or 2xx");
    one.optional("at", wanted.at, "a place in the answer's JSON, such as job.state");
    one.optional("in", wanted.in, "what may stand there; {{fence.name}} is replaced");
    if (wanted.at.empty() != wanted.in.empty()) one.error("at", "`at` and `in` belong together");
  });
}

}  // namespace

std::optional<std::string> with_fence(std::string_view text, const Value& fence,
                                      std::string (*put)(const std::string&)) {
  constexpr std::string_view kBegin = "{{fence.";
  std::string out;
  while (!text.empty()) {
    const std::size_t begin = text.find(kBegin);
    out += text.substr(0, begin);
    if (begin == std::string_view::npos) break;
    const std::size_t end = text.find("}}", begin);
    if (end == std::string_view::npos) return std::nullopt;
    const std::size_t name = begin + kBegin.size();
    const Value* found = core::find(fence, text.substr(name, end - name));
    if (found == nullptr) return std::nullopt;
    out += put(plain_text(*found));
    text = text.substr(end + 2);
  }
  return out;
}

void read(config::Reader& in, WebhookStopConfig& cfg) {
  read_place(in, cfg.place, PlaceKey::required, PlaceKey::optional);
  in.required("platforms", cfg.platforms, "whose jobs it ends, as hooks report them");
  in.optional("needs", cfg.needs, "names that a run's reference must have, else it is not asked");
  read_request(in, "status", "asked before and after: how the job stands", cfg.status, true);
  read_request(in, "stop", "asks it to end", cfg.stop, true);
  read_request(in, "force", "asks it harder, with `allow_force`; not given: `stop` again",
               cfg.force, false);
  cfg.running.status = {"2xx"};
  cfg.taken.status = {"2xx"};
  cfg.gone.status = {"404", "410"};
  read_condition(in, "running", "of `status`: it runs; must hold before anything is asked",
                 cfg.running);
  read_condition(in, "gone", "of `status`: it has ended", cfg.gone);
  read_condition(in, "stale", "of `status`: it is another job", cfg.stale);
  read_condition(in, "taken", "of `stop`: it was heard", cfg.taken);
  in.secret("secret", cfg.secret, "signing secret, whsec_<base64>");
  if (!in.has("secret") || !cfg.secret.set()) return;
  const auto text = cfg.secret.reveal();
  if (text && !webhook_key(*text)) in.error("secret", webhook_key(*text).error().message);
}

std::unique_ptr<PlatformStop> make_webhook_stop(const WebhookStopConfig& cfg, core::Clock& clock,
                                                HttpClient* http) {
  return std::make_unique<WebhookStop>(cfg, clock, http);
}

}  // namespace tocsin::actions
