// What is known of each run at this moment, for whoever must not act on an old one.
#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <vector>

#include "actions/actions.h"
#include "core/issue.h"
#include "core/mutex.h"
#include "core/running_run.h"

namespace tocsin::app {

/// Thread-safe: written by the stages that read `registry` and `issues`, read by delivery threads.
class RunBoard {
 public:
  /// The newest attempt wins; within one attempt the newest event, and an end is never taken back.
  void note(const core::JobEvent& event);
  /// An issue speaks of this attempt: it exists, whether or not its job event was read yet.
  void note_attempt(const core::RunUid& run, std::uint32_t attempt);
  [[nodiscard]] std::optional<core::CurrentRun> find(const core::RunUid& run) const;

  /// Empty: unknown, or it has none.
  [[nodiscard]] std::string job_of(const core::RunUid& run) const;

  /// The runs that go on: not ended, and heard of in the last quarter of an hour before `now`.
  [[nodiscard]] std::vector<core::RunningRun> running(core::WallTime now) const;

  /// Has everything been read that was there? Until then nobody is stopped.
  void set_complete(bool complete) { complete_ = complete; }
  [[nodiscard]] bool complete() const { return complete_; }

 private:
  struct Known {
    core::CurrentRun run;
    core::RunningRun about;
    core::WallTime time{};
    core::WallTime paced_at{};  // of the pace that was counted last
    std::int64_t paced_step = 0;
  };
  mutable core::Mutex mutex_;
  std::map<core::RunUid, Known> runs_ GUARDED_BY(mutex_);
  std::atomic<bool> complete_{false};
};

}  // namespace tocsin::app
