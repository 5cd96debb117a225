#include "actions/integration/http_caller.h"

#include <utility>

#include "actions/transport/proxy.h"
#include "actions/transport/redact.h"

namespace tocsin::actions {
namespace {

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

/// The header of a credential that is in the configuration; empty: none is.
core::Result<std::string> configured_authorization(const HttpSettings& settings, Opened& opened) {
  if (settings.bearer_token.set()) {
    const auto token = opened.reveal(settings.bearer_token, "bearer_token");
    if (!token) return token.error();
    return "Bearer " + *token;
  }
  if (settings.basic_auth.set()) {
    const auto password = opened.reveal(settings.basic_auth.password, "basic_auth.password");
    if (!password) return password.error();
    std::string pair = base64(settings.basic_auth.username + ":" + *password);
    opened.add(pair);
    return "Basic " + std::move(pair);
  }
  return std::string();
}

}  // namespace

core::AttemptOutcome misconfigured(std::string detail) {
  core::AttemptOutcome out;
  out.outcome = core::OutcomeClass::configuration;
  out.code = "configuration";
  out.detail = std::move(detail);
  return out;
}

HttpCaller::HttpCaller(const HttpSettings& settings, const Environment& environment,
                       const CommonConfig& common)
    : settings_(settings),
      connect_timeout_(
          std::chrono::duration_cast<std::chrono::milliseconds>(common.connect_timeout)),
      clock_(*environment.clock),
      http_(environment.http) {
  if (http_ == nullptr) {
    owned_ = curl_http_client();
    http_ = owned_.get();
  }
  if (settings.oauth2.set()) {
    token_ = std::make_unique<OAuth2Token>(settings.oauth2, *http_, clock_);
  }
}

core::Result<HttpRequest> HttpCaller::request(Opened& opened, std::string content_type) const {
  const auto url = opened.reveal(settings_.url, "url");
  if (!url) return url.error();
  hide_path(*url, opened);
  if (std::string problem = url_problem(*url, settings_.guard); !problem.empty()) {
    return core::invalid_argument("url: " + problem);
  }
  HttpRequest out;
  out.url = *url;
  out.connect_timeout = connect_timeout_;
  if (settings_.proxy.set()) {
    const auto proxy = opened.reveal(settings_.proxy, "proxy");
    if (!proxy) return proxy.error();
    if (std::string problem = proxy_problem(*proxy); !problem.empty()) {
      return core::invalid_argument("proxy: " + problem);
    }
    out.proxy = *proxy;
  }
  out.tls = settings_.tls;
  out.http2 = settings_.http2;
  out.guard = settings_.guard;
  for (const auto& [name, value] : settings_.headers) out.headers.emplace_back(name, value);
  out.headers.emplace_back("content-type", std::move(content_type));
  out.headers.emplace_back("user-agent", "tocsin");
  auto authorization = configured_authorization(settings_, opened);
  if (!authorization) return authorization.error();
  if (!authorization->empty()) {
    out.headers.emplace_back("authorization", std::move(*authorization));
  }
  return out;
}

HttpSent HttpCaller::send(HttpRequest& request, Opened& opened) const {
  if (token_ == nullptr) {
    request.credentials = opened.all();
    return {http_->send(request), std::nullopt};
  }
  const core::Duration end = clock_.monotonic() + request.timeout;
  HttpSent out;
  std::string refused;
  for (int tries = 0; tries < 2; ++tries) {
    const auto left = [&] {
      return std::chrono::duration_cast<std::chrono::milliseconds>(end - clock_.monotonic());
    };
    GivenToken token = token_->get(request, opened, left(), refused);
    if (token.failure) return {{}, std::move(token.failure)};
    HttpRequest with_token = request;
    with_token.headers.emplace_back("authorization", "Bearer " + token.text);
    with_token.credentials = opened.all();
    with_token.timeout = left();
    if (with_token.timeout.count() <= 0) {
      core::AttemptOutcome late;
      late.outcome = core::OutcomeClass::transient;
      late.code = "timeout";
      late.detail = "the access token took the whole time of an attempt";
      return {{}, std::move(late)};
    }
    out.result = http_->send(with_token);
    if (out.result.response.status != 401 || !token.kept) break;
    refused = token.text;
  }
  return out;
}

}  // namespace tocsin::actions
