// Where the loop is: its mode, the steps and passes of each mode, and when the present step began.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/codes.h"
#include "core/time.h"

namespace tocsin::hook {

/// One moment on both clocks.
struct Moment {
  std::int64_t wall = 0;  // UTC nanoseconds
  core::Duration monotonic{0};
};

/// Not thread-safe.
class StepCounter {
 public:
  using Steps = std::array<std::int64_t, 4>;  // by mode

  explicit StepCounter(Moment opened) : began_(opened) { entered_[index(mode_)] = 1; }

  [[nodiscard]] core::Mode mode() const noexcept { return mode_; }
  /// Steps of the present mode that have ended, and so the number of the present one.
  [[nodiscard]] std::int64_t step() const noexcept { return steps_[index(mode_)]; }
  [[nodiscard]] const Steps& steps() const noexcept { return steps_; }
  [[nodiscard]] std::int64_t of(core::Mode mode) const noexcept { return steps_[index(mode)]; }
  /// The same over all modes.
  [[nodiscard]] std::int64_t global_step() const noexcept { return global_step_; }
  /// How often the present mode was entered before.
  [[nodiscard]] std::uint32_t pass() const noexcept { return passes_[index(mode_)]; }
  [[nodiscard]] const Moment& began() const noexcept { return began_; }
  /// When the last step ended, UTC nanoseconds; 0: none has.
  [[nodiscard]] std::int64_t ended() const noexcept { return ended_; }
  /// Something was published in the present step.
  [[nodiscard]] bool open() const noexcept { return open_; }
  void touch() noexcept { open_ = true; }

  [[nodiscard]] bool may_enter(core::Mode mode) const noexcept {
    return mode != mode_ && index(mode) < steps_.size();
  }
  /// Another pass through `mode` begins; see may_enter().
  void enter(core::Mode mode, Moment now) {
    mode_ = mode;
    passes_[index(mode)] = entered_[index(mode)]++;
    began_ = now;
  }
  /// The present step has ended.
  void next(Moment now) {
    ++steps_[index(mode_)];
    ++global_step_;
    began_ = now;
    ended_ = now.wall;
    open_ = false;
  }
  /// Goes on where a checkpoint was; negative counts as 0.
  void resume(const Steps& steps, std::int64_t global_step) {
    for (std::size_t i = 0; i < steps.size(); ++i) steps_[i] = std::max<std::int64_t>(steps[i], 0);
    global_step_ = std::max<std::int64_t>(global_step, 0);
  }

 private:
  static std::size_t index(core::Mode mode) noexcept { return static_cast<std::size_t>(mode); }

  core::Mode mode_ = core::Mode::train;
  Steps steps_{};
  std::array<std::uint32_t, 4> passes_{};
  std::array<std::uint32_t, 4> entered_{};
  std::int64_t global_step_ = 0;
  Moment began_;
  std::int64_t ended_ = 0;
  bool open_ = false;
};

}  // namespace tocsin::hook
