// What people are told of a run besides its issues: how it stands, and what Tocsin did about it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/issue.h"
#include "core/labels.h"
#include "core/time.h"

namespace tocsin::core {

/// A checkpoint that a run saved when it was asked to stop.
struct Checkpoint {
  std::string path;  // as the run names it
  std::string host;  // where the path lies, unless it is on shared storage
  std::uint64_t bytes = 0;
  std::optional<std::int64_t> step;  // train step of the rank that saved it
  friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
};

/// Ranks by what they said to a stop.
struct StopAnswers {
  std::uint32_t asked = 0;     // ranks of the run; 0: not known
  std::uint32_t heard = 0;     // gave any answer
  std::uint32_t accepted = 0;  // the training loop took it
  std::uint32_t stopped = 0;
  std::uint32_t refused = 0;
  friend bool operator==(const StopAnswers&, const StopAnswers&) = default;
};

/// The stop that a run was asked for, and what came of it.
struct StopTold {
  std::string command_id;    // cmd_…
  std::string requested_by;  // "router" for a rule, else who asked
  std::string rule;          // whose issue asked; empty: a person did
  std::string mode;          // stop | checkpoint_then_stop | pause
  /// requested | cooperative | checkpointing | stopped | refused | failed | expired: as far as the
  /// run's answers and its end say.
  std::string state;
  std::string reason;  // why it was asked, or why it was refused or failed
  WallTime requested_at{};
  std::optional<std::int64_t> step;  // train step at which the run left
  std::optional<Checkpoint> checkpoint;
  std::string checkpoint_failure;  // why none was saved, as the run says it
  std::optional<int> exit_code;    // of the first rank that named one
  StopAnswers answers;
};

/// One attempt of a run that a message is about.
struct RunTold {
  RunRef run;
  Labels labels;
  std::string outcome;  // of its end, as in JobEvent; empty: it goes on, as far as is known
  std::optional<int> exit_code;
  std::optional<std::int64_t> step;  // newest train step
  std::optional<WallTime> started_at;
  std::optional<WallTime> ended_at;
  std::vector<std::string> hosts;  // ascending
  std::uint32_t world_size = 0;    // ranks; 0: not known
  std::string report;              // where its page lies; empty: there is none, or not yet
  std::optional<StopTold> stop;    // the newest; nullopt: nobody asked
};

}  // namespace tocsin::core
