// The credentials of one attempt. Internal to actions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config.h"
#include "core/result.h"

namespace tocsin::actions {

/// What was opened here is masked in all that the attempt returns.
class Opened {
 public:
  /// Errors name `key`: not_found, invalid_argument (empty).
  core::Result<std::string> reveal(const config::Secret& secret, std::string_view key);
  /// A form of a credential that is none of redact()'s, such as the bytes of a key.
  void add(std::string secret) { secrets_.push_back(std::move(secret)); }
  [[nodiscard]] std::string masked(std::string text) const;
  [[nodiscard]] const std::vector<std::string>& all() const noexcept { return secrets_; }

 private:
  std::vector<std::string> secrets_;
};

}  // namespace tocsin::actions
