// Stops that wait for a person's word (docs/approvals.md): which, until when, and what follows from the
// word.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actions/stop/firing_issues.h"
#include "actions/stop/stop_ledger.h"
#include "core/command.h"
#include "core/current_run.h"
#include "core/issue.h"
#include "core/mutex.h"
#include "core/stop_request.h"
#include "core/time.h"

namespace tocsin::actions {

/// The records `approval/<command id>` of `router-control`, as far as they have been read or written
/// here. No clock, no I/O: a restart rebuilds it from the topic. Thread-safe.
class StopApprovals {
 public:
  /// A record of the topic; nullopt: taken back.
  void on_record(const std::string& id, std::optional<core::StopRequest> request);
  [[nodiscard]] std::optional<core::StopRequest> find(const std::string& id) const;
  /// Runs for which that rule has asked for a stop that waits, or waited, at or after `since`.
  [[nodiscard]] std::set<core::RunUid> asked_since(const std::string& rule,
                                                   core::WallTime since) const;
  /// Of the stops that wait because this rule is suspected, the one that was asked first.
  [[nodiscard]] std::optional<core::StopRequest> first_suspect(const std::string& rule) const;
  /// Takes a request that is about to be written. False: there is one of that id, which stays, unless
  /// what asked for it had recovered.
  bool begin(const core::StopRequest& request);
  /// It could not be written.
  void forget(const std::string& id);

  struct Due {
    std::vector<core::StopRequest> decided;  // to be written
    std::vector<core::Command> commands;     // to be written, reserved in the ledger
    std::vector<core::Issue> issues;         // what people hear of it
  };
  using Find = std::function<std::optional<core::CurrentRun>(const core::RunUid&)>;
  /// What follows by now. Only for the leader, once it has read everything: a command is made where a
  /// word was given and none was written yet, and its time has not passed.
  /// `firing`: a stop whose issues have all recovered is cancelled, and one whose quorum is there goes on;
  /// null: nobody knows what fires. `heard`: words said before it have been read, nullopt: all; what time
  /// decides is decided once the words said in time are known.
  Due due(StopLedger& ledger, const Find& find, const std::string& cluster, core::WallTime now,
          const FiringIssues* firing = nullptr, std::optional<core::WallTime> heard = std::nullopt);
  /// Words by which a command in a message names where records lie.
  void name_place(std::vector<std::string> place) { place_ = std::move(place); }

 private:
  struct Turn;  // what due() is given
  void follow(core::StopRequest& request, const Turn& turn, Due& out) REQUIRES(mutex_);
  void follow_quorum(core::StopRequest& request, const Turn& turn, Due& out) REQUIRES(mutex_);
  void suspicions_over(const Turn& turn, Due& out) REQUIRES(mutex_);

  mutable core::Mutex mutex_;
  std::map<std::string, core::StopRequest> requests_ GUARDED_BY(mutex_);
  std::set<std::string> overwritten_
      GUARDED_BY(mutex_);  // by who had not read the word: written again
  std::set<std::string> rejected_ GUARDED_BY(mutex_);  // people are to hear that it waits no more
  // Rules of which a suspected stop was decided → when: people are to hear once none waits.
  std::map<std::string, core::WallTime> cleared_ GUARDED_BY(mutex_);
  std::vector<std::string> place_;  // set before others use it
};

/// The same command, with who has approved it.
core::Command approved(core::Command command, const std::string& by);
/// The issue by which people hear that a stop waits: `commands` name it. It is over once somebody has
/// decided, or the attempt has ended.
core::Issue stop_waits_issue(const core::StopRequest& request, const std::string& cluster,
                             const std::vector<std::string>& place);
core::Issue stop_waits_over(const core::StopRequest& request, const std::string& cluster);

}  // namespace tocsin::actions
