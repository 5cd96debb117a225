// What is known of the job behind a run, and how far it has come.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/codes.h"
#include "core/value.h"
#include "rules/contract/archive.h"
#include "rules/contract/promise.h"
#include "rules/engine/memory/moments.h"

namespace tocsin::rules {

/// The newest process that started on a node.
struct Opened {
  std::string boot;         // first 8 hex digits of the machine's boot id
  std::int64_t opened = 0;  // boot-time ns

  template <typename A>
  friend void io(A& a, Opened& o) {
    io_all(a, o.boot, o.opened);
  }
};

/// What its processes said of themselves, and how they ended.
struct Job {
  bool started = false;  // a start record was seen
  bool ended = false;
  bool lost = false;    // ended because nothing was heard any more: may be heard of again
  std::string outcome;  // of the worst `end` so far
  std::optional<int> exit_code;
  // What the first process that failed with an error said of it, and which one that was. No part of
  // the state: that would lose the families of older programs. After a restart between the first
  // end and the last one it is not known, and the message does without.
  std::string error;
  std::string failed_first;
  std::string name;
  std::string platform = "local";
  core::Value platform_ref;  // the platform's own identity of it
  std::vector<std::pair<std::string, std::string>> labels;
  std::vector<std::string> captured;  // collections of the start record's capture; empty = unknown
  std::map<std::string, std::int64_t> thinned;  // by the overhead governor: factor by collection
  std::int64_t started_at = 0;
  std::int64_t ended_at = 0;
  std::map<std::string, Opened> launch;  // per node

  /// Does this outcome say that Tocsin, for a rule or a person, stopped it?
  static bool stopped(std::string_view outcome);
  /// What a process came to of which only the exit code is known.
  static std::string outcome_of(std::optional<int> code);
  /// Adds how one process ended to how the job did: the worst counts.
  void worsen(const std::string& how, std::optional<int> code);
};

/// What the registry was told of it.
struct Pulse {
  bool beats = false;  // a process with a hook: its heartbeats prove that it lives
  std::int64_t last_heartbeat = kNever;  // event time of the newest job heartbeat sent on
  std::int64_t told_step = kNever;       // what that said
  bool changed = false;                  // something that it says besides is new
  std::uint64_t heartbeats = 0;
  std::uint64_t ends = 0;                     // ended events so far
  std::array<std::int64_t, 16> step_times{};  // latest durations of train steps, of any worker
  std::uint32_t steps_timed = 0;
};

/// How far it has come, and when it was heard of.
struct Course {
  bool grace_over = false;
  std::int64_t first_train_arrival = kNever;  // engine time: the grace starts here
  std::int64_t first_seen = 0;                // engine time
  std::int64_t last_arrival = 0;              // engine time, of progress
  Promise promise;                            // the newest of any worker
  std::int64_t last_any = 0;                  // engine time, of any sign of life of its processes
  std::int64_t last_step = kNever;
  std::int64_t last_global_step = 0;
  std::int64_t last_time = 0;                 // newest measurement
  core::Mode last_mode = core::Mode::global;  // of the newest progress,
  std::int64_t last_mode_step = 0;            // and its step in that mode
  std::uint8_t seen_modes = 0;
  std::uint16_t shards = 1;  // over which its tensors are spread
};

}  // namespace tocsin::rules
