// What commands share that look at topics, and write at most a word of a person's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/log.h"
#include "core/result.h"
#include "core/telemetry.h"
#include "ingest/ingest.h"

namespace tocsin::app {

/// Says why on stderr; the exit code for it.
int refuse(const core::Error& error);

/// The transport, opened to look: a journal that is not there is not made.
class Looking {
 public:
  /// Where: as transport_settings.h. unavailable: there is no such journal.
  core::Status open(const std::string& config_file, const std::string& out);
  [[nodiscard]] ingest::Transport& transport() const { return *transport_; }
  /// Of the configuration, or its default.
  [[nodiscard]] const std::string& cluster() const noexcept { return cluster_; }
  /// Folder of the journal; empty: it is a cluster.
  [[nodiscard]] const std::string& journal() const noexcept { return journal_; }
  /// `topics.prefix`.
  [[nodiscard]] const std::string& prefix() const noexcept { return prefix_; }
  /// Where a consumer group stands in these topics. Errors: as ingest::group_positions().
  [[nodiscard]] core::Result<std::vector<core::Position>> positions_of(
      const std::string& group, const std::vector<std::string>& names) const;
  /// `evidence.dir`, the same.
  [[nodiscard]] const std::string& evidence_dir() const noexcept { return evidence_dir_; }

 private:
  core::NullLog log_;
  core::NullTelemetry telemetry_;
  std::string cluster_;
  std::string evidence_dir_;
  std::string journal_;
  std::string prefix_;
  ingest::TransportConfig where_;
  ingest::TopicsConfig topics_;
  std::unique_ptr<ingest::Transport> transport_;
};

/// From now on SIGINT and SIGTERM end the following of a topic instead of the process.
void follow_until_signalled();
/// False after such a signal, and once stdout is closed.
bool goes_on();

}  // namespace tocsin::app
