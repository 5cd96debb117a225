// Has every rank heard in time of the step at whose end all leave? If not, a later one is named
// (docs/actions/stop_training.md).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actions/contract/descriptor.h"
#include "core/command.h"
#include "core/time.h"

namespace tocsin::actions {

/// Follows the stops of runs with several ranks that name a step (`not_before_step`). A rank must
/// not leave a collective alone: when one has not answered `received` while the others are half-way
/// to the step, or answers `too_late`, the stop is to be written again with a later step. After
/// kLater of these, or once a rank obeys, it stays as it is: a rank that died does not hold the
/// others, and what hangs is the ladder's business. No clock, no I/O; lives on one strand.
class StopMuster {
 public:
  static constexpr std::uint32_t kLater = 2;
  using Find = std::function<std::optional<core::CurrentRun>(const core::RunUid&)>;

  /// `find`: what is known of a run now.
  explicit StopMuster(Find find) : find_(std::move(find)) {}

  void on_command(const core::Command& command, core::WallTime now);
  void on_withdrawn(const core::RunUid& run) { open_.erase(run); }
  void on_ack(const core::Ack& ack);

  /// Stops that need a later step now, as they are to be written; the revision is the ledger's.
  /// Each is given again until on_command() has brought its next revision.
  std::vector<core::Command> due(core::WallTime now);

 private:
  struct Open {
    core::Command command;
    std::int64_t step = 0;
    std::uint32_t world_size = 1;
    std::uint32_t times = 0;  // that a later step was named
    core::WallTime read{};
    core::WallTime half_way{};
  };
  /// What the ranks of a run have answered. Commands and answers are read from two topics, after a
  /// restart in any order, so neither waits for the other.
  struct Answers {
    std::string command_id;
    std::uint64_t revision = 0;
    std::set<std::uint32_t> heard;  // ranks that have this revision
    bool too_late = false;          // one has passed the step of this revision
    bool leaving = false;           // one obeys: another step would only part them
  };
  [[nodiscard]] bool settled(const Open& open) const;

  Find find_;
  std::map<core::RunUid, Open> open_;
  std::map<core::RunUid, Answers> answers_;
};

}  // namespace tocsin::actions
