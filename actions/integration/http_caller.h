// Requests as the common keys of an HTTP integration say: opened secrets, guard, proxy,
// certificates, credentials. Internal to actions.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "actions/contract/descriptor.h"
#include "actions/integration/http_settings.h"
#include "actions/integration/opened.h"

namespace tocsin::actions {

/// The outcome of an attempt that sends nothing, because of the configuration.
core::AttemptOutcome misconfigured(std::string detail);

/// What came of a request: an answer, or why it was not sent.
struct HttpSent {
  HttpResult result;
  std::optional<core::AttemptOutcome> not_sent;
};

/// Of one integration: its connections and its token. Used from many threads; outlived by nothing
/// that it was made from.
class HttpCaller {
 public:
  HttpCaller(const HttpSettings& settings, const Environment& environment,
             const CommonConfig& common);

  /// To `url`, with all that the keys add but an OAuth2 token. Errors are `configuration` outcomes.
  core::Result<HttpRequest> request(Opened& opened, std::string content_type) const;
  /// With an OAuth2 token where one is configured. If the far side refuses a token that was kept, one
  /// new one is tried. `opened` is shown nothing of. Blocks at most request.timeout.
  HttpSent send(HttpRequest& request, Opened& opened) const;

 private:
  const HttpSettings& settings_;
  std::chrono::milliseconds connect_timeout_;
  core::Clock& clock_;
  std::unique_ptr<HttpClient> owned_;  // of this integration alone, and so are its connections
  HttpClient* http_;
  std::unique_ptr<OAuth2Token> token_;  // null: none is configured
};

}  // namespace tocsin::actions
