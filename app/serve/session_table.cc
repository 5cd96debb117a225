#include "app/serve/session_table.h"

#include <sys/random.h>

#include <algorithm>
#include <cstdlib>

#include "core/identity.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kHashBlock = 64;  // of SHA-256
constexpr int kMostFailures = 10;
constexpr core::Duration kFailuresWithin = std::chrono::minutes(1);
constexpr std::size_t kMostAddresses = 10'000;

std::string random_bytes() {
  std::array<std::uint8_t, 32> out{};
  // Fewer than 256 bytes are never cut short; without entropy nothing is safe.
  if (getrandom(out.data(), out.size(), 0) != static_cast<ssize_t>(out.size())) std::abort();
  return {out.begin(), out.end()};
}

std::string text_of(const SessionTable::Hash& hash) { return {hash.begin(), hash.end()}; }

}  // namespace

SessionTable::Hash keyed_hash(std::string_view key, std::string_view text) {
  std::string padded = key.size() > kHashBlock ? text_of(core::sha256(key)) : std::string(key);
  padded.resize(kHashBlock, '\0');
  std::string inner = padded;
  std::string outer = padded;
  for (char& c : inner) c = static_cast<char>(c ^ 0x36);
  for (char& c : outer) c = static_cast<char>(c ^ 0x5C);
  return core::sha256(outer + text_of(core::sha256(inner + std::string(text))));
}

SessionTable::SessionTable(const core::Clock& clock) : clock_(clock), key_(random_bytes()) {}

std::string SessionTable::open(const Hash& token) {
  const std::string bytes = random_bytes();
  std::string cookie =
      core::base32({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  const core::Duration now = clock_.monotonic();
  const core::MutexLock lock(mutex_);
  std::erase_if(sessions_, [&](const auto& entry) { return entry.second.ends <= now; });
  if (sessions_.size() >= kMost) {
    sessions_.erase(std::min_element(
        sessions_.begin(), sessions_.end(),
        [](const auto& a, const auto& b) { return a.second.ends < b.second.ends; }));
  }
  sessions_.emplace(core::sha256(cookie), Session{token, now + kLength});
  return cookie;
}

std::optional<SessionTable::Hash> SessionTable::token_of(std::string_view cookie) const {
  const Hash hash = core::sha256(cookie);  // what is looked up tells nothing of the cookie
  const core::MutexLock lock(mutex_);
  const auto found = sessions_.find(hash);
  if (found == sessions_.end() || found->second.ends <= clock_.monotonic()) return std::nullopt;
  return found->second.token;
}

void SessionTable::close(std::string_view cookie) {
  const Hash hash = core::sha256(cookie);
  const core::MutexLock lock(mutex_);
  sessions_.erase(hash);
}

std::string SessionTable::csrf_token(std::string_view subject) const {
  return core::base32(keyed_hash(key_, subject));
}

core::Duration LoginBrake::wait_of(std::string_view address) const {
  const core::MutexLock lock(mutex_);
  const auto found = failures_.find(address);
  if (found == failures_.end() || found->second.count < kMostFailures) return {};
  return std::max(found->second.until - clock_.monotonic(), core::Duration{});
}

void LoginBrake::failed(std::string_view address) {
  const core::Duration now = clock_.monotonic();
  const core::MutexLock lock(mutex_);
  std::erase_if(failures_, [&](const auto& entry) { return entry.second.until <= now; });
  if (failures_.size() >= kMostAddresses) failures_.erase(failures_.begin());
  Failures& failures = failures_[std::string(address)];
  if (failures.count++ == 0) failures.until = now + kFailuresWithin;
}

}  // namespace tocsin::app
