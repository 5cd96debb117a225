// What does not follow from the records: applied, logged, and applied again at the very position in a
// replay.
#pragma once

#include <cstdint>

#include "rules/engine/issues/issue_book.h"
#include "rules/engine/issues/own_issues.h"
#include "rules/engine/issues/silence_watch.h"
#include "rules/engine/jobs/comparisons.h"
#include "rules/engine/jobs/ends.h"
#include "rules/engine/jobs/further_shards.h"
#include "rules/engine/jobs/reload.h"
#include "rules/engine/partition/rule_table.h"
#include "rules/engine/partition/turn.h"
#include "rules/engine/units/step_book.h"

namespace tocsin::rules {

class Decisions {
 public:
  Decisions(const EngineOptions& options, const ConfiguredRules& configured, IssueBook& book,
            OwnIssues& own, StepBook& steps, SilenceWatch& silence, Ends& ends, Reload& reload,
            Comparisons& comparisons, FurtherShards& further)
      : options_(options),
        configured_(configured),
        book_(book),
        own_(own),
        steps_(steps),
        silence_(silence),
        ends_(ends),
        reload_(reload),
        comparisons_(comparisons),
        further_(further) {}

  void decide(const Turn& turn, Entry entry);
  /// The partition that is being worked on goes on with the configured rules.
  void reload(const Turn& turn);
  /// Without logging it.
  void apply(const Turn& turn, const Entry& entry);
  /// Those whose positions have come.
  void replay_entries(const Turn& turn);
  /// One that was made in the middle of this record.
  void replay_within(const Turn& turn, const Run& run, std::uint32_t worker);

 private:
  void carry_out(const Turn& turn, const Entry& entry);
  static void forget_family(const Turn& turn, const Entry& entry);
  void apply_run(const Turn& turn, const Entry& entry, Run& run);
  void log(const Turn& turn, Entry entry);
  [[nodiscard]] int beyond(const Turn& turn, const Entry& entry) const;
  void replay_one(const Turn& turn);

  const EngineOptions& options_;
  const ConfiguredRules& configured_;
  IssueBook& book_;
  OwnIssues& own_;
  StepBook& steps_;
  SilenceWatch& silence_;
  Ends& ends_;
  Reload& reload_;
  Comparisons& comparisons_;
  FurtherShards& further_;
};

}  // namespace tocsin::rules
