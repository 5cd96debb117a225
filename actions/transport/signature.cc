#include "actions/transport/signature.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>

#include "actions/transport/redact.h"

namespace tocsin::actions {

core::Result<std::string> webhook_key(std::string_view secret) {
  static constexpr std::string_view kPrefix = "whsec_";
  if (secret.starts_with(kPrefix)) secret.remove_prefix(kPrefix.size());
  const auto wrong = [] {
    return core::invalid_argument(
        "the webhook secret is not whsec_ followed by the base64 of 24 to 64 bytes");
  };
  if (secret.empty() || secret.size() % 4 != 0 || secret.size() > 128) return wrong();
  std::string key(secret.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(key.data()),
                                   reinterpret_cast<const unsigned char*>(secret.data()),
                                   static_cast<int>(secret.size()));
  if (size < 0) return wrong();
  // EVP_DecodeBlock counts the padding as bytes.
  std::size_t padding = 0;
  while (padding < 2 && secret[secret.size() - 1 - padding] == '=') ++padding;
  key.resize(static_cast<std::size_t>(size) - padding);
  if (key.size() < 24 || key.size() > 64) return wrong();
  return key;
}

std::string sign_webhook(std::string_view key, std::string_view id, std::int64_t timestamp_seconds,
                         std::string_view body) {
  std::string content(id);
  content += '.';
  content += std::to_string(timestamp_seconds);
  content += '.';
  content += body;
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(content.data()), content.size(), digest.data(),
       &size);
  return "v1," + base64({reinterpret_cast<const char*>(digest.data()), size});
}

}  // namespace tocsin::actions
