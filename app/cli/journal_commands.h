// `tocsin journal check|salvage`: what to do about a journal that may be damaged.
#pragma once

#include <string>

namespace tocsin::app {

struct JournalCheckOptions {
  std::string directory;
  bool json = false;
};
/// Exit codes as everywhere: 0 sound, 1 damaged, 4 there is no journal.
int journal_check(const JournalCheckOptions& options);

struct JournalSalvageOptions {
  std::string from;
  std::string to;
  bool json = false;
};
/// 0 everything was copied, 1 something is missing (the report says what), 4 nothing was.
int journal_salvage(const JournalSalvageOptions& options);

}  // namespace tocsin::app
