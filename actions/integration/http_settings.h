// The keys of every HTTP integration. Internal to actions.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "actions/integration/oauth2_token.h"
#include "actions/transport/http_client.h"
#include "config/config.h"

namespace tocsin::actions {

/// The section `basic_auth`.
struct BasicAuth {
  std::string username;
  config::Secret password;

  [[nodiscard]] bool set() const noexcept { return !username.empty() || password.set(); }
};

/// What HttpSettings::declare() declares, and `url`; a secret also as <key>_file.
inline constexpr std::string_view kHttpKeys[] = {
    "url",     "url_file",      "bearer_token", "bearer_token_file", "basic_auth", "oauth2",
    "headers", "allow_private", "proxy",        "proxy_file",        "tls",        "http2"};

struct HttpSettings {
  config::Secret url;           // set beforehand: the default, and no longer required
  config::Secret bearer_token;  // at most one of these three
  BasicAuth basic_auth;
  OAuth2Settings oauth2;
  std::map<std::string, std::string> headers;
  std::vector<std::string> allow_private;
  config::Secret proxy;  // not set: the environment says
  HttpTls tls;
  bool http2 = true;
  AddressGuard guard;  // made from allow_private

  /// All keys but `url`, and what is wrong with them and with `url`.
  void declare(config::Reader& in);
};

}  // namespace tocsin::actions
