// Port: one HTTP exchange, and what its result means for a delivery. Internal to actions.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actions/transport/address_guard.h"
#include "core/action.h"
#include "core/time.h"

namespace tocsin::actions {

/// Files are read again by the first request after they changed.
struct HttpTls {
  std::string ca_file;    // empty: the system's
  std::string cert_file;  // client certificate and key: both or none
  std::string key_file;
  std::string server_name;          // whom the certificate must name; empty: the host of the URL
  std::string min_version = "1.2";  // or 1.3
};

/// Signs a request as AWS services ask (Signature Version 4).
struct AwsSigning {
  std::string region;
  std::string service;  // as AWS spells it in the scope: sns, monitoring, sagemaker
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;  // of temporary credentials; empty: they are permanent
};

struct HttpRequest {
  std::string method = "POST";
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string body_in_words;  // of a body that is no text: what a test message shows of it
  std::chrono::milliseconds connect_timeout{3000};
  std::chrono::milliseconds timeout{10000};
  HttpTls tls;
  bool http2 = true;  // offered to a TLS server, which may choose HTTP/1.1; false: HTTP/1.1 alone
  AddressGuard guard;
  std::string proxy;  // empty or "environment", "none", or a URL, which may hold a password
  std::optional<AwsSigning> aws;
  /// What was opened for this request: never shown. Valid while it is sent.
  std::span<const std::string> credentials;
  std::size_t most_body = std::size_t{64} * 1024;  // of the answer; what is longer is cut
  bool answers_credential = false;                 // the body of the answer is shown to nobody
};

struct HttpResponse {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;  // its beginning: HttpRequest::most_body

  [[nodiscard]] std::string header(std::string_view name) const;
};

enum class HttpFailure {
  none,         // `response` holds
  bad_request,  // the request itself cannot be sent: URL, header
  blocked,      // the guard refused the address
  unreachable,  // no name, no connection, or closed before an answer
  certificate,  // TLS was refused by either side
  proxy,        // the proxy refuses: who we are, or the host
  no_answer,    // bytes were sent and no complete answer came in time
  not_sent,     // on purpose: a dry run
};

struct HttpResult {
  HttpFailure failure = HttpFailure::none;
  std::string detail;  // of a failure; may contain what the request contains: redact it
  HttpResponse response;
};

class HttpClient {
 public:
  virtual ~HttpClient() = default;
  /// Blocks at most request.timeout. Never follows a redirect. Thread-safe.
  virtual HttpResult send(const HttpRequest& request) = 0;
};

/// The libcurl adapter: peer and host verified. Through a proxy the guard holds for
/// hosts that are addresses: the proxy resolves names, and is trusted (docs/actions/README.md).
/// Connections are kept per client and thread (idle 60 s, 5 min in all), and never used with
/// another guard than the one that let them be opened, or after a TLS file changed.
std::unique_ptr<HttpClient> curl_http_client();

/// Problem with a URL a user wrote, empty if none: http or https, a host, no user:password@.
std::string url_problem(const std::string& url, const AddressGuard& guard);

/// Table of docs/actions/README.md. `now`: for Retry-After given as a date.
core::AttemptOutcome classify(const HttpResult& result, core::WallTime now);
/// No far side makes us wait longer than this at once.
inline constexpr core::Duration kLongestRetryAfter = std::chrono::hours(1);

/// Delta seconds or HTTP-date (RFC 9110 §10.2.3), at most kLongestRetryAfter, at least 0; nullopt
/// for anything else.
std::optional<core::Duration> parse_retry_after(std::string_view text, core::WallTime now);

}  // namespace tocsin::actions
