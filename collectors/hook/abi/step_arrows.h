// States of a step and the events that change them. Written by tools/step_arrows from
// python/tocsin/loop/step_arrows.py: change the table there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tocsin::hook {

/// What was said of the present step.
enum class StepState : std::uint8_t {
  fresh,
  logged,
  open,
  open_logged,
  held,
  ends  // in place of a state: the step ends, and the next one is fresh
};

enum class StepEvent : std::uint8_t {
  log,
  log_again,
  update,
  update_of_several,
  go_on,
  close,
  forward,
  name_mode,
  change_mode,
  step,
};

/// By event and state.
inline constexpr std::array<std::array<StepState, 5>, 10> kStepArrows = [] {
  using S = StepState;
  return std::array<std::array<StepState, 5>, 10>{{
      {S::logged, S::logged, S::open, S::open_logged, S::ends},     // log
      {S::fresh, S::logged, S::ends, S::ends, S::held},             // log_again
      {S::held, S::ends, S::held, S::ends, S::held},                // update
      {S::open, S::open_logged, S::open, S::open_logged, S::open},  // update_of_several
      {S::fresh, S::logged, S::open, S::open_logged, S::open},      // go_on
      {S::fresh, S::logged, S::ends, S::ends, S::ends},             // close
      {S::fresh, S::logged, S::open, S::open_logged, S::ends},      // forward
      {S::fresh, S::ends, S::open, S::open_logged, S::held},        // name_mode
      {S::fresh, S::fresh, S::ends, S::ends, S::ends},              // change_mode
      {S::ends, S::ends, S::ends, S::ends, S::ends},                // step
  }};
}();

/// The state after `event` in `state`, which is not `ends`.
constexpr StepState state_after(StepState state, StepEvent event) {
  return kStepArrows[static_cast<std::size_t>(event)][static_cast<std::size_t>(state)];
}

}  // namespace tocsin::hook
