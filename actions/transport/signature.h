// Signatures of the Standard Webhooks specification, scheme v1 (HMAC-SHA256). Internal to actions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

namespace tocsin::actions {

/// The key bytes of "whsec_<base64 of 24…64 bytes>"; the prefix may be left out.
/// invalid_argument otherwise, without the secret in its message.
core::Result<std::string> webhook_key(std::string_view secret);

/// "v1,<base64>" over "<id>.<timestamp>.<body>", the exact bytes of the body.
std::string sign_webhook(std::string_view key, std::string_view id, std::int64_t timestamp_seconds,
                         std::string_view body);

}  // namespace tocsin::actions
