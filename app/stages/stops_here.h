// Which stops of Tocsin's are under way on this node: the agent that ends processes knows it, and
// the agent that sees processes end has to say it, or people are told that a job died which they
// had asked to be stopped.
#pragma once

#include <map>
#include <string>

#include "actions/actions.h"
#include "core/identity.h"
#include "core/mutex.h"

namespace tocsin::app {

/// Thread-safe: `note` on the stop agent's thread, `stop_of` on the collector's.
class StopsHere {
 public:
  struct Found {
    std::string command_id;
    bool by_person = false;  // no rule asked for it
  };

  /// To be called before the signal that belongs to the transition is sent.
  void note(const actions::StopTransition& transition);
  /// Whether a stop of the run is under way, or has just ended it.
  [[nodiscard]] bool stops(const core::RunUid& run) const;
  /// The stop that was under way, or had just ended, when a process that opened its
  /// hook at `incarnation` (wall ns) went; without an id: none. A launch that opened later is not meant.
  [[nodiscard]] Found stop_of(const core::RunUid& run, std::uint64_t incarnation) const;

 private:
  struct Stop {
    std::string command_id;
    bool by_person = false;
    core::WallTime at{};  // newest step of it
  };
  mutable core::Mutex mutex_;
  std::map<core::RunUid, Stop> stops_ GUARDED_BY(mutex_);
};

}  // namespace tocsin::app
