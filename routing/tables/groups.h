// Groups: which issue is a member of which, and how long a group is remembered (docs/routing.md,
// Groups). When its turn comes: turns.h; how many there may be: capacity.h.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/function_ref.h"
#include "core/labels.h"
#include "core/result.h"
#include "core/time.h"
#include "routing/routing.h"
#include "routing/tables/agenda.h"
#include "routing/tables/capacity.h"
#include "routing/tables/issues.h"
#include "routing/tables/notification_log.h"
#include "routing/tables/state.h"
#include "routing/tables/state_codec.h"
#include "routing/tables/store.h"
#include "routing/tables/turns.h"
#include "routing/tree/route_tree.h"

namespace tocsin::routing {

/// Records `group/<hash>`; who is a member stands in the records of the issues.
class Groups {
 public:
  Groups(const RouteTree& tree, Agenda& agenda, Turns& turns, Capacity& capacity, Issues& issues,
         NotificationLog& log)
      : tree_(tree),
        agenda_(agenda),
        turns_(turns),
        capacity_(capacity),
        issues_(issues),
        log_(log) {}

  /// Makes a firing issue a member where its labels lead, and no longer where they led before,
  /// unless somebody was told there. `new_episode`: it may pull a flush forward.
  void route(IssueState& state, core::WallTime now, bool new_episode);
  /// Is one that start() did not return a member where its labels lead, and nowhere else? Then route()
  /// would do nothing for an episode that is known.
  [[nodiscard]] bool at_home(IssueState& state) const;
  /// What is told of the issue is told at `at` at the latest (Turns::pull).
  void pull(const IssueState& state, core::WallTime at);
  /// The same of one group.
  void pull(Group& group, core::WallTime at);
  /// The end of an issue that is in no group: those who were told hear of it. False: nobody was.
  bool route_resolved(IssueState& state, core::WallTime now);
  /// Nobody has to hear of it here any more.
  void leave(Group& group, IssueState& state);
  /// The far side has not heard that these are over: they are members until it has.
  void tell_again(Group& group, const std::string& integration,
                  const std::vector<std::string>& issue_keys, core::WallTime now);
  /// An action declined on purpose (its job has ended, a guard) what nobody else was told of: what is
  /// over of that is not asked for again.
  void let_go(Group& group, core::WallTime now);
  /// What a flush would decide may be another thing now.
  void change(Group& group);
  void change_all_of(const IssueState& state);

  [[nodiscard]] Group* find(std::string_view hash) const { return table_.find(hash); }
  [[nodiscard]] Group* find(const std::string& route_id, const std::string& group_key) const;
  /// All of them, ascending by hash.
  [[nodiscard]] auto in_order() const { return table_.in_order(); }

  /// Its flush left no member: it is absent, and remembers its generation and what was told.
  void dissolve(Group& group, core::WallTime at);
  /// Due::forget_group.
  void forget(const Agenda::Entry& due);
  void touch(const Group& group) { table_.touch(group.hash); }

  /// What was held while the input was behind is due again.
  void release_held(core::WallTime now);

  core::Status restore(std::string_view hash, std::string_view value);
  /// Members are linked to their groups; the routes of groups are those of the present tree, and
  /// null where theirs is gone.
  void link();
  /// A group whose route is gone, or groups otherwise now, is no longer one.
  void abandon(Group& group, core::WallTime now);
  /// All is linked: timers run on, none longer than `longest`. `quiet`: the next tick that has passed
  /// without a record. Returns the issues whose labels lead elsewhere than to some group of theirs.
  std::unordered_set<const IssueState*> start(
      core::WallTime now, core::Duration longest,
      core::FunctionRef<std::optional<core::WallTime>(const Group&)> quiet);
  void take(std::vector<StateRecord>& out) { table_.take(out); }
  void snapshot(std::vector<StateRecord>& out) const { table_.snapshot(out); }

 private:
  Group& find_or_make(const Route& route, const core::Labels& labels, const std::string& hash,
                      bool overflow);
  Group& group_for(IssueState& state, const Route& route, const core::Labels& labels,
                   core::WallTime now);
  [[nodiscard]] Group* group_of_cause(const IssueState& state, const Route& route) const;
  [[nodiscard]] std::optional<core::Duration> haste(const Group& group,
                                                    const IssueState& state) const;
  [[nodiscard]] bool first_of_its_run(const Group& group, const IssueState& state) const;
  void activate(Group& group, const IssueState& first, core::WallTime now);
  void join(Group& group, IssueState& state);
  void follow_tree(IssueState& state) const;
  [[nodiscard]] bool belongs(const Group& group, IssueState& state) const;
  void forget_later(const Group& group, core::WallTime since);
  void erase(const std::string& hash);

  const RouteTree& tree_;
  Agenda& agenda_;
  Turns& turns_;
  Capacity& capacity_;
  Issues& issues_;
  NotificationLog& log_;
  Table<Group> table_{"group"};
  mutable std::set<std::vector<const Route*>> leaves_;        // of many issues, each once
  std::unordered_map<std::string, std::string> hash_of_key_;  // route id 0x1F group key → hash
};

}  // namespace tocsin::routing
