// The telemetry that an issue was decided by, copied into a directory of its own (`evidence:`).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "app/evidence_config.h"
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

/// Writes telemetry.db, a journal of the run's records from `lead` before the issue's window up to
/// the last record that it names, and issue.json, the event. All of it or nothing, also when the
/// process is killed. not_found: the records are not there any more; unavailable: the folder cannot be written.
core::Result<EvidenceCopy> copy_evidence(ingest::Transport& transport, const core::Issue& issue,
                                         const EvidenceConfig& config);

/// Removes copies made before `before`; how many. Only directories that hold a whole copy.
std::size_t remove_old_evidence(const std::string& dir, core::WallTime before, core::Log& log);

}  // namespace tocsin::app
