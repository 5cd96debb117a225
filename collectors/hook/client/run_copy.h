// The telemetry of one run, copied from a cluster into a directory: what a trial on Kafka reads.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "collectors/hook/client/settings.h"
#include "core/identity.h"
#include "core/log.h"
#include "core/record.h"
#include "core/record_publisher.h"
#include "core/record_source.h"
#include "core/result.h"
#include "core/telemetry.h"
#include "core/time.h"
#include "ingest/ingest.h"

namespace tocsin::hook {

/// Reads as nobody (no group, no position) and leaves the cluster as it is. Each copied record says where it stood, so that a copy
/// that was ended at any instant goes on with the next record. Samples of node agents belong to no run and are not copied. Not
/// thread-safe.
class RunCopy {
 public:
  /// `run`: a uid, or the beginning of one (4 digits or more) that the topic `registry` names; empty: the newest that it names.
  /// `directory`: empty, or a copy of the same run. Errors: invalid_argument (no cluster in the settings), not_found (no such run, no
  /// topic), failed_precondition (several runs; the directory is another run's or no copy), unavailable (nothing answers).
  static core::Result<std::unique_ptr<RunCopy>> open(const Settings& settings,
                                                     const std::string& run,
                                                     const std::string& directory);
  ~RunCopy();
  RunCopy(const RunCopy&) = delete;
  RunCopy& operator=(const RunCopy&) = delete;

  /// Copies what is there and not copied yet. Nothing is: waits at most `timeout` for it. Returns how many records, all durable.
  /// Errors: those of the cluster and of the directory; what came before is kept.
  core::Result<std::uint64_t> next(std::chrono::milliseconds timeout);
  [[nodiscard]] const core::RunUid& run() const noexcept { return run_; }

 private:
  class Assigned;
  /// One partition of `telemetry` that has records of the run.
  struct Stream {
    std::unique_ptr<Assigned> assigned;  // before the source, which tells it
    std::unique_ptr<core::RecordSource> source;
    std::optional<std::int64_t> next;  // offset behind what was copied or passed over
    bool begun = false;
  };

  RunCopy();
  core::Status reach(const Settings& settings);
  core::Status choose(const std::string& run);
  core::Status open_directory(const std::string& directory);
  core::Status begin(std::int32_t partition);
  core::Status begin(std::int32_t partition, Stream& stream);
  core::Status read(std::int32_t partition, Stream& stream, std::chrono::milliseconds timeout);
  void take(std::int32_t partition, Stream& stream, const core::RecordView& record);
  void learn_shards(const core::RecordView& record);
  core::Status find_shards();
  [[nodiscard]] bool at_end() const;

  std::unique_ptr<core::Log> log_;
  std::unique_ptr<core::Telemetry> telemetry_;
  std::unique_ptr<ingest::Transport> cluster_;
  std::unique_ptr<ingest::Transport> directory_;
  std::unique_ptr<core::RecordPublisher> publisher_;
  core::RunUid run_;
  std::string key_;                         // of records of shard 0
  std::optional<core::WallTime> began_;     // as the registry has it
  std::int32_t partitions_ = 0;             // of `telemetry`
  std::uint16_t shards_ = 1;                // as frames say
  std::map<std::int32_t, Stream> streams_;  // by partition
  std::map<std::int32_t, std::int64_t> marks_;
  core::Status status_;
  std::uint64_t copied_ = 0;
};

}  // namespace tocsin::hook
