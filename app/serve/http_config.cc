#include "app/serve/http_config.h"

#include <array>

#include "app/serve/networks.h"
#include "core/text.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

constexpr std::array kRoles{ApiRole::viewer, ApiRole::operate, ApiRole::stopper, ApiRole::admin};
constexpr std::string_view kRolesSchema =
    R"({"type":"object","additionalProperties":{"enum":["viewer","operator","stopper","admin"]}})";

std::vector<std::string> role_names() {
  std::vector<std::string> out;
  for (const ApiRole role : kRoles) out.emplace_back(to_string(role));
  return out;
}

std::optional<ApiRole> role_of(std::string_view name) {
  for (const ApiRole role : kRoles) {
    if (to_string(role) == name) return role;
  }
  return std::nullopt;
}

void read_token(config::Reader& in, ApiToken& out) {
  std::string role = "viewer";
  in.required("name", out.name, config::not_empty(), "who has it; written into what they change");
  in.optional("role", role, config::one_of(role_names()), "each may do what those before it may");
  in.secret("token", out.token, "the token itself, at least 16 characters", true);
  out.role = role_of(role).value_or(ApiRole::viewer);
}

void read_roles(config::Reader& in, ProxyAccess& out) {
  core::Value given;
  in.any("roles", given, "role by group: viewer, operator, stopper or admin", kRolesSchema);
  if (given.is_null()) return;
  const auto* roles = core::as<core::ValueMap>(given);
  if (roles == nullptr) return in.error("roles", "expected GROUP: ROLE");
  for (const auto& [group, role] : *roles) {
    const auto* name = core::as<std::string>(role);
    const auto known = role_of(name == nullptr ? "" : *name);
    if (known) {
      out.roles.insert_or_assign(group, *known);
      continue;
    }
    const std::string near = core::nearest(name == nullptr ? "" : *name, role_names());
    in.error("roles." + group, "expected viewer, operator, stopper or admin" +
                                   (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }
}

void read_proxy(config::Reader& in, ProxyAccess& out) {
  in.required("trusted", out.trusted, "networks that it asks from, such as 10.0.0.7/32");
  in.optional("user_header", out.user_header, config::not_empty(), "who asks");
  in.optional("groups_header", out.groups_header, config::not_empty(),
              "the groups of who asks, between commas");
  in.optional("secret_header", out.secret_header, config::not_empty(),
              "header in which the proxy sends its secret");
  in.secret("secret", out.secret,
            "by which the proxy is known, at least 16 characters; without it, by its certificate");
  read_roles(in, out);
  if (in.describing()) return;
  for (std::size_t i = 0; i < out.trusted.size(); ++i) {
    const auto good = Networks::parse({&out.trusted[i], 1});
    if (!good) in.error("trusted[" + std::to_string(i) + "]", good.error().message);
  }
}

void read_auth(config::Reader& in, AccessConfig& out) {
  in.optional("read", out.read, config::one_of({"open", "token"}),
              "open: whoever is on this machine may read; token: reading needs a token too");
  in.list("tokens", "each is sent as Authorization: Bearer",
          [&](config::Reader& item) { read_token(item, out.tokens.emplace_back()); });
  in.section("proxy",
             "a proxy in front says who asks; nobody else may then read or change anything "
             "without a token",
             [&](config::Reader& proxy) { read_proxy(proxy, out.proxy.emplace()); });
}

void read_tls(config::Reader& in, TlsConfig& out) {
  in.required("cert_file", out.cert_file, config::not_empty(),
              "certificate in PEM, followed by those that lead to its root; a changed file counts "
              "at the next connection");
  in.required("key_file", out.key_file, config::not_empty(),
              "private key of the certificate in PEM, without a password");
  in.optional("client_ca_file", out.client_ca_file,
              "roots in PEM: who connects must show a certificate that leads to one of them");
}

}  // namespace

std::string_view to_string(ApiRole role) noexcept {
  constexpr std::array<std::string_view, 5> kNames{"anybody", "viewer", "operator", "stopper",
                                                   "admin"};
  return kNames[static_cast<std::size_t>(role)];
}

void read(config::Reader& in, HttpConfig& out) {
  config::Check<std::string> address;
  address.ok = [](const std::string& text) { return check_listen_address(text).has_value(); };
  address.expected = "IP:PORT such as 127.0.0.1:9760 or [::]:9760";
  in.optional("listen", out.listen, address,
              "address:port of /metrics, health and the API; port 0 picks a free one");
  in.section("tls", "speak TLS 1.2 or newer, and nothing else, at this address",
             [&](config::Reader& tls) { read_tls(tls, out.tls.emplace()); });
  in.optional("hosts", out.access.hosts,
              "host names by which people reach this server; loopback's and that of external_url "
              "need no line");
  in.section("auth", "who may use the API",
             [&](config::Reader& auth) { read_auth(auth, out.access); });
  read_inbound(in, out.inbound);
  in.section("links", "links in mails by which one acknowledges or silences without signing in",
             [&](config::Reader& links) { read(links, out.links.emplace()); });
  const bool certificates = out.tls && !out.tls->client_ca_file.empty();
  if (in.describing() || !out.access.proxy || out.access.proxy->secret.set() || certificates)
    return;
  in.error("auth.proxy",
           "whoever asks from a trusted network could say that it is the proxy: give it a "
           "secret_file, or demand certificates (http.tls.client_ca_file)");
}

}  // namespace tocsin::app
