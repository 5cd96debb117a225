// The telemetry that an issue was decided by, copied into a directory of its own (`evidence:`).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "app/recordings/evidence_config.h"
#include "core/issue.h"
#include "core/log.h"
#include "core/result.h"
#include "ingest/ingest.h"

namespace tocsin::app {

/// "<dir>/<run uid>-<attempt>/<rule>-<beginning of the issue's key>": the same for every report of
/// an issue.
std::string evidence_directory(const std::string& dir, const core::Issue& issue);
/// Is a copy of this issue there, and whole?
bool is_kept(const std::string& directory);
/// Copies of this attempt that are there.
std::size_t kept_of_run(const std::string& dir, const core::Issue& issue);

struct EvidenceCopy {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  std::uint64_t left_out = 0;  // records of the lead that `most` had no room for
};

/// A copy that is being made. Let go of before it is whole, also by a kill, it leaves behind what
/// the next one goes on with.
class EvidenceCopying {
 public:
  virtual ~EvidenceCopying() = default;
  /// The next batch of records, waiting at most a tenth of a second for it; nullopt: there are more.
  /// After an error nothing is left of it. not_found: the records are not there any more;
  /// unavailable: the folder cannot be written.
  virtual core::Result<std::optional<EvidenceCopy>> go_on() = 0;
};

/// Writes telemetry.db, a journal of the run's records from `lead` before the issue's window up to
/// the last record that it names, and issue.json, the event; they are read once. `instance`: of
/// several processes, each goes on with its own. `transport` outlives the copy.
core::Result<std::unique_ptr<EvidenceCopying>> copy_evidence(ingest::Transport& transport,
                                                             const core::Issue& issue,
                                                             const EvidenceConfig& config,
                                                             const std::string& instance);

/// Removes copies made before `before`; how many. Only directories that hold a whole copy.
std::size_t remove_old_evidence(const std::string& dir, core::WallTime before, core::Log& log);
/// And what nobody has gone on with since `before`.
void remove_unfinished_evidence(const std::string& dir, core::WallTime before, core::Log& log);

}  // namespace tocsin::app
