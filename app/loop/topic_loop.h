// The one loop around every stage: opens source and publisher, restores, polls, commits, backs off,
// starts over, and says whether it is ready.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "app/loop/anchored_clock.h"
#include "app/loop/backoff.h"
#include "app/loop/commit_schedule.h"
#include "app/loop/committer.h"
#include "app/loop/lag_probe.h"
#include "app/loop/leadership.h"
#include "app/loop/loop_input.h"
#include "app/loop/loop_probe.h"
#include "app/loop/loop_readiness.h"
#include "app/loop/partition_lives.h"
#include "app/loop/record_handling.h"
#include "app/loop/stage.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/record_source.h"
#include "core/telemetry.h"
#include "ingest/ingest.h"

namespace tocsin::app {

/// What a loop is given; everything pointed to outlives it.
struct LoopPorts {
  ingest::Transport* transport = nullptr;
  core::Clock* clock = nullptr;
  core::Log* log = nullptr;
  core::Telemetry* telemetry = nullptr;
  CommitterFactory committer;              // thread_committer() or inline_committer()
  const Leadership* leadership = nullptr;  // needed by stages with wiring().leader
};

/// Lives on one thread: run() in the program, step() by hand in tests and in the simulated world.
/// wake(), ready() and trouble() may be called from anywhere.
class TopicLoop final : private core::AssignmentListener {
 public:
  TopicLoop(Stage& stage, LoopPorts ports);
  ~TopicLoop() override;
  TopicLoop(const TopicLoop&) = delete;
  TopicLoop& operator=(const TopicLoop&) = delete;

  /// step() until stopped, then close().
  void run(const std::stop_token& stop);
  /// One turn: waits at most `longest` for records. Returns when (steady) the next turn is due at
  /// the latest if no record comes.
  core::Duration step(std::chrono::milliseconds longest);
  /// A clean end: the stage's last output is committed, the group is left.
  void close();
  /// Ends a wait in step() early. Thread-safe.
  void wake() { input_.wake(); }
  /// Restored, committing, and (where a lease is needed) either leading or standing by.
  [[nodiscard]] bool ready() const noexcept { return readiness_.ready(); }
  /// Why it is not ready, where something failed: a sentence; empty: nothing did.
  [[nodiscard]] std::string trouble() const { return readiness_.trouble(); }

 private:
  // Opening and starting over.
  bool may_run();
  core::Status open();
  bool reopen();
  void drop();
  void start_over(const core::Error& error);
  // One turn.
  void read(std::chrono::milliseconds longest);
  void handle(const core::RecordView& record);
  void refuse(const core::RecordView& record, const Refusal& refusal);
  void restore();
  void tick();
  void note_readiness();
  // Commits.
  void heed(CommitSchedule::Progress progress);
  void commit_now();
  // What the source says of our partitions, within a poll or at its end.
  void assigned(std::span<const core::Position> committed) override;
  void revoked(std::span<const core::StreamPartition> partitions) override;
  void lost(std::span<const core::StreamPartition> partitions) override;
  void take_away(std::span<const core::StreamPartition> partitions);

  Stage& stage_;
  const StageWiring wiring_;
  LoopPorts ports_;
  core::Log& log_;
  AnchoredClock time_;
  LoopProbe probe_;
  LagProbe lags_;

  LoopReadiness readiness_;
  LoopInput input_;
  CommitSchedule commits_;  // after input_: its committer, which wakes the input, ends first
  PartitionLives partitions_;
  RecordHandling handling_;
  std::uint64_t term_ = 0;             // of the leadership under which all this is open
  std::optional<core::Error> broken_;  // nothing here is ours any more: start over after the poll
  core::Duration next_tick_{};         // steady
  Backoff open_backoff_;
};

}  // namespace tocsin::app
