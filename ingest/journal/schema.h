// Makes the journal's two files, and sees that this machine may write them.
#pragma once

#include <cstdint>
#include <string>

#include "core/result.h"
#include "ingest/journal/layout.h"

namespace tocsin::ingest {

/// Makes the folder and what is missing in it: files, tables of new topics. Errors:
/// failed_precondition (another machine's, a network file system, not a journal of this format),
/// data_loss (damaged), unavailable. `now`: UTC ns.
core::Status prepare_journal(const std::string& directory, const std::string& machine,
                             const JournalTopics& topics, std::int64_t now);

}  // namespace tocsin::ingest
