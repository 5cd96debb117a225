// Lifecycle of a worker: the one JSON object of a kind 4 frame (docs/wire.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/capture.h"
#include "core/labels.h"
#include "core/value.h"

namespace tocsin::core {

enum class LifecycleEvent { start, heartbeat, preflight, died, applied, gap, leave, end };

/// All fields of all events in one plain struct; each event uses the ones named with it. Who speaks
/// (run, attempt, rank, worker, mode, time) stands in the frame's header.
struct Lifecycle {
  LifecycleEvent event = LifecycleEvent::heartbeat;

  // start
  std::string job;
  Labels labels;
  std::string framework;  // "pytorch 2.3", …
  std::string version;    // of the client; `applied`: of the applied command
  std::optional<std::int64_t> pid;
  std::optional<std::int64_t> pid_start;  // start ticks of the process: fences a reused pid
  std::string boot_id;                    // of the machine: `opened` counts from this boot
  std::optional<std::int64_t> opened;     // boot-time ns at which the client opened
  std::string host;
  std::string node;
  std::string launcher;
  std::string launch;  // what the ranks of one launch share (docs/wire.md); also heartbeat
  std::string platform = "local";  // platform.kind
  Value platform_ref;              // platform.ref
  std::optional<std::int64_t> continues_from;
  std::string worker_name;
  CapturedPlan capture;

  // heartbeat
  std::optional<std::int64_t> step;
  /// The loop's own word: seconds within which it will be heard of again; 0: not promised any more.
  std::optional<double> expect_next_in;

  // preflight
  Value findings;  // list of {kind, model, count, names}

  // died (from the node agent; exit_code, outcome and error as with `end`, command_id: of the stop
  // that was under way)
  std::string died_worker;
  std::uint64_t died_incarnation = 0;
  std::optional<int> signal;

  // applied
  std::string command_id;
  std::optional<std::int64_t> effective_step;
  Value left_out;  // what was asked for and cannot be given, with the reason

  // gap; `leave` also gives a reason
  std::string lane;
  std::string reason;
  std::uint64_t frames = 0;
  std::uint64_t rows = 0;
  std::optional<std::int64_t> first_step;
  std::optional<std::int64_t> last_step;

  // end
  /// completed | failed | stopped_by_rule | stopped_by_person | interrupted | unknown
  std::string outcome;
  std::optional<int> exit_code;
  std::string error;

  friend bool operator==(const Lifecycle&, const Lifecycle&) = default;
};

}  // namespace tocsin::core
