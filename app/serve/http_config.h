// Where the HTTP server listens, how it speaks, and who may use it: the section `http`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/serve/inbound_config.h"
#include "app/serve/link_seal.h"
#include "config/config.h"

namespace tocsin::app {

/// Each may do what those before it may. anybody: no role is needed.
enum class ApiRole : std::uint8_t { anybody, viewer, operate, stopper, admin };
std::string_view to_string(ApiRole role) noexcept;

struct ApiToken {
  std::string name;  // who has it: written into what they change
  ApiRole role = ApiRole::viewer;
  config::Secret token;
};

/// A proxy in front that says who asks, such as one that speaks OIDC.
struct ProxyAccess {
  std::vector<std::string> trusted;  // networks it asks from
  std::string user_header = "X-Forwarded-User";
  std::string groups_header = "X-Forwarded-Groups";  // names between commas
  std::string secret_header = "X-Tocsin-Proxy-Secret";
  config::Secret secret;                 // not set: it shows a certificate
  std::map<std::string, ApiRole> roles;  // by group
};

struct AccessConfig {
  std::string read = "open";       // open: anybody on this machine; token
  std::vector<std::string> hosts;  // names by which this server is reached, beside loopback's
  std::vector<ApiToken> tokens;
  std::optional<ProxyAccess> proxy = {};  // nullopt: nobody is told by a header
};

struct TlsConfig {
  std::string cert_file;       // PEM: the certificate, then those that lead to its root
  std::string key_file;        // PEM
  std::string client_ca_file;  // PEM; empty: no certificate is asked of clients
};

struct HttpConfig {
  std::string listen = "127.0.0.1:9760";
  AccessConfig access;
  std::optional<TlsConfig> tls = {};  // nullopt: HTTP in clear
  std::vector<InboundHook> inbound = {};
  std::optional<LinkConfig> links = {};  // nullopt: messages have none that act
};
void read(config::Reader& in, HttpConfig& out);

/// invalid_argument: no ADDRESS:PORT.
core::Status check_listen_address(const std::string& listen);

}  // namespace tocsin::app
