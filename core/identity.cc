// The only file of this room that uses libraries (OpenSSL for SHA, xxHash for names): ids are
// vocabulary, and every room needs the same ones. No header of core shows either library.
#include "core/identity.h"

#include <openssl/evp.h>
#include <xxhash.h>

#include <cstring>
#include <random>

namespace tocsin::core {
namespace {

// UUIDv5(DNS, "tocsin.dev"); tests/unit/core checks it against the derivation.
constexpr RunUid kNamespace{{0x99, 0x0b, 0xb5, 0x41, 0xe5, 0xe4, 0x58, 0x32, 0xae, 0x0e, 0xb9, 0x04,
                             0x3f, 0x39, 0x5a, 0x79}};

template <std::size_t N>
std::array<std::uint8_t, N> digest(const EVP_MD* algorithm, std::string_view bytes) {
  std::array<std::uint8_t, N> out{};
  unsigned int length = 0;
  EVP_Digest(bytes.data(), bytes.size(), out.data(), &length, algorithm, nullptr);
  return out;
}

int nibble(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void stamp_version(RunUid& uid, std::uint8_t version) noexcept {
  uid.bytes[6] = static_cast<std::uint8_t>((uid.bytes[6] & 0x0f) | (version << 4));
  uid.bytes[8] = static_cast<std::uint8_t>((uid.bytes[8] & 0x3f) | 0x80);
}

}  // namespace

// In place: the router looks runs up by it, once for each event.
std::string to_text(const RunUid& uid) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out(36, '-');
  std::size_t at = 0;
  for (const std::uint8_t byte : uid.bytes) {
    if (at == 8 || at == 13 || at == 18 || at == 23) ++at;
    out[at++] = kDigits[byte >> 4];
    out[at++] = kDigits[byte & 15];
  }
  return out;
}

std::optional<RunUid> parse_run_uid(std::string_view text) noexcept {
  if (text.size() != 36) return std::nullopt;
  RunUid uid;
  std::size_t out = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (i == 8 || i == 13 || i == 18 || i == 23) {
      if (text[i] != '-') return std::nullopt;
      ++i;
      continue;
    }
    const int high = nibble(text[i]);
    const int low = nibble(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    uid.bytes[out++] = static_cast<std::uint8_t>(high * 16 + low);
    i += 2;
  }
  return uid;
}

RunUid run_uid_v5(std::string_view name) {
  std::string input(reinterpret_cast<const char*>(kNamespace.bytes.data()), 16);
  input += name;
  const auto sum = digest<20>(EVP_sha1(), input);
  RunUid uid;
  std::memcpy(uid.bytes.data(), sum.data(), uid.bytes.size());
  stamp_version(uid, 5);
  return uid;
}

RunUid run_uid_for(std::string_view job, std::string_view run) {
  if (const auto uid = parse_run_uid(run)) return *uid;
  return run_uid_v5("run:" + std::string(job) + "/" + std::string(run));
}

RunUid run_uid_v4() {
  std::random_device entropy;
  RunUid uid;
  for (std::size_t i = 0; i < uid.bytes.size(); i += 4) {
    const std::uint32_t word = entropy();
    std::memcpy(uid.bytes.data() + i, &word, sizeof word);
  }
  stamp_version(uid, 4);
  return uid;
}

std::uint64_t name_hash(std::string_view name) noexcept {
  return XXH64(name.data(), name.size(), 0);
}

std::uint32_t murmur2(std::string_view key) noexcept {
  constexpr std::uint32_t kSeed = 0x9747b28c;
  constexpr std::uint32_t kMultiplier = 0x5bd1e995;
  auto rest = static_cast<std::uint32_t>(key.size());
  std::uint32_t h = kSeed ^ rest;
  const char* data = key.data();
  while (rest >= 4) {
    std::uint32_t k = 0;
    std::memcpy(&k, data, 4);
    k *= kMultiplier;
    k ^= k >> 24;
    k *= kMultiplier;
    h *= kMultiplier;
    h ^= k;
    data += 4;
    rest -= 4;
  }
  const auto byte = [data](int i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(data[i]));
  };
  if (rest == 3) h ^= byte(2) << 16;
  if (rest >= 2) h ^= byte(1) << 8;
  if (rest >= 1) {
    h ^= byte(0);
    h *= kMultiplier;
  }
  h ^= h >> 13;
  h *= kMultiplier;
  h ^= h >> 15;
  return h;
}

std::int32_t partition_for(std::string_view key, std::int32_t count) noexcept {
  return static_cast<std::int32_t>(murmur2(key) & 0x7fffffffU) % count;
}

std::string route_key(const RunUid& uid, std::uint16_t shard) {
  return shard == 0 ? to_text(uid) : to_text(uid) + "/" + std::to_string(shard);
}

std::string node_route_key(std::string_view node) { return "node:" + std::string(node); }

std::array<std::uint8_t, 32> sha256(std::string_view bytes) {
  // Looked up once: a look-up takes as long as the sum of a short text.
  static const EVP_MD* const kSha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return digest<32>(kSha256 != nullptr ? kSha256 : EVP_sha256(), bytes);
}

std::string hex(std::span<const std::uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const std::uint8_t byte : bytes) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

std::string base32(std::span<const std::uint8_t> bytes) {
  static constexpr char kAlphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
  std::string out;
  std::uint32_t buffer = 0;
  int bits = 0;
  for (const std::uint8_t byte : bytes) {
    buffer = (buffer << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      out += kAlphabet[(buffer >> bits) & 31];
    }
  }
  if (bits > 0) out += kAlphabet[(buffer << (5 - bits)) & 31];
  return out;
}

std::string make_id(std::string_view prefix, std::initializer_list<std::string_view> fields) {
  std::string joined;
  bool first = true;
  for (const std::string_view field : fields) {
    if (!first) joined += '\x1f';
    first = false;
    joined += field;
  }
  return std::string(prefix) + base32(sha256(joined)).substr(0, 26);
}

std::string params_hash(std::string_view canonical_json) {
  return hex(sha256(canonical_json)).substr(0, 16);
}

std::string command_id(const RunUid& uid, std::uint32_t attempt, std::string_view action,
                       std::string_view version) {
  const std::string run = to_text(uid);
  const std::string number = std::to_string(attempt);
  if (version.empty()) return make_id("cmd_", {run, number, action});
  return make_id("cmd_", {run, number, action, version});
}

}  // namespace tocsin::core
