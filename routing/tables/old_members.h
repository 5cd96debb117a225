// Records `member/<group hash>/<issue key>` of an earlier layout: read once, then taken back. Who is
// a member stands in the records of the issues now.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "routing/routing.h"
#include "routing/tables/issues.h"

namespace tocsin::routing {

class OldMembers {
 public:
  /// `rest` of the key, "<hash>/<issue key>". data_loss: it is none.
  core::Status restore(std::string_view rest);
  /// Issues know where they were members; before Groups::link().
  void link(Issues& issues);
  /// Tombstones of what was read.
  void take(std::vector<StateRecord>& out);

 private:
  std::vector<std::pair<std::string, std::string>> read_;  // hash, issue key
  std::set<std::string> gone_;                             // their records, to take back
};

}  // namespace tocsin::routing
