#include "config/secret_reads.h"

#include <array>
#include <atomic>
#include <functional>

namespace tocsin::config {
namespace {

constexpr std::size_t kFiles = 512;

/// A file by the hash of its path; both 0: free. No credential stands here, only a hash of it.
struct SecretFile {
  std::atomic<std::uint64_t> path{0};
  std::atomic<std::uint64_t> value{0};
};

std::array<SecretFile, kFiles> secret_files;
std::atomic<std::uint64_t> reloads{0};

std::uint64_t hash_of(std::string_view text) noexcept {
  const std::uint64_t out = std::hash<std::string_view>{}(text);
  return out == 0 ? 1 : out;
}

}  // namespace

void note_secret_read(std::string_view path, std::string_view value) noexcept {
  const std::uint64_t wanted = hash_of(path);
  for (std::size_t i = 0; i < kFiles; ++i) {
    SecretFile& file = secret_files[(wanted + i) % kFiles];
    std::uint64_t there = 0;
    const bool ours = file.path.compare_exchange_strong(there, wanted) || there == wanted;
    if (!ours) continue;
    const std::uint64_t now = hash_of(value);
    const std::uint64_t before = file.value.exchange(now);
    if (before != 0 && before != now) reloads.fetch_add(1);
    return;
  }
}

std::uint64_t secret_reloads() noexcept { return reloads.load(); }

}  // namespace tocsin::config
