#include "app/serve/access.h"

#include <arpa/inet.h>

#include <algorithm>

#include "app/serve/problem.h"
#include "core/identity.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

constexpr std::string_view kBearer = "Bearer ";
constexpr std::size_t kShortestToken = 16;
constexpr std::array kRoles{ApiRole::viewer, ApiRole::operate, ApiRole::stopper, ApiRole::admin};

// "127.0.0.1:9760" → "127.0.0.1", "[::1]:9760" → "::1", "a.example" → "a.example".
std::string host_of(std::string_view text) {
  if (text.starts_with('[')) {
    return std::string(text.substr(1, std::min(text.find(']'), text.size()) - 1));
  }
  return std::string(text.substr(0, std::min(text.find(':'), text.size())));
}

std::string host_of_url(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return {};
  url.remove_prefix(scheme + 3);
  return host_of(url.substr(0, std::min(url.find('/'), url.size())));
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

HttpAnswer unauthorized(std::string_view detail) {
  HttpAnswer out = problem(401, "no-token", detail);
  out.headers.emplace_back("WWW-Authenticate", "Bearer");
  return out;
}

}  // namespace

std::string_view to_string(ApiRole role) noexcept {
  constexpr std::array<std::string_view, 4> kNames{"viewer", "operator", "stopper", "admin"};
  return kNames[static_cast<std::size_t>(role)];
}

void read(config::Reader& in, AccessConfig& out) {
  in.optional("hosts", out.hosts,
              "host names by which people reach this server; loopback's and that of external_url "
              "need no line");
  in.section("auth", "who may use the API", [&](config::Reader& auth) {
    auth.optional("read", out.read, config::one_of({"open", "token"}),
                  "open: whoever is on this machine may read; token: reading needs a token too");
    auth.list("tokens", "each is sent as Authorization: Bearer", [&](config::Reader& item) {
      ApiToken token;
      std::string role = "viewer";
      item.required("name", token.name, config::not_empty(),
                    "who has it; written into what they change");
      item.optional("role", role, config::one_of({"viewer", "operator", "stopper", "admin"}),
                    "each may do what those before it may");
      item.secret("token", token.token, "the token itself, at least 16 characters", true);
      for (const ApiRole one : kRoles) {
        if (to_string(one) == role) token.role = one;
      }
      out.tokens.push_back(std::move(token));
    });
  });
}

Access::Access(const AccessConfig& config, std::string_view listen, std::string_view external_url)
    : config_(config), hosts_(config.hosts), loopback_(is_loopback(host_of(listen))) {
  if (std::string host = host_of_url(external_url); !host.empty())
    hosts_.push_back(std::move(host));
}

std::vector<std::string> Access::unusable_tokens() const {
  std::vector<std::string> out;
  for (const ApiToken& token : config_.tokens) {
    const auto secret = token.token.reveal();
    if (secret && secret->size() >= kShortestToken) continue;
    out.push_back("the token " + core::visible(token.name) + " opens nothing: " +
                  (secret ? "it has fewer than " + std::to_string(kShortestToken) + " characters"
                          : secret.error().message));
  }
  return out;
}

// A page of another site can reach us by a name of its own that it points at us; an address it cannot.
bool Access::is_ours(std::string_view host) const {
  const std::string name = host_of(host);
  return name == "localhost" || is_address(name) ||
         std::find(hosts_.begin(), hosts_.end(), name) != hosts_.end();
}

const ApiToken* Access::token_of(const HttpRequest& request) const {
  std::string_view given = request.header("authorization");
  if (!given.starts_with(kBearer)) return nullptr;
  given.remove_prefix(kBearer.size());
  // Hashes are compared, so that the time it takes tells nothing of the token.
  const auto hash = core::sha256(given);
  for (const ApiToken& token : config_.tokens) {
    const auto secret = token.token.reveal();
    if (secret && secret->size() >= kShortestToken && core::sha256(*secret) == hash) return &token;
  }
  return nullptr;
}

Access::Verdict Access::check(const HttpRequest& request, ApiRole needed) const {
  const std::string_view host = request.header("host");
  if (!is_ours(host)) {
    return {{},
            problem(421, "foreign-host",
                    "\"" + core::visible(host, 100) +
                        "\" is no host of this server; name it in http.hosts")};
  }
  const std::string_view origin = request.header("origin");
  if (!origin.empty() && host_of_url(origin) != host_of(host)) {
    return {{},
            problem(403, "foreign-origin",
                    "a page of " + core::visible(origin, 100) + " may not use this API")};
  }
  const bool changes = request.method != "GET" && request.method != "HEAD";
  if (changes && !request.body.empty() && !is_json(request.header("content-type"))) {
    return {{}, problem(415, "not-json", "send the body as Content-Type: application/json")};
  }
  if (const ApiToken* token = token_of(request)) {
    if (token->role >= needed) return {{token->name, token->role}, std::nullopt};
    return {{token->name, token->role},
            problem(403, "role",
                    "the token " + core::visible(token->name) + " has the role " +
                        std::string(to_string(token->role)) + "; this needs " +
                        std::string(to_string(needed)))};
  }
  if (!request.header("authorization").empty())
    return {{}, unauthorized("this token is none of http.auth.tokens")};
  const bool here = loopback_ && is_loopback(request.client);
  if (here && config_.read == "open" && needed == ApiRole::viewer)
    return {{"local", ApiRole::viewer}, std::nullopt};
  return {
      {},
      unauthorized(
          "send Authorization: Bearer with a token of http.auth.tokens whose role is at least " +
          std::string(to_string(needed)))};
}

}  // namespace tocsin::app
