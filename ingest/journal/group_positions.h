// Where a group stands in a journal.
#pragma once

#include <string>
#include <vector>

#include "core/record.h"
#include "core/result.h"

namespace tocsin::ingest {

core::Result<std::vector<core::Position>> journal_positions(const std::string& directory,
                                                            const std::string& group,
                                                            const std::vector<std::string>& names);

}  // namespace tocsin::ingest
