// The first records since a time, by halving. Not a door.
#pragma once

#include <string>
#include <vector>

#include "core/record.h"
#include "core/result.h"
#include "core/time.h"
#include "ingest/transport.h"

namespace tocsin::ingest {

class JournalDatabase;
struct JournalTopic;

/// The id of the first record that is not older; behind the last one if all are. Times grow with the ids but for
/// what a clock that steps makes of them, so some twenty looks find the place; an index would cost every append.
core::Result<std::int64_t> journal_first_since(JournalDatabase& from, const JournalTopic& topic,
                                               core::WallTime since);

/// One of each topic whose file is there.
core::Result<std::vector<core::Position>> journal_positions_since(
    const std::string& directory, const TopicsConfig& topics, const std::vector<std::string>& names,
    core::WallTime since);

}  // namespace tocsin::ingest
