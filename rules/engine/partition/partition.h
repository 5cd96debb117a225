// One source partition: its runs, what it decided, and where it stands.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rules/engine/memory/family.h"
#include "rules/engine/memory/run.h"
#include "rules/engine/partition/cut.h"
#include "rules/engine/partition/deadline.h"
#include "rules/engine/partition/rule_table.h"
#include "rules/rules.h"

namespace tocsin::rules {

/// A decision that does not follow from the records: written to rules-state, applied again on
/// replay.
struct Entry {
  enum class What : std::uint8_t {
    grace_over,
    idle,
    silence,
    forget,
    lost,
    skew,
    skew_over,
    refuse,
    admit,
    reload,
    learn,
    settle,
  };
  What what = What::grace_over;
  RunId run;
  std::uint32_t attempt = 0;
  std::uint32_t worker = kNoRoster;
  std::uint32_t rule = 0;  // not in the log: numbers change
  std::int64_t now = 0;
  std::map<std::string, std::int64_t> next;  // positions at which it was made
  /// By what rules are found again, whatever their numbers: the line of `rule` (silence), or the
  /// lines of all that judge from here on (reload). Of learn: the record's bytes (Comparisons); of
  /// settle: what was settled (FurtherShards).
  std::string rules = {};

  /// Made while the record at `next` was handled, and after that had made its run and worker known;
  /// the others come before it.
  [[nodiscard]] bool within_record() const noexcept {
    return what == What::skew || what == What::skew_over;
  }

  template <typename A>
  friend void io(A& a, Entry& e) {
    io_all(a, e.what, e.run, e.attempt, e.worker, e.now, e.next, e.rules);
  }
};

using StreamPositions = std::map<std::string, std::int64_t, std::less<>>;

struct PartitionState {
  std::int32_t number = 0;
  /// Those that judge here: the configured ones, but for a replay of what others have judged.
  std::shared_ptr<const RuleTable> rules;
  StreamPositions next;
  Output output;  // since the last take()
  bool silent = false;
  std::string incomplete;  // why the state is not what it should be; empty: it is
  std::map<RunId, std::unique_ptr<Run>> runs;
  FamilyTable families;
  std::set<RunId> refused;  // runs that found no room
  RunId tick_from;          // whom the next tick looks at first, where it does not look at all
  Deadline deadline;        // not in snapshots: of what a clock decides here
  Cut cut;
  std::uint64_t log_first = 0;  // logged entries that the last cut does not contain
  std::uint64_t log_next = 0;
  std::deque<Entry> replay;                       // waiting for their positions, oldest first
  std::map<std::string, std::string> restored{};  // key → value, until finish_restore
  /// Of a partition that had no state: written with the first positions. A transaction without
  /// positions is not fenced by the group, and one that comes late would put an empty state over
  /// what another owner has written since.
  std::optional<StateRecord> first_index;
  std::vector<Event> farewell;  // resolutions of rules that are gone, told when going live

  [[nodiscard]] bool owes_first_index() const {
    return first_index.has_value() && !silent && !next.empty();
  }
};

}  // namespace tocsin::rules
