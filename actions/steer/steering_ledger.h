// Which runs were asked for captures and adjustments because of an issue, how often, and what their
// ranks answered.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/command.h"
#include "core/current_run.h"
#include "core/identity.h"
#include "core/mutex.h"
#include "core/time.h"

namespace tocsin::actions {

/// How often one attempt of a run may be asked in one slot.
struct SteeringLimits {
  core::Duration every = std::chrono::minutes(10);  // least time between two
  std::uint64_t most = 5;
};

/// Slots of the topic `commands` that issues cause: `adjust/<name>` and `capture/of-<integration>`.
bool is_steering(std::string_view action) noexcept;

/// What the ranks of a run have said to one command. The newest word of each rank.
using SteeringAnswers = std::map<std::uint32_t, core::Ack>;

/// No clock, no I/O: a restart rebuilds it from the topics `commands` and `acks`, read in any order.
/// The newest command of a slot says how many there were (`args.asked`) and which (`args.earlier`).
/// Thread-safe. A slot is forgotten two days after it was asked last.
class SteeringLedger {
 public:
  enum class Answer : std::uint8_t { ask, asked_before, too_soon, too_many };
  using Find = std::function<std::optional<core::CurrentRun>(const core::RunUid&)>;
  static constexpr std::size_t kMostAsked = 32;  // of SteeringLimits::most: they fit one command
  static constexpr std::uint32_t kMostAgain = 3;

  /// A record of `commands`, at start and later. Other slots are passed over.
  void on_command(const core::Command& command);
  void on_ack(const core::Ack& ack);

  /// `ask`: taken from the budget, and `wanted` says so and has a revision above all that its slot
  /// had; release() it if it cannot be written.
  Answer reserve(core::Command& wanted, const SteeringLimits& limits);
  void release(const core::Command& command);
  /// How often the attempt was asked in this slot.
  [[nodiscard]] std::uint64_t asked(const core::RunUid& run, const std::string& slot,
                                    std::uint32_t attempt) const;

  /// The newest command of a slot, if it is this one.
  [[nodiscard]] std::optional<core::Command> find(const core::RunUid& run, const std::string& slot,
                                                  const std::string& command_id) const;
  /// Was it ever asked? Also of one that another has replaced.
  [[nodiscard]] bool known(const core::RunUid& run, const std::string& slot,
                           const std::string& command_id) const;
  [[nodiscard]] SteeringAnswers answers(const std::string& command_id) const;

  /// Commands to be written again: ranks that opened later refused them as `stale`, or had passed the
  /// common step (`too_late`). At most kMostAgain times each, until they expire.
  std::vector<core::Command> due(const Find& find, core::WallTime now);

 private:
  struct Slot {
    std::uint32_t attempt = 0;
    std::uint64_t asked = 0;
    std::vector<std::string> commands;  // ids, the oldest first
    core::WallTime last{};
    std::optional<core::WallTime> before;  // of the reservation
    std::optional<core::Command> newest;
    std::uint64_t revision = 0;  // the highest of all, of any attempt and anybody's
    std::uint32_t again = 0;     // that the newest was written again
  };
  using Key = std::pair<core::RunUid, std::string>;

  void note(Slot& slot, const core::Command& command) REQUIRES(mutex_);
  void forget(core::WallTime now) REQUIRES(mutex_);
  [[nodiscard]] const Slot* at(const core::RunUid& run, const std::string& slot) const
      REQUIRES(mutex_);
  std::optional<core::Command> again(Slot& slot, const core::CurrentRun& current,
                                     core::WallTime now) REQUIRES(mutex_);

  mutable core::Mutex mutex_;
  std::map<Key, Slot> slots_ GUARDED_BY(mutex_);
  std::map<std::string, SteeringAnswers> answers_ GUARDED_BY(mutex_);  // by command id
};

}  // namespace tocsin::actions
