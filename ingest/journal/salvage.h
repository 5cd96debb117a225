// What to do about a damaged journal: say what is wrong, copy what can be read.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "ingest/transport.h"

namespace tocsin::ingest {

struct JournalReport {
  bool sound = true;               // nothing is damaged or missing
  std::vector<std::string> lines;  // for people
};

/// Reads both files wholly (SQLite's quick_check) and counts what is in each topic. Opens nothing
/// for writing. Errors: not_found (no journal there), failed_precondition (not of this format).
core::Result<JournalReport> check_journal(const std::string& directory);

/// Copies every record that can be read, with its id, and the positions, into a new journal of this
/// machine. Ids of lost records stay unused, so that positions keep their meaning. `to` must not
/// hold a journal. Nobody may be writing `from`. Errors: as above, and those of writing `to`.
core::Result<JournalReport> salvage_journal(const std::string& from, const std::string& to,
                                            const TopicsConfig& topics);

}  // namespace tocsin::ingest
