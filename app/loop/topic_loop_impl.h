// Inside of the loop: topic_loop.cc (opening, one turn, commits), topic_loop_partitions.cc
// (restoring, replaying, handing over).
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <span>

#include "app/loop/anchored_clock.h"
#include "app/loop/backoff.h"
#include "app/loop/commit_queue.h"
#include "app/loop/loop_probe.h"
#include "app/loop/partition_table.h"
#include "app/loop/record_handling.h"
#include "app/loop/state_reading.h"
#include "app/loop/topic_loop.h"
#include "app/loop/wakeable_source.h"

namespace tocsin::app {

class TopicLoop::Impl final : private core::AssignmentListener {
 public:
  Impl(Stage& stage, LoopPorts ports)
      : stage_(stage),
        wiring_(stage.wiring()),
        ports_(std::move(ports)),
        clock_(*ports_.clock),
        log_(*ports_.log),
        time_(clock_),
        probe_(*ports_.telemetry, wiring_),
        queue_(wiring_.name, probe_, log_),
        state_(stage_, wiring_),
        handling_(stage_, clock_, time_, probe_) {}

  core::Duration step(std::chrono::milliseconds longest);
  void close();
  void wake() { source_.wake(); }
  [[nodiscard]] bool ready() const noexcept { return ready_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::string trouble() const {
    const std::lock_guard lock(mutex_);
    return trouble_;
  }

 private:
  void get_ready();
  void stumble(std::string_view doing, const core::Error& error);
  // Opening and starting over.
  bool may_run();
  core::Status open();
  void drop();
  void start_over(const core::Error& error);
  // One turn.
  void read(std::chrono::milliseconds longest);
  void handle(const core::RecordView& record);
  bool hold_back(const core::RecordView& record, LoopPartition& partition);
  void refuse(const core::RecordView& record, const Refusal& refusal);
  void judge_failed_poll(const core::Error& error, std::span<const core::Position> before);
  void look_for_ends(core::Duration steady);
  void tick();
  void gather();
  // Partitions.
  void restore_assigned();
  core::Status restore(std::int32_t number, LoopPartition& partition);
  void advance_replays();
  void go_live(std::int32_t number, LoopPartition& partition);
  void fault(std::int32_t number, const core::Error& error);
  void assigned(std::span<const core::Position> committed) override;
  void revoked(std::span<const core::StreamPartition> partitions) override;
  void lost(std::span<const core::StreamPartition> partitions) override;
  void take_away(std::span<const core::StreamPartition> partitions);
  // Commits.
  void settle(CommitQueue::Progress progress);
  void start_commit(bool all);
  void commit_now();

  Stage& stage_;
  const StageWiring wiring_;
  LoopPorts ports_;
  core::Clock& clock_;
  core::Log& log_;
  AnchoredClock time_;
  LoopProbe probe_;

  WakeableSource source_;
  CommitQueue queue_;  // after source_: its committer ends first
  StateReading state_;
  RecordHandling handling_;
  std::uint64_t term_ = 0;             // of the leadership under which all this is open
  std::optional<core::Error> broken_;  // nothing here is ours any more: start over after the poll

  PartitionTable partitions_;
  bool assigned_ = false;       // we were told what is ours, maybe nothing
  bool moved_ = false;          // records were handled since the last commit began
  bool polled_ = false;         // since the last tick, with success
  core::Duration opened_{};     // steady
  bool needs_proof_ = false;    // it failed: ready once a poll of all that is live has succeeded
  bool damaged_ = false;        // the last poll found a damage that it does not get past
  std::size_t since_take_ = 0;  // records handled since the stage was asked for its output
  core::Duration last_commit_{};
  core::Duration next_tick_{};
  Backoff open_backoff_;
  Backoff read_backoff_;
  std::atomic<bool> ready_{false};
  mutable std::mutex mutex_;  // guards trouble_
  std::string trouble_;       // what failed last, since it was ready
};

}  // namespace tocsin::app
