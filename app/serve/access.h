// Who may ask the API for what (docs/http-api.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/serve/http_config.h"
#include "app/serve/http_routes.h"
#include "app/serve/networks.h"
#include "app/serve/session_table.h"

namespace tocsin::app {

/// How we know who asks.
enum class KnownBy : std::uint8_t { nothing, machine, token, session, proxy, signature };
std::string_view to_string(KnownBy by) noexcept;

/// Who asks.
struct Principal {
  std::string name;  // of the token, or as the proxy says; "local": nobody has said
  ApiRole role = ApiRole::viewer;
  KnownBy by = KnownBy::nothing;
  std::string csrf =
      {};  // what a change must carry; empty: nothing, no browser sends this by itself
};

/// Whether a configured address is one that only this machine reaches.
bool listens_on_loopback(std::string_view listen);

/// Decides for each request of the API. A server that listens beyond this machine answers nobody
/// without a token. Thread-safe.
class Access {
 public:
  /// `listen`: the configured address; `external_url`: its host is one of ours. `sessions` outlives
  /// it; null: there are none.
  Access(const AccessConfig& config, std::string_view listen, std::string_view external_url,
         const SessionTable* sessions = nullptr);

  /// Tokens that open nothing, a sentence each: too short, or not to be read.
  [[nodiscard]] std::vector<std::string> unusable_tokens() const;
  /// loopback, token or proxy: how people come in (docs/http-api.md).
  [[nodiscard]] std::string_view mode() const;

  struct Verdict {
    Principal who;
    std::optional<HttpAnswer> refusal;  // 401, 403, 415 or 421 with what to do
  };
  /// Whether the one who asks may do what needs this role. A request that is no GET must be JSON, so
  /// that no form of another page makes one, and have the CSRF token of its session, unless it
  /// `only_reads`.
  [[nodiscard]] Verdict check(const HttpRequest& request, ApiRole needed,
                              bool only_reads = false) const;

  /// The token with these characters; null: none opens with them.
  [[nodiscard]] const ApiToken* token_of(std::string_view given) const;
  /// The value of the session's cookie; empty: the request has none.
  static std::string_view cookie_of(const HttpRequest& request);
  /// As Set-Cookie has it; an empty value takes it back.
  static std::string cookie_header(std::string_view value, bool secure);

 private:
  [[nodiscard]] bool is_ours(std::string_view host) const;
  [[nodiscard]] bool may_ask(std::string_view origin, std::string_view host) const;
  [[nodiscard]] std::optional<HttpAnswer> refuse_place(const HttpRequest& request) const;
  [[nodiscard]] Verdict who_asks(const HttpRequest& request) const;
  [[nodiscard]] Verdict proxied(const HttpRequest& request) const;
  [[nodiscard]] bool is_proxy(const HttpRequest& request) const;
  [[nodiscard]] const ApiToken* token_with(const SessionTable::Hash& hash) const;
  [[nodiscard]] HttpAnswer unknown(const HttpRequest& request, ApiRole needed) const;

  AccessConfig config_;
  const SessionTable* sessions_;
  Networks trusted_;
  std::vector<std::string> hosts_;
  bool loopback_;
};

}  // namespace tocsin::app
