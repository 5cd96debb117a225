// Groups: which issue is a member of which, when a group's turn comes, and how long it is remembered
// (docs/routing.md, Groups).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/function_ref.h"
#include "core/labels.h"
#include "core/result.h"
#include "core/time.h"
#include "routing/agenda.h"
#include "routing/issues.h"
#include "routing/notification_log.h"
#include "routing/route_tree.h"
#include "routing/routing.h"
#include "routing/state.h"
#include "routing/state_codec.h"
#include "routing/store.h"

namespace tocsin::routing {

/// The limits kept an issue from a group of its own (`begins`), or there is room again.
struct Overflow {
  std::string route_id;
  bool begins = true;
  core::WallTime at{};
};

/// Records `group/<hash>`; who is a member stands in the records of the issues.
class Groups {
 public:
  Groups(const RouteTree& tree, const Config& limits, Agenda& agenda, Issues& issues,
         NotificationLog& log)
      : tree_(tree), limits_(limits), agenda_(agenda), issues_(issues), log_(log) {}

  /// Makes a firing issue a member where its labels lead, and no longer where they led before,
  /// unless somebody was told there. `new_episode`: it may pull a flush forward.
  void route(IssueState& state, core::WallTime now, bool new_episode);
  /// The end of an issue that is in no group: those who were told hear of it. False: nobody was.
  bool route_resolved(IssueState& state, core::WallTime now);
  /// Nobody has to hear of it here any more.
  void leave(Group& group, IssueState& state);
  /// The far side has not heard that these are over: they are members until it has.
  void tell_again(Group& group, const std::string& integration,
                  const std::vector<std::string>& issue_keys, core::WallTime now);
  /// What a flush would decide may be another thing now.
  void change(Group& group);
  void change_all_of(const IssueState& state);

  [[nodiscard]] Group* find(std::string_view hash) const { return table_.find(hash); }
  [[nodiscard]] Group* find(const std::string& route_id, const std::string& group_key) const;
  /// All of them, ascending by hash.
  [[nodiscard]] auto in_order() const { return table_.in_order(); }
  /// With members, or due to be flushed.
  [[nodiscard]] std::size_t active() const noexcept { return active_; }

  /// The tick that is told when `due` has come: missed ones collapse into the newest. nullopt: that
  /// one is on the agenda, behind what is due before it.
  std::optional<core::WallTime> tick_for(Group& group, core::WallTime due, core::WallTime now);
  /// It was looked at for `tick`; its next turn is on the grid, after `now`.
  void advance(Group& group, core::WallTime tick, core::WallTime now);
  /// Its flush left no member: it is absent, and remembers its generation and what was told.
  void dissolve(Group& group, core::WallTime at);
  /// Due::forget_group.
  void forget(const Agenda::Entry& due);
  /// Puts its next turn on the agenda.
  void arrange(const Group& group);
  void touch(const Group& group) { table_.touch(group.hash); }

  /// While the input is behind, groups of old issues are held.
  void set_behind(bool behind, core::WallTime now);
  /// Groups that became due at once since last asked.
  std::vector<std::string> take_at_once() { return std::exchange(at_once_, {}); }
  std::vector<Overflow> take_overflows() { return std::exchange(overflows_, {}); }
  /// Times the limits kept an issue from a group of its own.
  [[nodiscard]] std::uint64_t overflowed() const noexcept { return overflowed_; }

  core::Status restore(std::string_view hash, std::string_view value);
  /// "<hash>/<issue key>", a record as it once was.
  core::Status restore_member(std::string_view rest);
  /// Members are linked to their groups; the routes of groups are those of the present tree, and
  /// null where theirs is gone.
  void link();
  /// A group whose route is gone, or groups otherwise now, is no longer one.
  void abandon(Group& group, core::WallTime now);
  /// All is linked: timers run on. `quiet`: were there ticks of which no record was made?
  void start(core::WallTime now, core::FunctionRef<bool(const Group&)> quiet);
  void take(std::vector<StateRecord>& out) { table_.take(out); }
  void take_gone_members(std::vector<StateRecord>& out);
  void snapshot(std::vector<StateRecord>& out) const { table_.snapshot(out); }

 private:
  Group& find_or_make(const Route& route, const core::Labels& labels, const std::string& hash,
                      bool overflow);
  Group& group_for(IssueState& state, const Route& route, const core::Labels& labels,
                   core::WallTime now);
  [[nodiscard]] Group* group_of_cause(const IssueState& state, const Route& route) const;
  void activate(Group& group, const IssueState& first, core::WallTime now);
  void join(Group& group, IssueState& state);
  void hurry(Group& group, const IssueState& state, core::WallTime now);
  void follow_tree(IssueState& state) const;
  [[nodiscard]] bool belongs(const Group& group, IssueState& state) const;
  void erase(const std::string& hash);

  const RouteTree& tree_;
  const Config& limits_;
  Agenda& agenda_;
  Issues& issues_;
  NotificationLog& log_;
  Table<Group> table_{"group"};
  std::unordered_map<std::string, std::string> hash_of_key_;  // route id 0x1F group key → hash
  std::map<std::string, std::size_t> active_of_route_;
  std::size_t active_ = 0;
  bool behind_ = false;
  std::vector<std::string> at_once_;
  std::vector<Overflow> overflows_;
  std::uint64_t overflowed_ = 0;
  std::vector<std::pair<std::string, std::string>> old_members_;  // hash, issue key
  std::set<std::string> gone_members_;                            // their records, to take back
};

/// The last point of the grid that starts at `first` and is not after `now`.
core::WallTime last_on_grid(core::WallTime first, core::Duration interval, core::WallTime now);

}  // namespace tocsin::routing
