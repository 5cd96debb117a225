// Signatures of links by which one acts from a mail: the section http.links.
#pragma once

#include <string>
#include <string_view>

#include "config/config.h"
#include "core/result.h"
#include "core/time.h"

namespace tocsin::app {

struct LinkConfig {
  config::Secret secret;
  config::Secret previous_secret;  // accepted too while the secret is rotated
  core::Duration lifetime = std::chrono::hours(24);
};
void read(config::Reader& in, LinkConfig& out);

/// The same on every replica and after a restart: it keeps nothing. Thread-safe.
class LinkSeal {
 public:
  static constexpr std::size_t kShortestSecret = 16;
  static constexpr std::size_t kSignature = 32;  // characters: 160 bits

  explicit LinkSeal(LinkConfig config) : config_(std::move(config)) {}

  /// kSignature of a-z and 2-7. Errors: the secret cannot be read, or is too short.
  [[nodiscard]] core::Result<std::string> sign(std::string_view text) const;
  /// Whether we have signed this text, by this secret or the one before.
  [[nodiscard]] bool is_ours(std::string_view text, std::string_view signature) const;

 private:
  LinkConfig config_;
};

}  // namespace tocsin::app
