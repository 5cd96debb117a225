// Runs: their newest attempt, their end, their loss (docs/routing.md, Life of an issue).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/command.h"
#include "core/issue.h"
#include "core/labels.h"
#include "core/run_told.h"
#include "routing/routing.h"
#include "routing/tables/agenda.h"
#include "routing/tables/state.h"
#include "routing/tables/state_codec.h"
#include "routing/tables/store.h"

namespace tocsin::routing {

/// Its uid as text, from the run or the label; empty: none.
std::string run_of(const core::Issue& issue);
std::string run_of(const KeptIssue& issue);

/// Issues about how a run ended (job_failed, job_lost, stop_failed) are not over when it is: a next
/// attempt, their producer or time ends them.
bool outlives_its_run(const KeptIssue& issue);

/// What an event means for issues; carried out in this order.
struct RunEffect {
  enum class Kind { resolve, raise_lost, clear_lost, pull };
  Kind kind = Kind::resolve;
  core::WallTime at{};
  // resolve: the issues of these attempts
  std::uint32_t first_attempt = 0;
  std::uint32_t last_attempt = 0;
  core::Resolution resolution = core::Resolution::none;
  // pull: what is told of the run's issues is told at `at` at the latest
  // raise_lost, clear_lost: of the issue job_lost
  core::Labels labels;
  std::string summary;
};
using RunEffects = std::vector<RunEffect>;

class Runs {
 public:
  Runs(const Config& limits, Agenda& agenda) : limits_(limits), agenda_(agenda) {}

  /// An issue may be the first to name a run, or its next attempt.
  RunEffects note(const core::Issue& issue, core::WallTime now);
  /// Would note() of an issue of this run do nothing?
  [[nodiscard]] bool nothing_to_note(const KeptIssue::Run& of, core::WallTime now) const;
  /// True in `stale`: of an attempt before the newest; nothing was done.
  RunEffects note(const core::JobEvent& event, core::WallTime now, bool& stale);
  /// A stop that the run is asked for, taken back, or answered. Of another attempt than the newest two
  /// nothing is known.
  RunEffects note(const core::Command& command, core::WallTime now);
  void note_withdrawn(const core::RunUid& run);
  RunEffects note(const core::Ack& ack, core::WallTime now);
  /// What a message says of the attempt that the issue is about; nullopt: nothing is known of it.
  [[nodiscard]] std::optional<core::RunTold> told(const core::Issue& issue) const;
  /// Nothing of an attempt other than the newest.
  void note_report(const core::RunRef& run, std::string where, core::WallTime now);
  /// Where the page of its run lies; nullptr: there is none, or not yet.
  [[nodiscard]] const std::string* report_of(const core::Issue& issue) const;
  /// Due::lose_run, Due::forget_run.
  RunEffects lose(const Agenda::Entry& due);
  void forget(const Agenda::Entry& due) { table_.erase(due.key); }

  /// How the issue's run is over for it, and when; nullopt: it is not, as far as is known.
  [[nodiscard]] std::optional<std::pair<core::Resolution, core::WallTime>> over(
      const KeptIssue& issue, core::WallTime now) const;
  /// Was the attempt asked to stop because of this issue's rule?
  [[nodiscard]] bool stopped_for(const KeptIssue& issue) const;
  [[nodiscard]] std::optional<RunView> find(const core::RunUid& uid) const;
  [[nodiscard]] std::size_t size() const noexcept { return table_.size(); }

  /// Puts what is due of it on the agenda.
  void watch(const std::string& uid);
  void restored();
  core::Status restore(std::string_view uid, std::string_view value) {
    return table_.restore(uid, value);
  }
  void take(std::vector<StateRecord>& out) { table_.take(out); }
  void snapshot(std::vector<StateRecord>& out) const { table_.snapshot(out); }

 private:
  void next_attempt(const std::string& uid, RunState& run, std::uint32_t attempt, core::WallTime at,
                    RunEffects& out);
  void watch(const std::string& uid, const RunState& run);
  [[nodiscard]] std::optional<core::RunTold> told_of_attempt(const std::string& uid,
                                                             std::uint32_t attempt) const;

  const Config& limits_;
  Agenda& agenda_;
  Table<RunState> table_{"run"};
};

}  // namespace tocsin::routing
