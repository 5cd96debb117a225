// What one role does with records, as a single-step object: values in, values out. Waiting, time,
// threads and the transport belong to the loop around it (app/loop/topic_loop.h), so that the same stage
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
  std::string name;                 // "evaluate", "route", …: label of metrics, word in the log
  std::string part;                 // of metric names: "rules", "router", "collectors"
  std::string group;                // empty: group-less; reads all from the beginning, commits none
  bool newest_only = false;         // group-less: reads only what comes from its opening on
  std::vector<std::string> topics;  // short names
  std::string transactional_id;     // empty: plain producer, at least once
  bool ahead = false;               // StageRecord::ahead is heeded beside a transactional id
  std::string writer;               // of the publisher: client id
  std::string state_topic;          // compacted; empty with StateScope::none
  StateScope state = StateScope::none;
  std::int32_t state_partitions = 0;  // StateScope::whole: the first so many; 0 = all there are
  bool writes = true;                 // false: take() never gives anything, no publisher is opened
  bool leader = false;                // runs only while this process holds the lease
  std::size_t batch = 2048;
  std::size_t take_every = 0;  // records after which take() is called within a batch; 0: behind it
  core::Duration commit_every{};  // of positions without records; records are committed at once
  core::Duration fetch_wait = std::chrono::milliseconds(10);
  core::Duration patience = std::chrono::milliseconds(8);  // SourceOptions::patience
};

/// A record to be written, and the input partition whose handling led to it: a partition that is
/// taken away takes only its own pending output along.
struct StageRecord {
  std::int32_t partition = 0;
  core::OutRecord record;
  bool ahead = false;  // may be read before the rest of its commit, where the guarantee allows it
  bool waits = false;  // means something only beside the positions: is committed when they are
};

struct StageOutput {
  std::vector<StageRecord> records;
  /// Where reading may go on from after a crash. nullopt: behind everything that was handled.
  std::optional<std::vector<core::Position>> positions;
  [[nodiscard]] bool empty() const noexcept {
    return records.empty() && (!positions || positions->empty());
  }
};

/// Why a record cannot be used; it goes to the dlq with this.
struct Refusal {
  std::string code;    // "bad_crc", "bad_event", …: few and fixed, a label of metrics
  std::string detail;  // for the person who produced it
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
  /// Steady: what was published to this input partition before has been read. nullopt: it is being
  /// restored, or that is not known yet.
  core::FunctionRef<std::optional<core::Duration>(std::int32_t partition)> read_until;
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
  /// damaged or unknown record: the loop goes on with the others and tells it by state_fault().
  virtual core::Status restore(std::int32_t partition, const core::RecordView& record);
  /// How far back the state topic is read, by the time of its records; nullopt: all of it.
  [[nodiscard]] virtual std::optional<core::WallTime> state_since(const Instant& now) const;
  /// What came needs state from before state_since(): the loop starts over and asks that again.
  [[nodiscard]] virtual bool needs_older_state() const;
  /// The state of this partition is complete. Returns where to read on from so that the state and
  /// what follows fit together: positions before `committed` are replayed, none means `committed`.
  virtual core::Result<std::vector<core::Position>> restored(
      std::int32_t partition, std::span<const core::Position> committed, const Instant& now);
  /// Everything that was committed before has been handled again: from here on output counts.
  virtual void started(std::int32_t partition, const Instant& now);
  /// The state of this partition is not what it should be (damaged, unreadable, input gone). Called
  /// before started(), or later when a reader meets a gap.
  virtual void state_fault(std::int32_t partition, const core::Error& error, const Instant& now);

  /// One record, in the order of its stream. What is refused goes to the dlq, and so does a record
  /// whose handling throws: it is written there once and never read again.
  virtual std::optional<Refusal> handle(const core::RecordView& record,
                                        const StageContext& context) = 0;
  /// Called at least every 100 ms. Returns when it must be called next (steady).
  virtual std::optional<core::Duration> tick(const StageTick& tick);
  /// Hands over what is to be written since the last call.
  virtual StageOutput take(const Instant& now) = 0;
  /// A commit begins with everything that take() gave and that is not durable yet …
  virtual void committing();
  /// … and this says that it is durable now. A commit that failed begins again with more behind it.
  virtual void committed(const Instant& now);

  /// These are no longer ours, after a last commit.
  virtual void revoked(std::span<const core::StreamPartition> partitions);
  /// These were taken without a last commit.
  virtual void lost(std::span<const core::StreamPartition> partitions);
  /// A clean end: nothing new is begun; take() is asked until it has nothing more, and, up to a
  /// grace, until nothing is busy() any more.
  virtual void finish(const Instant& now);
  /// Something begun outside is still to come back.
  [[nodiscard]] virtual bool busy() const;
};

}  // namespace tocsin::app
