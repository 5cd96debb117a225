#include "app/serve/access.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "app/serve/problem.h"
#include "core/identity.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

constexpr std::string_view kBearer = "Bearer ";
constexpr std::string_view kCsrf = "x-tocsin-csrf";
constexpr std::size_t kShortestToken = 16;
constexpr std::size_t kLongestName = 200;  // of a person or a group, as a proxy says it

// "127.0.0.1:9760" → "127.0.0.1", "[::1]:9760" → "::1", "a.example" → "a.example".
std::string host_of(std::string_view text) {
  if (text.starts_with('[')) {
    return std::string(text.substr(1, std::min(text.find(']'), text.size()) - 1));
  }
  return std::string(text.substr(0, std::min(text.find(':'), text.size())));
}

// Host and port of a URL; empty: it is none.
std::string_view authority_of(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return {};
  url.remove_prefix(scheme + 3);
  return url.substr(0, std::min(url.find('/'), url.size()));
}

bool is_address(const std::string& host) {
  in_addr four{};
  in6_addr six{};
  return inet_pton(AF_INET, host.c_str(), &four) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &six) == 1;
}

bool is_loopback(std::string_view host) {
  return host == "::1" || host.starts_with("127.") || host == "::ffff:127.0.0.1";
}

// Types that no form of a page can send.
bool is_json(std::string_view type) {
  return type.starts_with("application/json") || type.starts_with("application/cloudevents");
}

bool changes(const HttpRequest& request) {
  return request.method != "GET" && request.method != "HEAD";
}

// Hashes are compared, so that the time it takes tells nothing of the secret.
bool same_secret(std::string_view given, std::string_view secret) {
  return core::sha256(given) == core::sha256(secret);
}

HttpAnswer unauthorized(std::string_view detail) {
  HttpAnswer out = problem(401, "no-token", detail);
  out.headers.emplace_back("WWW-Authenticate", "Bearer");
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::optional<ApiRole> highest_role(const std::map<std::string, ApiRole>& roles,
                                    std::string_view groups) {
  std::optional<ApiRole> out;
  while (!groups.empty()) {
    const std::size_t comma = std::min(groups.find(','), groups.size());
    const auto found = roles.find(std::string(trimmed(groups.substr(0, comma))));
    if (found != roles.end()) out = std::max(out.value_or(ApiRole::anybody), found->second);
    groups.remove_prefix(std::min(comma + 1, groups.size()));
  }
  return out;
}

std::string cookie_name(bool secure) {
  // A browser takes a cookie of the first name only from this very host, and only over TLS.
  return secure ? "__Host-tocsin_session" : "tocsin_session";
}

}  // namespace

std::string_view to_string(KnownBy by) noexcept {
  constexpr std::array<std::string_view, 6> kNames{"nothing", "machine", "token",
                                                   "session", "proxy",   "signature"};
  return kNames[static_cast<std::size_t>(by)];
}

Access::Access(const AccessConfig& config, std::string_view listen, std::string_view external_url,
               const SessionTable* sessions)
    : config_(config),
      sessions_(sessions),
      hosts_(config.hosts),
      loopback_(listens_on_loopback(listen)) {
  if (std::string host = host_of(authority_of(external_url)); !host.empty())
    hosts_.push_back(std::move(host));
  if (!config_.proxy) return;
  if (auto trusted = Networks::parse(config_.proxy->trusted)) trusted_ = std::move(*trusted);
}

bool listens_on_loopback(std::string_view listen) { return is_loopback(host_of(listen)); }

std::string_view Access::mode() const {
  if (config_.proxy) return "proxy";
  return loopback_ && config_.read == "open" ? "loopback" : "token";
}

std::vector<std::string> Access::unusable_tokens() const {
  std::vector<std::string> out;
  const auto look = [&](const std::string& what, const config::Secret& one) {
    const auto secret = one.reveal();
    if (secret && secret->size() >= kShortestToken) return;
    out.push_back(what + " opens nothing: " +
                  (secret ? "it has fewer than " + std::to_string(kShortestToken) + " characters"
                          : secret.error().message));
  };
  for (const ApiToken& token : config_.tokens)
    look("the token " + core::visible(token.name), token.token);
  if (config_.proxy && config_.proxy->secret.set())
    look("the proxy's secret", config_.proxy->secret);
  return out;
}

// A page of another site can reach us by a name of its own that it points at us; an address it cannot.
bool Access::is_ours(std::string_view host) const {
  const std::string name = host_of(host);
  return name == "localhost" || is_address(name) ||
         std::find(hosts_.begin(), hosts_.end(), name) != hosts_.end();
}

// A page of this very server, or of a name that is configured. Another port of this machine may serve
// anybody's page.
bool Access::may_ask(std::string_view origin, std::string_view host) const {
  const std::string_view authority = authority_of(origin);
  if (authority.empty()) return false;
  return authority == host ||
         std::find(hosts_.begin(), hosts_.end(), host_of(authority)) != hosts_.end();
}

std::optional<HttpAnswer> Access::refuse_place(const HttpRequest& request) const {
  const std::string_view host = request.header("host");
  if (!is_ours(host)) {
    return problem(
        421, "foreign-host",
        "\"" + core::visible(host, 100) + "\" is no host of this server; name it in http.hosts");
  }
  const std::string_view origin = request.header("origin");
  if (!origin.empty() && !may_ask(origin, host)) {
    return problem(403, "foreign-origin",
                   "a page of " + core::visible(origin, 100) + " may not use this API");
  }
  if (changes(request) && !request.body.empty() && !is_json(request.header("content-type")))
    return problem(415, "not-json", "send the body as Content-Type: application/json");
  return std::nullopt;
}

const ApiToken* Access::token_with(const SessionTable::Hash& hash) const {
  const ApiToken* found = nullptr;  // all are looked at, whichever it is
  for (const ApiToken& token : config_.tokens) {
    const auto secret = token.token.reveal();
    if (secret && secret->size() >= kShortestToken && core::sha256(*secret) == hash) found = &token;
  }
  return found;
}

const ApiToken* Access::token_of(std::string_view given) const {
  return token_with(core::sha256(given));
}

bool Access::is_proxy(const HttpRequest& request) const {
  const ProxyAccess& proxy = *config_.proxy;
  if (!trusted_.holds(request.client)) return false;
  if (!proxy.secret.set()) return !request.certificate.empty();
  const auto secret = proxy.secret.reveal();
  return secret && secret->size() >= kShortestToken &&
         same_secret(request.header(proxy.secret_header), *secret);
}

// What a client sends itself must not stand for what the proxy says: each header comes once.
Access::Verdict Access::proxied(const HttpRequest& request) const {
  const ProxyAccess& proxy = *config_.proxy;
  const std::string name = core::visible(trimmed(request.header(proxy.user_header)), kLongestName);
  if (name.empty() || request.count(proxy.user_header) != 1 ||
      request.count(proxy.groups_header) > 1) {
    return {{}, unauthorized("the proxy must say once who asks, in " + proxy.user_header)};
  }
  const auto role = highest_role(proxy.roles, request.header(proxy.groups_header));
  Principal who{name, role.value_or(ApiRole::anybody), KnownBy::proxy, {}};
  if (sessions_ != nullptr) who.csrf = sessions_->csrf_token("proxy:" + name);
  return {who, std::nullopt};
}

Access::Verdict Access::who_asks(const HttpRequest& request) const {
  if (config_.proxy && is_proxy(request)) return proxied(request);
  std::string_view given = request.header("authorization");
  if (!given.empty()) {
    const ApiToken* token = nullptr;
    if (given.starts_with(kBearer)) token = token_of(given.substr(kBearer.size()));
    if (token == nullptr) return {{}, unauthorized("this token is none of http.auth.tokens")};
    return {{token->name, token->role, KnownBy::token, {}}, std::nullopt};
  }
  const std::string_view cookie = cookie_of(request);
  if (sessions_ != nullptr && !cookie.empty()) {
    const auto hash = sessions_->token_of(cookie);
    const ApiToken* token = hash ? token_with(*hash) : nullptr;
    if (token != nullptr) {
      return {{token->name, token->role, KnownBy::session,
               sessions_->csrf_token("session:" + std::string(cookie))},
              std::nullopt};
    }
  }
  const bool here = loopback_ && is_loopback(request.client) && !config_.proxy;
  if (here && config_.read == "open")
    return {{"local", ApiRole::viewer, KnownBy::machine, {}}, std::nullopt};
  return {{"", ApiRole::anybody, KnownBy::nothing, {}}, std::nullopt};
}

HttpAnswer Access::unknown(const HttpRequest& request, ApiRole needed) const {
  const std::string role(to_string(needed));
  if (config_.proxy) {
    return unauthorized(
        "come through the proxy of http.auth.proxy, or send Authorization: Bearer "
        "with a token whose role is at least " +
        role);
  }
  const bool expired = !cookie_of(request).empty();
  return unauthorized((expired ? "the session is over; begin a new one, or " : "") +
                      std::string("send Authorization: Bearer with a token of http.auth.tokens "
                                  "whose role is at least ") +
                      role);
}

Access::Verdict Access::check(const HttpRequest& request, ApiRole needed, bool only_reads) const {
  if (auto refusal = refuse_place(request)) return {{}, std::move(refusal)};
  Verdict out = who_asks(request);
  if (out.refusal) return out;
  const Principal& who = out.who;
  if (changes(request) && !only_reads && !who.csrf.empty() &&
      !same_secret(request.header(kCsrf), who.csrf)) {
    out.refusal =
        problem(403, "csrf", "send X-Tocsin-CSRF with the value of `csrf` in GET /api/v1/status");
    return out;
  }
  if (who.role >= needed) return out;
  if (who.by == KnownBy::nothing || who.by == KnownBy::machine) {
    out.refusal = unknown(request, needed);
  } else if (who.by == KnownBy::proxy && who.role == ApiRole::anybody) {
    out.refusal = problem(
        403, "role",
        core::visible(who.name) + " is in no group that has a role (http.auth.proxy.roles)");
  } else {
    out.refusal =
        problem(403, "role",
                std::string(who.by == KnownBy::proxy ? "" : "the token ") +
                    core::visible(who.name) + " has the role " + std::string(to_string(who.role)) +
                    "; this needs " + std::string(to_string(needed)));
  }
  return out;
}

std::string_view Access::cookie_of(const HttpRequest& request) {
  std::string_view cookies = request.header("cookie");
  const std::string wanted = cookie_name(request.secure) + "=";
  while (!cookies.empty()) {
    const std::size_t end = std::min(cookies.find(';'), cookies.size());
    const std::string_view one = trimmed(cookies.substr(0, end));
    if (one.starts_with(wanted)) return one.substr(wanted.size());
    cookies.remove_prefix(std::min(end + 1, cookies.size()));
  }
  return {};
}

std::string Access::cookie_header(std::string_view value, bool secure) {
  const auto length = std::chrono::duration_cast<std::chrono::seconds>(SessionTable::kLength);
  return cookie_name(secure) + "=" + std::string(value) +
         "; Path=/; HttpOnly; SameSite=Strict; Max-Age=" +
         std::to_string(value.empty() ? 0 : length.count()) + (secure ? "; Secure" : "");
}

}  // namespace tocsin::app
