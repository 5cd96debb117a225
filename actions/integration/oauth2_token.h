// Access tokens by OAuth2 client credentials (RFC 6749 §4.4). Internal to actions.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actions/integration/opened.h"
#include "actions/transport/http_client.h"
#include "core/action.h"
#include "core/clock.h"
#include "core/mutex.h"

namespace tocsin::actions {

/// The section `oauth2`.
struct OAuth2Settings {
  std::string client_id;
  config::Secret client_secret;
  std::string token_url;
  std::vector<std::string> scopes;
  std::map<std::string, std::string> parameters;  // further ones of the token request
  std::string credentials_in = "header";          // or body

  [[nodiscard]] bool set() const noexcept { return !token_url.empty(); }
};

/// A token, or why there is none: a `configuration` or `transient` outcome, without a credential.
struct GivenToken {
  std::string text;
  bool kept = false;  // it was fetched by an earlier attempt
  std::optional<core::AttemptOutcome> failure;
};

/// The token of one integration, kept until shortly before it expires. Thread-safe: one thread
/// fetches, the others of the integration wait for it.
class OAuth2Token {
 public:
  OAuth2Token(const OAuth2Settings& settings, HttpClient& http, core::Clock& clock)
      : settings_(settings), http_(http), clock_(clock) {}

  /// Guard, proxy, certificates and the time to connect are those of `like`. `refused`: a token
  /// that the far side no longer takes; empty: none. Blocks at most `budget`, plus what other
  /// threads that wait have left. All credentials go to `opened`.
  GivenToken get(const HttpRequest& like, Opened& opened, std::chrono::milliseconds budget,
                 const std::string& refused);

 private:
  GivenToken fetch(const HttpRequest& like, const std::string& secret, Opened& opened,
                   std::chrono::milliseconds budget) REQUIRES(mutex_);
  GivenToken keep(const HttpResponse& response, Opened& opened) REQUIRES(mutex_);

  const OAuth2Settings& settings_;
  HttpClient& http_;
  core::Clock& clock_;
  core::Mutex mutex_;
  std::string token_ GUARDED_BY(mutex_);   // empty: none
  std::string secret_ GUARDED_BY(mutex_);  // with which it was fetched
  core::Duration until_ GUARDED_BY(mutex_){};
};

}  // namespace tocsin::actions
