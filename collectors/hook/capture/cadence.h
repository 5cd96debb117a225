// Whether the loop calls as often as it should: looked at every few seconds, off the training thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace tocsin::hook {

/// What a script's loop does wrong by its calls: steps that nobody ends, or steps with nothing in
/// them. Each is told once.
class Cadence {
 public:
  struct Finding {
    std::string_view kind;  // of a lifecycle record `preflight`; empty: nothing
    std::int64_t count = 0;
  };

  /// So many scalars and steps so far, `seconds` after the last call. Said only of what lasts for two
  /// calls: a step may be long, and a loop may start with a burst.
  Finding look(std::uint64_t scalars, std::int64_t steps, double seconds) noexcept {
    const std::uint64_t logged = scalars - scalars_;
    const std::int64_t ended = steps - steps_;
    scalars_ = scalars;
    steps_ = steps;
    unended_ = ended == 0 && logged >= kMany ? unended_ + logged : 0;
    const bool frequent = seconds > 0 && static_cast<double>(ended) / seconds >= kPerSecond;
    const bool empty = logged < static_cast<std::uint64_t>(ended) / 10;
    empty_times_ = frequent && empty ? empty_times_ + 1 : 0;
    if (unended_ >= 2 * kMany && unended_ > logged && !told_unended_) {
      told_unended_ = true;
      return {"no_step_end", static_cast<std::int64_t>(unended_)};
    }
    if (empty_times_ >= 2 && !told_empty_) {
      told_empty_ = true;
      return {"empty_steps", static_cast<std::int64_t>(static_cast<double>(ended) / seconds)};
    }
    return {};
  }

 private:
  static constexpr std::uint64_t kMany = 50;   // scalars of one step, in one look
  static constexpr double kPerSecond = 2'000;  // steps
  std::uint64_t scalars_ = 0;
  std::int64_t steps_ = 0;
  std::uint64_t unended_ = 0;  // scalars since a step has ended, over looks in a row
  int empty_times_ = 0;
  bool told_unended_ = false;
  bool told_empty_ = false;
};

}  // namespace tocsin::hook
