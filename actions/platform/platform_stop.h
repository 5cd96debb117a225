// Port: a platform that runs jobs, and how a stop of one of them is carried out there: read its
// identity, compare it with the fence, act with a precondition of the server's where there is one,
// observe (docs/stopping-on-platforms.md).
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "core/time.h"
#include "core/value.h"

namespace tocsin::actions {

/// What is to be ended: as the stop command names it.
struct PlatformTarget {
  core::Value fence;  // args.fence: platform, and what its hook reported
  std::string mode;   // stop | checkpoint_then_stop | pause
};

enum class PlatformRung {
  look,      // nothing is asked
  graceful,  // the platform's own way to end a job
  force,     // its harder one; only where the command has allow_force
};

enum class PlatformSeen {
  running,      // what the fence names is there and has not ended
  ended,        // proof: a terminal state was read of what the fence names, or it is gone
  stale,        // under that name there is something else now: nothing was asked
  denied,       // the platform refuses us, for a reason that waiting does not mend
  unreachable,  // nothing is known: ask again
};

struct PlatformAnswer {
  PlatformSeen seen = PlatformSeen::unreachable;
  std::string detail;  // one sentence for people; no credentials
  bool asked = false;  // it has been asked to end: now, or (as it shows itself) before
};

/// Stateless but for connections; used from several threads. Each call blocks at most `budget`.
class PlatformStop {
 public:
  virtual ~PlatformStop() = default;
  /// "kubernetes", "slurm", …: label of metrics, word in texts.
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Is it a job of this platform, and does the fence tell it from every other?
  [[nodiscard]] virtual bool reaches(const core::Value& fence) const = 0;
  /// Reads, compares, and asks only what is still to be asked: a repetition after a restart finds that
  /// it was asked before and asks nothing. Never acts on what the fence does not name.
  virtual PlatformAnswer carry_out(const PlatformTarget& target, PlatformRung rung,
                                   std::chrono::milliseconds budget) = 0;
};

}  // namespace tocsin::actions
