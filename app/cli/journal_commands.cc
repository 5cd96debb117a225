#include "app/cli/journal_commands.h"

#include <iostream>

#include "app/process/exit_code.h"
#include "core/value.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

int tell(const core::Result<ingest::JournalReport>& report, bool json) {
  if (!report) {
    std::cerr << "tocsin: " << report.error().message << "\n";
    return kUnreachable;
  }
  if (json) {
    core::ValueList lines;
    for (const auto& line : report->lines) lines.emplace_back(line);
    std::cout << core::to_json(
                     core::ValueMap{{"sound", report->sound}, {"lines", std::move(lines)}})
              << "\n";
  } else {
    for (const auto& line : report->lines) std::cout << line << "\n";
  }
  return report->sound ? kOk : kFailed;
}

}  // namespace

int journal_check(const JournalCheckOptions& options) {
  return tell(ingest::check_journal(options.directory), options.json);
}

int journal_salvage(const JournalSalvageOptions& options) {
  return tell(ingest::salvage_journal(options.from, options.to, {}), options.json);
}

}  // namespace tocsin::app
