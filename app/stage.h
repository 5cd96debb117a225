// What one role does with records, as a single-step object: values in, values out. Waiting, time,
// threads and the transport belong to the loop around it (app/topic_loop.h), so that the same stage
// runs on Kafka, on the journal and in the simulated world.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/function_ref.h"
#include "core/record.h"
#include "core/result.h"
#include "core/time.h"

namespace tocsin::app {

/// One moment on both clocks. `wall` never goes back while a loop lives: it is anchored to the
/// steady clock.
struct Instant {
  core::WallTime wall{};
  core::Duration steady{};
};

/// How the state behind an input partition is read back.
enum class StateScope {
  none,
  input_partition,  // partition p of the state topic belongs to partition p of the input
  whole,            // all partitions of the state topic, once, before the first input partition
};

/// What the loop opens for a stage.
struct StageWiring {
  std::string name;                 // "evaluate", "route", …: thread, metrics, log
  std::string group;                // empty: group-less; reads all from the beginning, commits none
  std::vector<std::string> topics;  // short names
  std::string transactional_id;     // empty: plain producer, at least once
  std::string state_topic;          // compacted; empty with StateScope::none
  StateScope state = StateScope::none;
  bool writes = true;   // false: take() never gives anything, no publisher is opened
  bool leader = false;  // runs only while this process holds the lease
  std::size_t batch = 2048;
  core::Duration commit_every{};  // of positions without records; records are committed at once
  core::Duration fetch_wait = std::chrono::milliseconds(10);
};

/// A record to be written, and the input partition whose handling led to it: a partition that is
/// taken away takes only its own pending output along.
struct StageRecord {
  std::int32_t partition = 0;
  core::OutRecord record;
};

struct StageOutput {
  std::vector<StageRecord> records;
  /// Where reading may go on from after a crash. nullopt: behind everything that was handled.
  std::optional<std::vector<core::Position>> positions;
  [[nodiscard]] bool empty() const noexcept {
    return records.empty() && (!positions || positions->empty());
  }
};

/// What a stage is told with each record and each tick.
struct StageContext {
  Instant now;
  bool replaying = false;  // this record was handled and committed before a restart
};

struct StageTick {
  Instant now;
  /// Was the newest record of this input partition, or its end, seen within the last two seconds?
  /// False while it is being restored.
  core::FunctionRef<bool(std::int32_t partition)> live;
};

/// Lives on one thread. The loop calls, per assigned partition p:
///   restore(p, record)… → restored(p) → handle(record)… (replaying) → started(p) → handle(record)…
/// and all the while tick() and take(); after each durable take(), committed().
class Stage {
 public:
  virtual ~Stage() = default;
  [[nodiscard]] virtual const StageWiring& wiring() const = 0;

  /// Forgets everything: the first call, and again whenever the loop starts over.
  virtual core::Status open(const Instant& now) = 0;

  /// One record of the state topic, in log order; the newest of a key comes last. An error is a
  /// damaged or unknown record: the loop tells it by state_fault().
  virtual core::Status restore(std::int32_t partition, const core::RecordView& record);
  /// The state of this partition is complete. Returns where to read on from so that the state and
  /// what follows fit together: positions before `committed` are replayed, none means `committed`.
  virtual core::Result<std::vector<core::Position>> restored(
      std::int32_t partition, std::span<const core::Position> committed, const Instant& now);
  /// Everything that was committed before has been handled again: from here on output counts.
  virtual void started(std::int32_t partition, const Instant& now);
  /// The state of this partition is not what it should be (damaged, unreadable, input gone). Called
  /// before started(), or later when a reader meets a gap.
  virtual void state_fault(std::int32_t partition, const core::Error& error, const Instant& now);

  /// One record, in the order of its stream. Errors are dead letters: the loop writes the record to
  /// the dlq with the error's code and goes on. May throw: that is a dead letter too.
  virtual core::Status handle(const core::RecordView& record, const StageContext& context) = 0;
  /// Called at least every 100 ms. Returns when it must be called next (steady).
  virtual std::optional<core::Duration> tick(const StageTick& tick);
  /// Hands over what is to be written since the last call. Bounded: what is left comes next time,
  /// with its positions.
  virtual StageOutput take() = 0;
  /// What take() gave before is durable.
  virtual void committed(const Instant& now);

  /// These are no longer ours, after a last commit.
  virtual void revoked(std::span<const core::StreamPartition> partitions);
  /// These were taken without a last commit.
  virtual void lost(std::span<const core::StreamPartition> partitions);
  /// A clean end: the last chance to put something into take().
  virtual void finish(const Instant& now);
};

}  // namespace tocsin::app
