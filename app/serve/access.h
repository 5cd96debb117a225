// Who may ask the API for what (docs/http-api.md).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/serve/http_routes.h"
#include "config/config.h"

namespace tocsin::app {

/// Each may do what those before it may.
enum class ApiRole { viewer, operate, stopper, admin };
std::string_view to_string(ApiRole role) noexcept;

struct ApiToken {
  std::string name;  // who has it: written into what they change
  ApiRole role = ApiRole::viewer;
  config::Secret token;
};

struct AccessConfig {
  std::string read = "open";       // open: anybody on this machine; token
  std::vector<std::string> hosts;  // names by which this server is reached, beside loopback's
  std::vector<ApiToken> tokens;
};
/// The keys `auth` and `hosts` of `http`.
void read(config::Reader& in, AccessConfig& out);

/// Who asks.
struct Principal {
  std::string name;  // of the token; "local": nobody has said
  ApiRole role = ApiRole::viewer;
};

/// Decides for each request of the API. A server that listens beyond this machine answers nobody
/// without a token. Thread-safe.
class Access {
 public:
  /// `listen`: the configured address; `external_url`: its host is one of ours.
  Access(const AccessConfig& config, std::string_view listen, std::string_view external_url);

  /// Tokens that open nothing, a sentence each: too short, or not to be read.
  [[nodiscard]] std::vector<std::string> unusable_tokens() const;

  struct Verdict {
    Principal who;
    std::optional<HttpAnswer> refusal;  // 401, 403, 415 or 421 with what to do
  };
  /// Whether the one who asks may do what needs this role. A request that changes something must be
  /// JSON, so that no form of another page makes one.
  [[nodiscard]] Verdict check(const HttpRequest& request, ApiRole needed) const;

 private:
  [[nodiscard]] bool is_ours(std::string_view host) const;
  [[nodiscard]] const ApiToken* token_of(const HttpRequest& request) const;

  AccessConfig config_;
  std::vector<std::string> hosts_;
  bool loopback_;
};

}  // namespace tocsin::app
