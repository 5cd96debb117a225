#include "actions/transport/redact.h"

#include <algorithm>

#include "core/value.h"
#include "core/visible_text.h"

namespace tocsin::actions {
namespace {

constexpr std::string_view kMask = "<redacted>";

void replace_all(std::string& text, const std::string& secret) {
  if (secret.size() < 4) return;
  for (std::size_t at = text.find(secret); at != std::string::npos;
       at = text.find(secret, at + kMask.size())) {
    text.replace(at, secret.size(), kMask);
  }
}

/// As it stands between the quotes of a JSON text.
std::string in_json(const std::string& secret) {
  const std::string quoted = core::to_json(core::Value(secret));
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace

std::string redact(std::string text, const std::vector<std::string>& secrets) {
  for (const std::string& secret : secrets) {
    replace_all(text, secret);
    replace_all(text, percent_encode(secret));
    replace_all(text, base64(secret));
    replace_all(text, in_json(secret));
  }
  return text;
}

std::string printable(std::string_view text, std::size_t limit) {
  return core::visible(text, limit);
}

std::string base64(std::string_view bytes) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    unsigned block = 0;
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t j = 0; j < 3; ++j) {
      block = block << 8U | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      out += j <= count ? kDigits[block >> (18 - 6 * j) & 0x3FU] : '=';
    }
  }
  return out;
}

std::string percent_encode(std::string_view text) {
  static constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
      continue;
    }
    out += '%';
    out += kDigits[static_cast<unsigned char>(c) >> 4U];
    out += kDigits[static_cast<unsigned char>(c) & 0xFU];
  }
  return out;
}

}  // namespace tocsin::actions
