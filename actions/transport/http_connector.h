// A client that only connects. Internal to actions.
#pragma once

#include <memory>
#include <string_view>

#include "actions/transport/http_client.h"

namespace tocsin::actions {

inline constexpr std::string_view kPeerAddress = "address";
inline constexpr std::string_view kCertificateEnds = "certificate-ends";

/// By libcurl: looks the name up, checks the address, connects (through the proxy) and does the TLS
/// handshake of a request, sends none of it, and closes. The response of a success has no status; its
/// headers are kPeerAddress and, with TLS, kCertificateEnds.
std::unique_ptr<HttpClient> curl_http_connector();

}  // namespace tocsin::actions
