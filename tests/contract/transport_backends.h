// The three transports behind one face, and helpers that drain a source, for the contract suite.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/telemetry.h"
#include "ingest/ingest.h"

namespace tocsin::tests {

enum class BackendKind { memory, journal, kafka };
std::string name_of(BackendKind kind);

/// A fresh transport with two partitions per keyed topic where there are partitions; its folder or
/// topics are its own.
class Backend {
 public:
  static core::Result<std::unique_ptr<Backend>> open(BackendKind kind);
  ~Backend();

  ingest::Transport& transport() { return *transport_; }
  [[nodiscard]] BackendKind kind() const { return kind_; }
  [[nodiscard]] const ingest::TransportConfig& config() const { return config_; }
  [[nodiscard]] const ingest::TopicsConfig& topics() const { return topics_; }
  [[nodiscard]] const std::string& directory() const { return config_.journal; }
  /// A further transport on the same folder or cluster, as another process would have it.
  std::unique_ptr<ingest::Transport> another();

  std::unique_ptr<core::RecordSource> source(ingest::SourceOptions options);
  /// What the outside world writes with.
  std::unique_ptr<core::RecordPublisher> producer();
  /// Reads `topics` for "engine"; its positions are committed by committer().
  std::unique_ptr<core::RecordSource> member(std::vector<std::string> topics,
                                             core::AssignmentListener* listener = nullptr);
  std::unique_ptr<core::RecordPublisher> committer(core::RecordSource& source);
  /// Reads a topic from its beginning, committed records only.
  std::unique_ptr<core::RecordSource> observer(std::vector<std::string> topics);

 private:
  Backend() = default;
  BackendKind kind_ = BackendKind::memory;
  ingest::TransportConfig config_;
  ingest::TopicsConfig topics_;
  core::NullLog log_;
  core::NullTelemetry telemetry_;
  std::unique_ptr<ingest::Transport> transport_;
  int producers_ = 0;
};

/// A record read and kept.
struct Kept {
  std::string topic, stream, value;
  std::optional<std::string> key;
  bool tombstone = false;
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  std::int64_t timestamp = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // the asked-for ones
};
Kept keep(const core::RecordView& view, const std::vector<std::string>& header_names = {});

/// Polls until `count` records came or 20 s passed. Errors end it.
core::Result<std::vector<Kept>> read_records(core::RecordSource& source, std::size_t count,
                                             const std::vector<std::string>& header_names = {});
/// Polls until the source is at its end (at least once), or 20 s passed.
core::Result<std::vector<Kept>> read_to_end(core::RecordSource& source);
/// Polls for a short while and returns what came: to see that nothing does.
core::Result<std::vector<Kept>> read_briefly(core::RecordSource& source);

core::OutRecord record(std::string topic, std::string key, std::string value);

}  // namespace tocsin::tests
