// Port: the right to lead. At most one holder of a name at any time in a cluster (Kafka) or on a
// directory (journal); routing and delivery run only in it
// (docs/decisions/0004-one-active-router.md).
#pragma once

#include <chrono>
#include <optional>

#include "core/result.h"
#include "core/time.h"

namespace tocsin::core {

/// Lives on one thread. Two thirds of its session without a renewal and the holder must stop on
/// its own: nobody else can hold the lease before the whole session is over.
class Lease {
 public:
  static constexpr Duration kSession = std::chrono::seconds(10);

  virtual ~Lease() = default;
  /// Takes the lease if it is free, or renews it; blocks at most about `timeout`. Call it every
  /// second or two, also while somebody else holds it. `steady`: the monotonic time of the call.
  /// unavailable: whether it is held cannot be found out now.
  virtual Status step(Duration steady, std::chrono::milliseconds timeout) = 0;
  /// Until when (monotonic) it is certainly ours; nullopt: it is not.
  [[nodiscard]] virtual std::optional<Duration> valid_until() const = 0;
  /// Gives it up at once, so that the next one need not wait for the session to end. Idempotent.
  virtual void release() = 0;
};

}  // namespace tocsin::core
