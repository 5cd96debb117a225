// Issues: their episodes, which of them fire, and when one of them ends by itself or is forgotten
// (docs/routing.md, Life of an issue). What follows for groups is the router's business.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/issue.h"
#include "core/result.h"
#include "core/time.h"
#include "routing/routing.h"
#include "routing/tables/agenda.h"
#include "routing/tables/firing_index.h"
#include "routing/tables/issue_life.h"
#include "routing/tables/repeats.h"
#include "routing/tables/shared_text.h"
#include "routing/tables/state.h"
#include "routing/tables/state_codec.h"
#include "routing/tables/store.h"

namespace tocsin::routing {

/// Records `issue/<issue key>`.
class Issues {
 public:
  /// `firing` is told of every change.
  Issues(const Config& limits, Agenda& agenda, FiringIndex& firing)
      : limits_(limits), agenda_(agenda), index_(firing) {}

  /// The issue of these labels, made where there is none.
  IssueState& of(const core::Labels& labels);
  [[nodiscard]] IssueState* state_of(std::string_view issue_key) const {
    return table_.find(issue_key);
  }

  /// Merges a normalized report. `untold`: some integration has still to hear that the present
  /// episode is over, so that its last report is kept.
  Effect merge(IssueState& state, const core::Issue& report, core::WallTime now, bool untold);
  /// The next report of this outline may be one that is only said again.
  void outline(IssueState& state, const core::Issue& report, const Outline& outline) {
    if (made_by(state, report)) repeats_.remember(state, outline);
  }
  /// The issue that a report of this outline only says again. null: the report is to be read whole.
  [[nodiscard]] IssueState* said_again(const Outline& outline, const Said& said) const {
    IssueState* const state = repeats_.find(outline);
    return state != nullptr && only_said_again(*state, said) ? state : nullptr;
  }
  /// What merge() does with such a report.
  void say_again(IssueState& state, const Said& said, core::WallTime now);
  /// Ends the present episode at `at`, which may lie before `now`. False: it does not fire.
  bool end(IssueState& state, core::Resolution resolution, core::WallTime at, core::WallTime now);
  /// Nobody has to hear of it any more: it is remembered for `retention`, then forgotten.
  void retire(const IssueState& state);
  void keep(std::string_view issue_key) { agenda_.cancel(Due::forget_issue, issue_key); }
  /// Due::forget_issue. One that fires, or that groups still have, stays.
  void forget(std::string_view issue_key, core::WallTime now);
  /// Its expiry was set aside and counts again.
  void expect(std::string_view issue_key);
  /// Its record is to be written.
  void touch(const IssueState& state) { table_.touch(state.key); }

  /// Keys of those that fire.
  [[nodiscard]] std::set<std::string> firing_of(const std::string& run) const;
  [[nodiscard]] std::size_t firing() const noexcept { return firing_; }
  [[nodiscard]] std::size_t size() const noexcept { return table_.size(); }
  /// All of them, ascending by key.
  [[nodiscard]] auto in_order() const { return table_.in_order(); }
  /// All of them, ascending by key, where there is no view of them to be kept.
  [[nodiscard]] std::vector<IssueState*> by_key() const;
  /// All of them, in any order.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    table_.for_each(visit);
  }

  core::Status restore(std::string_view issue_key, std::string_view value);
  void restore_gone(std::string_view issue_key) { table_.restore_gone(issue_key); }
  void restored();
  void take(std::vector<StateRecord>& out) { table_.take(out); }
  std::vector<Transition> take_transitions() { return std::exchange(transitions_, {}); }
  void snapshot(std::vector<StateRecord>& out) const { table_.snapshot(out); }

 private:
  [[nodiscard]] core::Duration repeat_grain(const IssueState& state) const;
  void outlive_run(IssueState& state, core::WallTime now) const;
  void save(IssueState& state, Effect effect, core::WallTime now);
  void follow(IssueState& state, Effect effect, core::WallTime now);
  void change(IssueState& state, core::WallTime now);
  void share_sources(IssueState& state);
  void began(IssueState& state);
  void join_run(IssueState& state);
  void leave_run(IssueState& state, const std::string& run);
  void ended(IssueState& state);

  const Config& limits_;
  Agenda& agenda_;
  FiringIndex& index_;
  Table<IssueState> table_{"issue"};
  // Run uid → those that fire, each at its place_in_run. Many issues fire, of few runs.
  std::unordered_map<std::string, std::vector<IssueState*>> firing_of_run_;
  SharedTexts sources_;  // of reports
  Repeats repeats_;
  std::size_t firing_ = 0;
  std::vector<Transition> transitions_;  // since the last take
};

}  // namespace tocsin::routing
