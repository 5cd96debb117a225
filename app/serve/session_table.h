// Sessions of people with a browser: who has shown a token gets a cookie. Memory only.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/clock.h"
#include "core/mutex.h"
#include "core/time.h"

namespace tocsin::app {

/// Thread-safe. A restart ends all of them.
class SessionTable {
 public:
  static constexpr core::Duration kLength = std::chrono::hours(12);
  static constexpr std::size_t kMost = 1000;  // the one that ends first makes room

  /// `clock` outlives it.
  explicit SessionTable(const core::Clock& clock);

  using Hash = std::array<std::uint8_t, 32>;
  /// A new one, of whoever has the token of this hash: the value of its cookie, 256 random bits.
  std::string open(const Hash& token);
  /// The hash of the token it was opened with; nullopt: there is no such session.
  [[nodiscard]] std::optional<Hash> token_of(std::string_view cookie) const;
  void close(std::string_view cookie);

  /// What a page must send in X-Tocsin-CSRF to change something: of this process and this session,
  /// or of this person behind a proxy (`subject`).
  [[nodiscard]] std::string csrf_token(std::string_view subject) const;

 private:
  struct Session {
    Hash token{};
    core::Duration ends{};  // steady
  };
  const core::Clock& clock_;
  const std::string key_;  // of csrf_token
  mutable core::Mutex mutex_;
  std::map<Hash, Session> sessions_ GUARDED_BY(mutex_);  // by the cookie's hash
};

/// At most ten wrong tokens a minute from one address. Thread-safe.
class LoginBrake {
 public:
  explicit LoginBrake(const core::Clock& clock) : clock_(clock) {}

  /// Zero: it may try; else how long it must wait.
  [[nodiscard]] core::Duration wait_of(std::string_view address) const;
  void failed(std::string_view address);

 private:
  struct Failures {
    int count = 0;
    core::Duration until{};  // steady
  };
  const core::Clock& clock_;
  mutable core::Mutex mutex_;
  std::map<std::string, Failures, std::less<>> failures_ GUARDED_BY(mutex_);
};

/// HMAC-SHA256 (RFC 2104).
std::array<std::uint8_t, 32> keyed_hash(std::string_view key, std::string_view text);

}  // namespace tocsin::app
