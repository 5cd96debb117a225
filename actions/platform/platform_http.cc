#include "actions/platform/platform_http.h"

#include <algorithm>
#include <charconv>

#include "actions/transport/proxy.h"
#include "actions/transport/redact.h"
#include "core/json.h"

namespace tocsin::actions {
namespace {

constexpr std::size_t kMostAnswer = std::size_t{1} << 20;
constexpr std::size_t kShownAnswer = 300;

PlatformReply no_answer(std::string problem, bool permanent) {
  PlatformReply out;
  out.problem = printable(problem, kShownAnswer);
  out.permanent = permanent;
  return out;
}

bool mends_itself(HttpFailure failure) {
  return failure == HttpFailure::unreachable || failure == HttpFailure::no_answer;
}

}  // namespace

void read_place(config::Reader& in, PlatformPlace& place, PlaceKey url, PlaceKey token) {
  if (url == PlaceKey::required) {
    in.required("url", place.url, "where it answers");
  } else {
    in.optional("url", place.url, "where it answers");
  }
  if (token != PlaceKey::none) {
    in.secret("token", place.token, "the credential by which Tocsin is known there",
              token == PlaceKey::required);
  }
  in.optional("allow_private", place.allow_private,
              "networks that are not public and may be spoken to");
  in.secret("proxy", place.proxy,
            "environment (the default: https_proxy, http_proxy, no_proxy), none, or a URL");
  in.section("tls", "certificates", [&](config::Reader& tls) {
    tls.optional("ca_file", place.tls.ca_file, "authorities to trust instead of the system's");
    tls.optional("cert_file", place.tls.cert_file, "client certificate, PEM");
    tls.optional("key_file", place.tls.key_file, "its key, PEM");
  });
  in.optional("timeout", place.timeout, config::positive(), "for one request");
  auto guard = AddressGuard::create(place.allow_private);
  if (!guard) return in.error("allow_private", guard.error().message);
  place.guard = *guard;
  if (place.tls.cert_file.empty() != place.tls.key_file.empty()) {
    in.error("tls", "cert_file and key_file belong together");
  }
  while (place.url.ends_with('/')) place.url.pop_back();
  if (in.describing() || place.url.empty()) return;
  if (const auto problem = url_problem(place.url, place.guard); !problem.empty()) {
    in.error("url", problem);
  }
}

PlatformHttp::PlatformHttp(PlatformPlace place, HttpClient* http)
    : place_(std::move(place)), http_(http) {
  if (http_ == nullptr) {
    owned_ = curl_http_client();
    http_ = owned_.get();
  }
}

PlatformReply PlatformHttp::send(const PlatformRequest& wanted, std::chrono::milliseconds budget,
                                 const std::string& token_header) {
  Opened opened;
  HttpRequest request;
  request.method = wanted.method;
  request.url = place_.url + wanted.path;
  request.headers = wanted.headers;
  request.headers.emplace_back("user-agent", "tocsin");
  request.body = wanted.body;
  request.tls = place_.tls;
  request.guard = place_.guard;
  request.most_body = kMostAnswer;
  // A call makes up to three requests.
  request.timeout =
      std::min(budget / 3, std::chrono::duration_cast<std::chrono::milliseconds>(place_.timeout));
  if (request.timeout.count() <= 0) return no_answer("no time is left for a request", false);
  if (place_.token.set()) {
    const auto token = opened.reveal(place_.token, "token");
    if (!token) return no_answer(token.error().message, false);  // a mount may be late
    request.headers.emplace_back(token_header,
                                 (token_header == "authorization" ? "Bearer " : "") + *token);
  }
  if (place_.proxy.set()) {
    const auto proxy = opened.reveal(place_.proxy, "proxy");
    if (!proxy) return no_answer(proxy.error().message, false);
    if (const auto problem = proxy_problem(*proxy); !problem.empty()) {
      return no_answer("proxy: " + problem, true);
    }
    request.proxy = *proxy;
  }
  if (wanted.aws != nullptr) {
    auto signing = wanted.aws->open(opened, wanted.service);
    if (!signing) return no_answer(signing.error().message, false);
    request.aws = std::move(*signing);
  }
  for (const std::string& secret : wanted.secrets) opened.add(secret);
  request.credentials = opened.all();
  const HttpResult result = http_->send(request);
  if (result.failure != HttpFailure::none) {
    return no_answer(opened.masked(result.detail), !mends_itself(result.failure));
  }
  PlatformReply out;
  out.status = result.response.status;
  // What a far side says back may hold our credential, also within its JSON.
  const std::string text = opened.masked(result.response.body);
  out.body = printable(text, kShownAnswer);
  if (auto json = core::parse_json(text, kMostAnswer)) out.json = std::move(*json);
  return out;
}

PlatformAnswer not_answered(const PlatformReply& reply, const std::string& who,
                            const std::string& what) {
  if (reply.status == 0) {
    return {reply.permanent ? PlatformSeen::denied : PlatformSeen::unreachable,
            who + " cannot be asked: " + reply.problem, false};
  }
  std::string said = json_text(reply.json, "message");
  if (said.empty()) said = reply.body;
  const bool denied = reply.status == 401 || reply.status == 403;
  return {denied ? PlatformSeen::denied : PlatformSeen::unreachable,
          who + " answered " + std::to_string(reply.status) + " to " + what +
              (said.empty() ? "" : ": " + printable(said, kShownAnswer)),
          false};
}

const core::Value* json_at(const core::Value& value, std::string_view path) {
  const core::Value* at = &value;
  while (at != nullptr && !path.empty()) {
    const std::size_t dot = path.find('.');
    const std::string_view part = path.substr(0, dot);
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
    if (const auto* list = core::as<core::ValueList>(*at)) {
      std::size_t index = 0;
      const auto read = std::from_chars(part.data(), part.data() + part.size(), index);
      const bool whole = read.ec == std::errc{} && read.ptr == part.data() + part.size();
      at = whole && index < list->size() ? &(*list)[index] : nullptr;
    } else {
      at = core::find(*at, part);
    }
  }
  return at;
}

std::string json_text(const core::Value& value, std::string_view path) {
  const auto* text = core::as<std::string>(json_at(value, path));
  return text == nullptr ? std::string() : *text;
}

}  // namespace tocsin::actions
