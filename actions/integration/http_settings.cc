#include "actions/integration/http_settings.h"

#include "actions/transport/proxy.h"
#include "actions/transport/redact.h"

namespace tocsin::actions {
namespace {

void check_headers(config::Reader& in, const std::map<std::string, std::string>& headers) {
  for (const auto& [name, value] : headers) {
    const bool word = !name.empty() && name.find_first_of(" :\r\n\t") == std::string::npos;
    if (!word || value.find_first_of("\r\n") != std::string::npos) {
      in.error("headers",
               "\"" + printable(name, 100) + "\" is no header, or its value has a line break");
    }
  }
}

void check_sign_in(config::Reader& in, const HttpSettings& http) {
  const int ways = (http.bearer_token.set() ? 1 : 0) + (in.has("basic_auth") ? 1 : 0) +
                   (in.has("oauth2") ? 1 : 0);
  if (ways > 1) {
    const char* const key = in.has("oauth2") ? "oauth2" : "basic_auth";
    in.error(key,
             "expected one of bearer_token, basic_auth and oauth2, found " + std::to_string(ways));
  }
  if (in.has("basic_auth") && http.basic_auth.username.find(':') != std::string::npos) {
    in.error("basic_auth", "a username cannot have a colon: the password begins behind it");
  }
  if (!in.has("oauth2") || http.oauth2.token_url.empty()) return;
  if (const auto problem = url_problem(http.oauth2.token_url, http.guard); !problem.empty()) {
    in.error("oauth2", "token_url: " + problem);
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
  check_sign_in(in, http);
  if (http.tls.cert_file.empty() != http.tls.key_file.empty()) {
    in.error("tls", "cert_file and key_file belong together");
  }
  if (http.tls.server_name.find_first_of("/:@ \t") != std::string::npos) {
    in.error("tls", "server_name is the name of a host, without scheme and port");
  }
}

void declare_oauth2(config::Reader& in, OAuth2Settings& out) {
  in.required("client_id", out.client_id, config::not_empty(), "who asks for the token");
  in.secret("client_secret", out.client_secret, "its secret", true);
  in.required("token_url", out.token_url, config::not_empty(), "where tokens are asked for");
  in.optional("scopes", out.scopes, "what the token shall allow");
  in.optional("parameters", out.parameters,
              "further parameters of the request, such as audience; no credentials");
  in.optional("credentials_in", out.credentials_in, config::one_of({"header", "body"}),
              "where client_id and client_secret stand in the request");
}

}  // namespace

void HttpSettings::declare(config::Reader& in) {
  in.secret("bearer_token", bearer_token, "sent as Authorization: Bearer …");
  in.section("basic_auth", "a password, sent as Authorization: Basic …",
             [this](config::Reader& basic) {
               basic.required("username", basic_auth.username, config::not_empty(), "the name");
               basic.secret("password", basic_auth.password, "its password", true);
             });
  in.section("oauth2", "a token by client credentials, sent as Authorization: Bearer …",
             [this](config::Reader& section) { declare_oauth2(section, oauth2); });
  in.optional("headers", headers, "further headers; no credentials, they are stored in clear");
  in.optional("allow_private", this->allow_private,
              "networks that are not public and may be posted to, such as 127.0.0.0/8");
  in.secret("proxy", proxy,
            "environment (the default: https_proxy, http_proxy, no_proxy), none, or a URL");
  in.section("tls", "certificates", [this](config::Reader& section) {
    section.optional("ca_file", tls.ca_file, "authorities to trust instead of the system's");
    section.optional("cert_file", tls.cert_file, "client certificate, PEM");
    section.optional("key_file", tls.key_file, "its key, PEM");
    section.optional("server_name", tls.server_name,
                     "whom the certificate must name, if not the host of the URL");
    section.optional("min_version", tls.min_version, config::one_of({"1.2", "1.3"}),
                     "oldest TLS that is spoken");
  });
  in.optional("http2", this->http2, "offer HTTP/2 to a TLS server; false: HTTP/1.1 alone");
  check_settings(in, *this);
}

}  // namespace tocsin::actions
