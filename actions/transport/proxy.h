// Which proxy a request goes through. Pure; internal to actions.
#pragma once

#include <string>
#include <string_view>

#include "actions/transport/address_guard.h"

namespace tocsin::actions {

/// What the environment says of proxies, as libcurl and most programs read it.
struct ProxyEnvironment {
  std::string http;   // http_proxy; HTTP_PROXY is not read, a server may set it from a header
  std::string https;  // https_proxy, HTTPS_PROXY
  std::string all;    // all_proxy, ALL_PROXY
  std::string none;   // no_proxy, NO_PROXY
};

/// Words of the key `proxy` that are no URL.
inline constexpr std::string_view kProxyFromEnvironment = "environment";
inline constexpr std::string_view kNoProxy = "none";

/// The parts of a URL that matter; empty scheme: it is none.
struct UrlParts {
  std::string scheme;  // lower case
  std::string user;    // with password, as written; empty: none
  std::string host;    // lower case, without brackets
  std::string port;    // empty: the scheme's
};
UrlParts url_parts(std::string_view url);

/// The proxy for `url`; empty: none. `wanted`: the key `proxy`. A URL there is used for every host.
std::string proxy_for(std::string_view url, std::string_view wanted,
                      const ProxyEnvironment& environment);
/// Does a list such as ".example.com,10.0.0.0/8,host:8080,*" name this host?
bool in_no_proxy(std::string_view list, const UrlParts& target);

/// What is wrong with a proxy that a user wrote, empty if nothing.
std::string proxy_problem(std::string_view proxy);
/// Why a proxy may not be asked for this host, empty if it may: the proxy resolves the name, so the
/// guard sees addresses only where the URL has one.
std::string proxied_host_problem(std::string_view url, const AddressGuard& guard);

}  // namespace tocsin::actions
