#include "app/journal_commands.h"

#include <iostream>

#include "app/commands.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

int tell(const core::Result<ingest::JournalReport>& report) {
  if (!report) {
    std::cerr << "tocsin: " << report.error().message << "\n";
    return kUnreachable;
  }
  for (const auto& line : report->lines) std::cout << line << "\n";
  return report->sound ? kOk : kFailed;
}

}  // namespace

int journal_check(const std::string& directory) { return tell(ingest::check_journal(directory)); }

int journal_salvage(const std::string& from, const std::string& to) {
  return tell(ingest::salvage_journal(from, to, {}));
}

}  // namespace tocsin::app
