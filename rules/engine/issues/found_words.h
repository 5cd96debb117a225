// What was found when an issue began or became worse: its resolve tells it again, and the end beside it.
#pragma once

#include <string>

#include "core/issue.h"

namespace tocsin::rules {

/// The report's texts, evidence and place, as one line of JSON for the engine's state.
std::string found_words(const core::Issue& report);

/// `resolve` stands where the issue ended and says nothing yet: afterwards its texts, evidence, step
/// and severity are those of `words`, and `ending` says `how` and where it ended. Words that cannot be
/// read change nothing else.
void tell_end(core::Issue& resolve, const std::string& words, std::string how);

}  // namespace tocsin::rules
