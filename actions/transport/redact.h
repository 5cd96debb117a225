// Keeps credentials out of every text that leaves the adapter (docs/actions/webhook.md). Internal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tocsin::actions {

/// Replaces every occurrence of a secret in `text`, also percent-encoded, in base64 or
/// escaped as in JSON, by <redacted>; texts shorter than 4 bytes are no secrets.
std::string redact(std::string text, const std::vector<std::string>& secrets);

/// core::visible(): one line, nothing invisible, at most `limit` bytes with a mark where it was cut.
std::string printable(std::string_view text, std::size_t limit);

std::string base64(std::string_view bytes);
/// Everything but unreserved characters as %XX.
std::string percent_encode(std::string_view text);

}  // namespace tocsin::actions
