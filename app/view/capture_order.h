// What a person asks a running job to capture, as a command: of the command line and the API alike.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/command.h"
#include "core/issue.h"
#include "core/time.h"

namespace tocsin::app {

struct CaptureOrder {
  enum class Kind : std::uint8_t { more, pause, stacks, trace };
  static constexpr std::int64_t kUsualSteps = 100;
  static constexpr std::int64_t kMostOfATrace = 10'000;  // steps; a hook refuses more
  static constexpr std::size_t kMostRanksNamed = 4096;

  Kind kind = Kind::more;
  std::vector<std::string> collections;
  std::vector<std::string> statistics;  // of each of them, beside the base columns
  bool raw = false;                     // the elements, too
  std::int64_t every = 1;               // steps
  std::int64_t steps = 0;               // of a pause 0: until it is taken back; else 0: kUsualSteps
  std::optional<std::int64_t> from;     // train step; nullopt: as soon as a rank hears of it
  std::vector<std::uint32_t> ranks;     // empty: all
  std::string person;
  std::string reason;
  core::Duration wait = std::chrono::seconds(30);  // nobody begins with a profile later than that

  [[nodiscard]] bool profiles() const { return kind == Kind::stacks || kind == Kind::trace; }
  /// Where it is asked: each person has a slot of their own, a pause and a profile belong to the run.
  [[nodiscard]] std::string slot() const;
};

/// Of a pause.
inline constexpr const char* kPauseSlot = "capture/pause";
std::string capture_slot_of(const std::string& person);

struct CaptureAsked {
  core::Command command;
  std::int64_t from = 0;   // first step; 0: as soon as a rank hears of it
  std::int64_t until = 0;  // first step that is not captured any more; 0: no end
};

/// The command for the newest attempt of `run`. Asked twice it is two commands, each with an end of
/// its own. A trace must have `from`.
CaptureAsked capture_command(const CaptureOrder& order, const core::JobEvent& run,
                             core::WallTime now);

/// Where the run is by now, from the step and the pace that it has told.
std::int64_t step_now(const core::JobEvent& run, core::WallTime now);
/// A step so far ahead that each rank hears of it before it begins: `seconds` at the pace of the run.
std::int64_t first_common_step(const core::JobEvent& run, core::WallTime now, double seconds = 3);

/// What a person should know before they ask: one sentence each.
std::vector<std::string> capture_cautions(const CaptureOrder& order);

}  // namespace tocsin::app
