// Work that a request begins and does not wait for: each task on a thread of its own, so many at once.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "core/clock.h"
#include "core/mutex.h"
#include "core/result.h"
#include "core/value.h"

namespace tocsin::app {

/// What a task asks and says while it works. Of its own thread.
class TaskWork {
 public:
  TaskWork(std::stop_token stop, std::atomic<double>& progress)
      : stop_(std::move(stop)), progress_(progress) {}
  /// It is to end without a result, soon.
  [[nodiscard]] bool cancelled() const { return stop_.stop_requested(); }
  /// From 0 to 1.
  void reached(double progress) { progress_.store(progress, std::memory_order_relaxed); }

 private:
  std::stop_token stop_;
  std::atomic<double>& progress_;
};

/// Thread-safe. Keeps the newest kMostKept tasks, in memory.
class TaskDesk {
 public:
  static constexpr std::size_t kMostKept = 100;
  using Work = std::function<core::Result<core::Value>(TaskWork&)>;

  /// `clock` outlives it. `most`: that work at once, at least one.
  TaskDesk(const core::Clock& clock, std::size_t most) : clock_(clock), most_(most) {}
  /// Cancels what still works, and waits for it.
  ~TaskDesk();
  TaskDesk(const TaskDesk&) = delete;
  TaskDesk& operator=(const TaskDesk&) = delete;

  struct Begun {
    std::string kind;  // "replay"
    std::string run;   // uid
    std::string by;
  };
  /// Its id. resource_exhausted: as many work as may.
  core::Result<std::string> begin(Begun what, Work work);
  /// {id, kind, run, by, state, progress, began_at, ended_at, result, error}; nullopt: no such task.
  [[nodiscard]] std::optional<core::Value> told(const std::string& id);
  /// False: no such task. One that has ended stays as it is.
  bool cancel(const std::string& id);

 private:
  enum class State : std::uint8_t { running, done, failed, cancelled };
  struct Task {
    std::string id;
    Begun what;
    State state = State::running;
    std::atomic<double> progress{0};
    core::WallTime began{};
    core::WallTime ended{};
    core::Value result;
    std::string error;
    std::jthread thread;  // joined before it is destroyed
  };
  void ended(Task& task, core::Result<core::Value> result, bool cancelled);
  Task* find(const std::string& id) REQUIRES(mutex_);
  void forget_old() REQUIRES(mutex_);

  const core::Clock& clock_;
  const std::size_t most_;
  core::Mutex mutex_;
  std::list<Task> tasks_ GUARDED_BY(mutex_);  // in the order they began
  std::uint64_t count_ GUARDED_BY(mutex_) = 0;
};

}  // namespace tocsin::app
