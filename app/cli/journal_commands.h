// `tocsin journal check|salvage`: what to do about a journal that may be damaged.
#pragma once

#include <string>

namespace tocsin::app {

/// Exit codes as everywhere: 0 sound, 1 damaged, 4 there is no journal.
int journal_check(const std::string& directory, bool json = false);
/// 0 everything was copied, 1 something is missing (the report says what), 4 nothing was.
int journal_salvage(const std::string& from, const std::string& to, bool json = false);

}  // namespace tocsin::app
