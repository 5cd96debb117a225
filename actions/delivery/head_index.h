// Which group of a lane is next, without looking at the others. Internal to actions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/time.h"

namespace tocsin::actions {

/// Classes of waiting: info, warning, error, critical, close.
inline constexpr std::size_t kRanks = 5;

/// What the queue of one group waits for.
struct Head {
  std::uint64_t ticket = 0;  // of its first item; grows with the time of enqueueing
  int rank = 0;              // 0 … kRanks − 1
  core::WallTime enqueued{};
  core::WallTime not_before{};
  core::WallTime expires = core::WallTime::max();  // the first of its items that may expire
  bool in_flight = false;
};

/// `rank`, one class up per 10 minutes waited.
int urgency(int rank, core::WallTime enqueued, core::WallTime now);

/// Every operation costs the logarithm of the number of groups. Inside a rank the older is never
/// less urgent, so one queue per rank in the order of tickets is enough for ageing too.
class HeadIndex {
 public:
  /// Takes the place of what was known of the group.
  void put(const std::string& group, const Head& head);
  void erase(const std::string& group);

  /// The most urgent group whose head is due; of equals the older. Valid until the next change.
  const std::string* best(core::WallTime now);
  /// All groups whose head is due, oldest first.
  std::vector<std::string> due(core::WallTime now);
  /// When a head is due that is not in flight; nullopt: none waits.
  [[nodiscard]] std::optional<core::WallTime> next_due() const;

  /// A group in which something is too old by now.
  [[nodiscard]] const std::string* expired(core::WallTime now) const;
  [[nodiscard]] std::optional<core::WallTime> next_expiry() const;

  [[nodiscard]] bool empty() const noexcept { return heads_.empty(); }

 private:
  using Timed = std::map<std::pair<core::WallTime, std::uint64_t>, const std::string*>;
  void ripen(core::WallTime now);
  void forget(const Head& head);

  std::unordered_map<std::string, Head> heads_;  // its keys are what the others point to
  std::array<std::map<std::uint64_t, const std::string*>, kRanks> due_;
  Timed later_;
  Timed expiries_;
};

}  // namespace tocsin::actions
