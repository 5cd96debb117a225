// The tables that events change, joined, and the changelog `router-state` that they are kept in.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "routing/routing.h"
#include "routing/tables/acks.h"
#include "routing/tables/agenda.h"
#include "routing/tables/capacity.h"
#include "routing/tables/dedup.h"
#include "routing/tables/firing_index.h"
#include "routing/tables/flaps.h"
#include "routing/tables/groups.h"
#include "routing/tables/issues.h"
#include "routing/tables/ladders.h"
#include "routing/tables/notification_log.h"
#include "routing/tables/old_members.h"
#include "routing/tables/runs.h"
#include "routing/tables/turns.h"
#include "routing/tree/route_tree.h"

namespace tocsin::routing {

/// `tree` and `limits` outlive it.
class Tables {
 public:
  Tables(const RouteTree& tree, const Config& limits)
      : dedup(limits.dedup_window, limits.dedup_max),
        runs(limits, agenda),
        issues(limits, agenda, firing),
        turns(agenda),
        capacity(limits),
        groups(tree, agenda, turns, capacity, issues, log),
        acks(limits, agenda, issues, groups) {}
  Tables(const Tables&) = delete;
  Tables& operator=(const Tables&) = delete;

  Agenda agenda;
  Dedup dedup;
  Runs runs;
  FiringIndex firing;
  Issues issues;
  NotificationLog log;
  Turns turns;
  Capacity capacity;
  Groups groups;
  Acks acks;
  Ladders ladders;
  Flaps flaps;

  /// One record: `kind` is the part of its key before the slash, `rest` what follows. nullopt: its
  /// kind is of no table here. data_loss: its value cannot be read.
  std::optional<core::Status> restore(std::string_view kind, std::string_view rest,
                                      std::string_view value);
  /// The record that was restored last was taken back. Only of kinds that are kept_as_read().
  void restore_gone(std::string_view kind, std::string_view rest);
  /// May their records be restored as they are read, an older one before a newer one?
  static bool kept_as_read(std::string_view kind) noexcept { return kind == "issue"; }
  /// All records are there: issues, groups, runs and logs know each other.
  void link();
  /// Records of what has changed since the last call.
  void take(std::vector<StateRecord>& out);
  /// All records.
  void snapshot(std::vector<StateRecord>& out) const;
  /// Sets the figures that these tables are.
  void count(Stats& stats) const;
  void show(EachFigure each) const;

 private:
  struct Kind;

  OldMembers old_members_;
};

}  // namespace tocsin::routing
