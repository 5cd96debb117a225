#include "routing/restart.h"

#include <algorithm>
#include <vector>

namespace tocsin::routing {
namespace {

using core::WallTime;

/// Routes that lost an integration close its incident. Issues of a group that is closed are announced
/// anew when they are routed.
void close_unrouted(Tables& tables, Teller& teller, WallTime now) {
  for (const auto& entry : tables.groups.in_order()) {
    Group& group = *entry.second;
    const bool kept = group.route != nullptr && group.route->grouping() == group.grouping;
    for (const auto& one : *group.logs) {
      const std::string& id = one.first;
      const TellLog& log = one.second;
      const auto is_same = [&](const Integration* integration) { return integration->id == id; };
      const auto any_in = [&](const auto& list) {
        return std::any_of(list.begin(), list.end(), is_same);
      };
      const bool told = kept && (any_in(group.route->integrations) || any_in(group.route->further));
      if (!told && !(log.told.empty() && log.owed.empty())) teller.close(group, id, now);
    }
    if (kept) continue;
    tables.ladders.end(group.hash);
    if (group.active()) tables.groups.abandon(group, now);
  }
}

}  // namespace

void restart(Tables& tables, Teller& teller, const Config& limits, WallTime now) {
  tables.link();
  teller.start(now);
  close_unrouted(tables, teller, now);
  const auto strayed = tables.groups.start(now, limits.catchup_hold_max, [&](const Group& group) {
    return teller.passed_quietly(group, now);
  });
  for (const auto& entry : tables.groups.in_order()) {
    if (entry.second->route != nullptr) teller.arrange(*entry.second, now);
  }
  std::vector<IssueState*> elsewhere;  // there are routes that are new since
  tables.issues.for_each([&](IssueState& state) {
    if (state.firing) {
      if (strayed.contains(&state) || !tables.groups.at_home(state)) elsewhere.push_back(&state);
    } else if (state.groups.empty()) {
      tables.issues.retire(state);
    }
  });
  // Groups may be full: who comes first is not to hang on how a table lies in memory.
  std::sort(elsewhere.begin(), elsewhere.end(),
            [](const IssueState* a, const IssueState* b) { return a->key < b->key; });
  for (IssueState* state : elsewhere) tables.groups.route(*state, now, false);
}

}  // namespace tocsin::routing
