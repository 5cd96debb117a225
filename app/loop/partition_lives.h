// What becomes of each input partition: assigned, its state restored, its input replayed, live, gone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "app/loop/anchored_clock.h"
#include "app/loop/loop_input.h"
#include "app/loop/loop_probe.h"
#include "app/loop/partition_table.h"
#include "app/loop/stage.h"
#include "app/loop/state_reading.h"
#include "core/log.h"
#include "core/record_publisher.h"
#include "core/result.h"

namespace tocsin::app {

/// Lives on the loop's thread.
class PartitionLives {
 public:
  /// All outlive it.
  PartitionLives(Stage& stage, const StageWiring& wiring, LoopInput& input, AnchoredClock& time,
                 LoopProbe& probe, core::Log& log)
      : stage_(stage),
        wiring_(wiring),
        input_(input),
        time_(time),
        probe_(probe),
        log_(log),
        state_(stage, wiring) {}

  /// Learns how many partitions the stage's state has.
  core::Status open(core::RecordPublisher& publisher) { return state_.open(publisher); }
  /// Nothing is ours any more.
  void clear();

  void assign(std::span<const core::Position> committed);
  void take(std::span<const core::StreamPartition> partitions);
  /// Reads the state of newly assigned partitions, and begins their replays. At an error the
  /// partition stays paused, and the next call tries it again.
  core::Status restore_assigned();
  /// In a replay: whether the record must not be handled yet, because it was not committed before.
  bool hold_back(const core::RecordView& record, LoopPartition& partition);
  /// Partitions whose replay is through become live.
  void advance_replays();
  /// Input that was still to be read is gone: the stage learns which partitions miss it.
  void input_gone(const PollOutcome& gap);
  /// `polled`: a poll has succeeded since the last call. Without one nothing is known about ends.
  void look_for_ends(bool polled, core::Duration steady);

  /// nullptr: not ours. Valid until assign(), take() and clear().
  [[nodiscard]] LoopPartition* find(std::int32_t number) { return table_.find(number); }
  /// Live, and up to date within the last two seconds.
  [[nodiscard]] bool up_to_date(std::int32_t number, core::Duration steady) const {
    return table_.live(number, steady);
  }
  /// Steady: what was published before has been read. nullopt: it is not live, or not known yet.
  [[nodiscard]] std::optional<core::Duration> read_until(std::int32_t number) const {
    return table_.read_until(number);
  }
  /// The same of the partition that is furthest behind; of one that has not been read to its end yet,
  /// its assignment. nullopt: nothing is ours.
  [[nodiscard]] std::optional<core::Duration> all_read_until() const {
    return table_.all_read_until();
  }
  [[nodiscard]] bool all_live() const { return table_.all_live(); }
  /// The group has said what is ours, maybe nothing.
  [[nodiscard]] bool assigned() const noexcept { return assigned_; }
  /// Positions that may be committed.
  [[nodiscard]] std::vector<core::Position> committable() const {
    return table_.live_only(input_.source().positions());
  }

 private:
  core::Status restore(std::int32_t number, LoopPartition& partition);
  void go_live(std::int32_t number, LoopPartition& partition);
  void fault(std::int32_t number, const core::Error& error);

  Stage& stage_;
  const StageWiring& wiring_;
  LoopInput& input_;
  AnchoredClock& time_;
  LoopProbe& probe_;
  core::Log& log_;
  StateReading state_;
  PartitionTable table_;
  bool assigned_ = false;
};

}  // namespace tocsin::app
