// The entities of the router's state; each is one record of its changelog (see state_codec.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/issue.h"
#include "core/labels.h"
#include "core/notification.h"
#include "core/run_told.h"
#include "core/stop_course.h"
#include "core/time.h"
#include "routing/tables/kept_issue.h"
#include "routing/tables/sequences.h"
#include "routing/tables/shared_text.h"
#include "routing/tables/short_key.h"

namespace tocsin::routing {

struct Group;
struct Route;

/// Where the newest report of an issue stands among those of its producer.
struct Newest {
  SharedText source;
  std::uint64_t sequence = 0;
  core::WallTime time{};
  friend bool operator==(const Newest&, const Newest&) = default;
};

/// One issue over all its episodes. Record `issue/<issue key>`.
struct IssueState {
  ShortKey key;
  /// Of the current or last episode: what was found, by its first or most severe report, and in
  /// `ending` how it ended (core/episode.h).
  KeptIssue issue;
  Newest newest;              // of its reports
  std::uint64_t episode = 0;  // 0: only an orphan resolve was seen
  bool firing = false;
  std::optional<core::WallTime> expires_at;  // of a firing issue; nullopt: ends by a resolve only
  bool expiry_explicit = false;              // the producer named the end, or named none on purpose
  core::WallTime last_transition{};
  /// When it last became another one for the index of firing issues, where that is later: its labels
  /// changed, or its end was heard of after it.
  std::optional<core::WallTime> changed_at;
  Sequences sequences;
  /// Ended episodes before the present one of which somebody has still to hear the end: their last
  /// reports, so that an end is told with its own times.
  std::map<std::uint64_t, core::Issue> past;

  std::vector<std::string> joined;  // hashes as read back, until restored() has linked them
  // Not stored: when its record was written last, so that what is only said again writes none.
  core::WallTime saved_at{};
  std::uint32_t place_in_run = 0;  // among those of its run that fire
  bool outlined = false;           // it is among the repeats (repeats.h), where `outline` says
  std::uint64_t outline = 0;
  // Linked by restored():
  std::vector<Group*> groups;  // where it is a member; stored by their hashes
  const std::vector<const Route*>* leaves =
      nullptr;  // of its present labels; null: not asked for yet
};

/// What one integration was told about one group. Record `log/<group hash>/<integration id>`.
struct TellLog {
  struct Told {
    std::uint64_t episode = 1;
    std::uint64_t by = 0;  // seq of the message it depends on; 0: the far side has it
    core::Severity severity = core::Severity::info;
    bool over = false;  // the message that told of it said that it was over
    friend bool operator==(const Told&, const Told&) = default;
  };
  struct Owed {
    std::uint64_t episode = 1;
    core::WallTime since{};
    friend bool operator==(const Owed&, const Owed&) = default;
  };
  /// A message whose delivery has no final state yet.
  struct Pending {
    std::uint64_t seq = 0;
    std::string id;  // of the notification
    core::NotificationKind kind = core::NotificationKind::open;
    core::WallTime decided_at{};
    std::vector<std::pair<std::string, Told>> over;  // issue key → the episode whose end it tells
    friend bool operator==(const Pending&, const Pending&) = default;
  };
  std::map<ShortKey, Told, std::less<>> told;  // issue key → firing episode it knows of
  std::map<ShortKey, Owed, std::less<>> owed;  // issue key → resolve it has still to hear of
  std::optional<core::WallTime> last_tick;     // scheduled time of the last message
  std::uint64_t seq = 0;                       // messages so far in this generation
  bool placed = false;           // as far as deliveries say, an incident is open at the far side
  std::vector<Pending> pending;  // in the order of seq
  bool by_issue = false;         // Integration::every_issue: no message speaks for another one
  friend bool operator==(const TellLog&, const TellLog&) = default;
};

/// By integration id.
using GroupLogs = std::map<std::string, TellLog>;

/// Issues of one route that share the group labels. Record `group/<group hash>`; who is a member
/// stands in the records of the issues. Flushed without members it becomes absent, and only
/// remembers its generation and logs.
struct Group {
  struct Member {
    IssueState* state = nullptr;
    bool strayed = false;  // its labels lead elsewhere now: only who was told still hears
  };
  std::string hash;
  std::string key;  // shown: "<matcher path>:{k=\"v\"}"
  std::string route_id;
  std::string grouping;  // Route::grouping() when it was made
  core::Labels labels;
  bool overflow = false;
  std::uint64_t generation = 0;
  core::WallTime created_at{};
  std::optional<core::WallTime> next_tick;    // on the grid of group_interval
  std::optional<core::WallTime> urgent_at;    // before next_tick, off the grid
  std::optional<core::WallTime> pulled_at;    // the same, because of what a run did
  std::optional<core::WallTime> last_urgent;  // last flush that was urgent
  std::optional<core::WallTime> last_tick;
  std::uint64_t flush_seq = 0;
  bool running = false;  // flushed at least once in this generation
  bool held = false;     // waits for the end of a catch-up
  std::optional<core::WallTime> absent_since;

  // Not stored with it.
  const GroupLogs* logs = nullptr;  // of the notification log; never null in a table
  const Route* route = nullptr;
  std::map<std::string_view, Member> members;  // by the key of the state
  bool changed = true;   // since its last flush: else there is nothing to decide but a repeat
  bool unsaved = false;  // its timer has moved without a record: written with the next change

  [[nodiscard]] bool active() const noexcept { return next_tick.has_value(); }
  [[nodiscard]] std::optional<core::WallTime> next_flush() const {
    std::optional<core::WallTime> first = next_tick;
    for (const auto& at : {urgent_at, pulled_at}) {
      if (at && (!first || *at < *first)) first = at;
    }
    return first;
  }
};

/// What is known of a run. Record `run/<run uid>`.
struct RunState {
  std::uint32_t attempt = 0;
  std::string job;
  core::Labels labels;
  core::WallTime last_seen{};
  std::optional<core::WallTime> ended_at;  // of `attempt`
  bool lost = false;
  bool heard = false;  // of itself, by a job event; else only an issue named it
  // Of `attempt`, as far as its job events say:
  std::map<std::string, std::string> launch;
  std::string outcome;
  std::optional<std::int64_t> step;
  std::optional<double> step_seconds;
  core::WallTime step_time{};
  std::string report;  // where the page lies that was written at its end
  std::string platform;
  std::optional<core::WallTime> started_at;
  std::optional<int> exit_code;
  std::uint32_t world_size = 0;
  std::optional<core::StopCourse> stop;  // the stop that it was asked for
  /// The attempt before, as messages about its issues still tell it.
  std::optional<core::RunTold> before;
  // Not stored: when it was written last, so that heartbeats do not write every time.
  core::WallTime saved_at{};
};

}  // namespace tocsin::routing
