// Requests that are sent twice are done once: answers by Idempotency-Key.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "app/api/api_route.h"
#include "core/clock.h"
#include "core/mutex.h"
#include "core/time.h"

namespace tocsin::app {

/// Keeps the answers of 24 h, in memory. Thread-safe.
class Idempotency {
 public:
  static constexpr core::Duration kKept = std::chrono::hours(24);
  static constexpr std::size_t kMost = 10'000;
  static constexpr std::size_t kMostBytes = 16 * 1024 * 1024;  // of answers

  explicit Idempotency(const core::Clock& clock) : clock_(clock) {}

  /// What `act` answers. With a key that the same one has sent before: the first answer again, with
  /// Idempotent-Replayed. 409: the first is still being made. 422: it was another request. An answer
  /// of 500 or more is not kept: trying again may help.
  HttpAnswer once(const ApiCall& call, const std::function<HttpAnswer()>& act);

 private:
  using Hash = std::array<std::uint8_t, 32>;
  struct Kept {
    Hash request{};
    std::optional<HttpAnswer> answer;  // nullopt: it is being made
    core::Duration ends{};             // steady
  };
  std::optional<HttpAnswer> known(const Hash& key, const Hash& request);
  void keep(const Hash& key, const HttpAnswer& answer);

  const core::Clock& clock_;
  core::Mutex mutex_;
  std::map<Hash, Kept> kept_ GUARDED_BY(mutex_);
  std::size_t bytes_ GUARDED_BY(mutex_) = 0;
};

}  // namespace tocsin::app
