// What the issues of a run stand at: which are open, and what each rule came to.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/issue.h"
#include "rules/contract/row.h"
#include "rules/engine/memory/first_sign.h"
#include "rules/engine/memory/moments.h"
#include "rules/engine/memory/open_issue.h"

namespace tocsin::rules {

/// Per configured rule: what it came to in this run.
struct RuleProgress {
  EvaluationCounts counts{};
  core::RuleState state = core::RuleState::no_data;
  std::uint64_t issue_sequence = 0;
  std::int64_t last_window = kNever;  // of operational rules: when they last said something
};

struct ClockState {
  bool fired = false;
  std::int64_t counted = kNever;      // engine time of the newest check that was counted as ok
  std::int64_t last_window = kNever;  // what its newest issue says: no two say the same
};

struct IssueState {
  std::map<std::pair<std::uint32_t, std::uint64_t>, Life> lives;  // (rule, unit) of evaluators
  std::map<std::pair<std::uint32_t, std::uint32_t>, ClockState> clocks;  // (rule, worker)
  std::vector<RuleProgress> progress;                                    // per rule
  std::map<OpenKey, Open> open;
  std::map<std::array<std::uint32_t, 3>, std::uint32_t> open_counts;  // rule, kind, worker
  FirstSigns signs;                                                   // not in snapshots
};

}  // namespace tocsin::rules
