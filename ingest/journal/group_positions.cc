#include "ingest/journal/group_positions.h"

#include "ingest/journal/database.h"
#include "ingest/journal/fork.h"
#include "ingest/journal/layout.h"

namespace tocsin::ingest {

core::Result<std::vector<core::Position>> journal_positions(const std::string& directory,
                                                            const std::string& group,
                                                            const std::vector<std::string>& names) {
  const JournalUse use;
  auto control =
      JournalDatabase::open(journal_path(directory, JournalFile::control), JournalAccess::read);
  if (!control) return control.error();
  auto rows = (*control)->prepare("SELECT next FROM position WHERE consumer = ? AND topic = ?");
  if (!rows) return rows.error();
  std::vector<core::Position> out;
  for (const std::string& name : names) {
    const StatementScope scope(*rows);
    if (rows->bind(1, group).bind(2, name).step() == SQLITE_ROW) {
      out.push_back({{name, 0}, rows->integer(0)});
    }
  }
  return out;
}

}  // namespace tocsin::ingest
