// When a commit begins, and what the stage gives to it and learns from it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "app/loop/anchored_clock.h"
#include "app/loop/commit_queue.h"
#include "app/loop/committer.h"
#include "app/loop/loop_probe.h"
#include "app/loop/stage.h"
#include "core/function_ref.h"
#include "core/log.h"
#include "core/record.h"
#include "core/time.h"

namespace tocsin::app {

/// Lives on the loop's thread.
class CommitSchedule {
 public:
  /// All outlive it.
  CommitSchedule(Stage& stage, const StageWiring& wiring, AnchoredClock& time, LoopProbe& probe,
                 core::Log& log)
      : stage_(stage), wiring_(wiring), time_(time), queue_(wiring.name, probe, log) {}

  void open(std::unique_ptr<Committer> committer);
  /// Waits for the commit under way, and forgets everything.
  void clear();

  /// A record was read, so positions have moved.
  void note_read() { moved_ = true; }
  /// A record was handled: asks the stage for its output as often as its wiring says.
  void note_handled();
  /// Takes the stage's output, unless too much waits already.
  void gather();
  void add(StageRecord record) { queue_.add(std::move(record)); }
  /// Drops what belongs to partitions that are `gone`.
  void take_away(const std::function<bool(std::int32_t partition)>& gone) {
    queue_.take_away(gone);
  }

  using Positions = core::FunctionRef<std::vector<core::Position>()>;
  /// Begins a commit if one is due. `positions` gives those that may be committed.
  void start_due(Positions positions) { start(false, positions); }
  /// Begins a commit of everything that is there, also of positions that could wait.
  void start_all(Positions positions) {
    queue_.forgive();
    start(true, positions);
  }

  using Progress = CommitQueue::Progress;
  /// What came of the commit that began last.
  Progress poll() { return heed(queue_.poll(time_.steady())); }
  /// The same, and waits for it.
  Progress wait() { return heed(queue_.wait(time_.steady())); }
  /// Of the commit that failed last.
  [[nodiscard]] const core::Error& error() const { return queue_.error(); }

  /// A commit must go through before more is read. `now`: steady.
  [[nodiscard]] bool blocks_reading(core::Duration now) const {
    return queue_.full() || queue_.backoff().waits(now);
  }
  [[nodiscard]] const Backoff& backoff() const { return queue_.backoff(); }
  [[nodiscard]] bool empty() const { return queue_.empty(); }
  /// Steady: since when, as seen by this call, the oldest change waits; nullopt: nothing waits.
  [[nodiscard]] std::optional<core::Duration> oldest();
  /// Records are to be committed at once, and a commit may begin.
  [[nodiscard]] bool has_more() const { return queue_.has_urgent() && !queue_.busy(); }

 private:
  Progress heed(Progress progress);
  [[nodiscard]] bool due(bool all, core::Duration now) const;
  void start(bool all, Positions positions);

  Stage& stage_;
  const StageWiring& wiring_;
  AnchoredClock& time_;
  CommitQueue queue_;
  bool moved_ = false;          // records were read since the last commit began
  std::size_t since_take_ = 0;  // records handled since the stage was asked for its output
  core::Duration last_{};       // steady: the last commit began
  std::optional<core::Duration> oldest_;  // steady
};

}  // namespace tocsin::app
