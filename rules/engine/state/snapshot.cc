#include "rules/engine/state/snapshot.h"

#include "rules/engine/state/stored_rules.h"

namespace tocsin::rules {

bool write_snapshot(PartitionState& state, std::size_t budget, EngineStats& stats, Cut::Emit emit) {
  if (!state.cut.busy()) {
    if (!state.output.empty()) return true;  // not committed before what it stands for
    if (!state.cut.changed() && state.log_first == state.log_next) return false;
    Index index{{state.next.begin(), state.next.end()},
                {},
                state.log_next,
                {state.refused.begin(), state.refused.end()},
                state.cut.slots_per_part(),
                stored_text(*state.rules)};
    for (const auto& [id, run] : state.runs) index.runs.emplace_back(id, run->life);
    for (const auto& [uid, family] : state.families) {
      index.runs.emplace_back(family.id(), family.life);
    }
    state.cut.begin(std::move(index), state.log_first);
    state.log_first = state.log_next;
  }
  return state.cut.write(state.runs, state.families, budget, emit, stats);
}

}  // namespace tocsin::rules
