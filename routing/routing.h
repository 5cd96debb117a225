// Door of routing: which issues are told to whom, and when. Decides only: no I/O, no clock (ticks
// are arguments), no threads, no chance. Same inputs and ticks → same notifications with the same
// ids. Source: docs/routing.md.
//
// One owner drives a Router, in this order:
//
//   create → restore(key, value)… → restored(now)          state from the changelog `router-state`
//   then, again and again:  on_issue / on_job / on_delivery, tick(now), take()
//
// and commits what take() gives (notifications, changed state) in one transaction with its input
// positions. Until restored() nothing is flushed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/command.h"
#include "core/function_ref.h"
#include "core/issue.h"
#include "core/labels.h"
#include "core/notification.h"
#include "core/own_issue.h"
#include "core/result.h"
#include "core/time.h"
#include "routing/standing/inhibition_survey.h"
#include "routing/standing/router_standing.h"
#include "routing/suppress/acknowledgement.h"
#include "routing/suppress/inhibit_rules.h"
#include "routing/suppress/silence.h"
#include "routing/suppress/silence_rules.h"
#include "routing/suppress/suppressor.h"
#include "routing/tables/figures.h"
#include "routing/tables/limits.h"
#include "routing/tables/stats.h"
#include "routing/tables/views.h"
#include "routing/times/calendar.h"
#include "routing/times/read_time_intervals.h"
#include "routing/times/time_interval.h"
#include "routing/tree/explanation.h"
#include "routing/tree/integration.h"
#include "routing/tree/matchers.h"
#include "routing/tree/route_config.h"

namespace tocsin::routing {

/// The issues that the router reports of itself.
std::span<const core::OwnIssue> own_issues() noexcept;

struct RouterOptions {
  Config limits;
  std::string config_version;
  std::string source = "/default/router";  // of built-in issues: "/<cluster>/router"
  std::vector<InhibitRule> inhibit_rules;
  std::vector<TimeInterval> time_intervals;
  std::vector<std::shared_ptr<const Suppressor>> suppressors;  // further ones; all are asked
  /// What one call of tick() gives out at most, and then says that more is due. A flush is never
  /// cut.
  struct Budget {
    std::size_t notifications = 1000;
    std::size_t bytes = std::size_t{4} << 20;  // of the issues they list
    std::size_t members = 100'000;             // issues looked at
  } budget;
};

/// What an event says beside the members of Repeat, as a sum. Two of equal sums differ at most in those
/// members and in what nobody is told of an issue that is only said again: texts of annotations, and
/// steps, times, counts and measured numbers of what was found.
using Outline = std::array<std::uint64_t, 2>;

/// An event, as far as it is read before it is decoded. Texts are borrowed.
struct Repeat {
  Outline outline{};
  std::string_view source;
  std::string_view event_id;
  std::uint64_t sequence = 0;
  core::WallTime time{};
  core::WallTime starts_at{};
};

/// A change of one entity of the router's state; nullopt = gone (tombstone).
struct StateRecord {
  std::string key;
  std::optional<std::string> value;
  bool waits = false;  // means something only beside the positions of what was read
};

/// An issue began or ended an episode: for logs and tocsin_router_issue_transitions_total.
struct Transition {
  std::string issue_key;
  std::uint64_t episode = 1;
  core::IssueStatus to = core::IssueStatus::firing;
  core::Resolution resolution = core::Resolution::none;
};

/// One look at one group for one integration: for tocsin_router_decisions_total.
struct Decision {
  std::string integration;
  std::string route_id;
  std::string group_key;
  std::string reason;  // "none" when nobody had to be told
};

/// A flush, and how far behind its scheduled time it was: for tocsin_router_flush_late_seconds.
struct FlushDelay {
  std::string route_id;
  core::Duration late{};
};

/// Somebody beyond the receivers of a route was told: for tocsin_router_escalations_total and
/// tocsin_router_fallbacks_total.
struct Further {
  std::string route_id;
  std::string receiver;
  std::optional<std::size_t> step;  // of the ladder, from 0
  std::string failed;               // else the integration that it stands in for
};

/// What happened since the last take(), to be committed as one unit.
struct Output {
  std::vector<core::Notification> notifications;  // in the order decided; `rendered` is empty
  std::vector<StateRecord> state;                 // ascending by key, one per changed entity
  std::vector<StateRecord> control;  // of `router-control`: silences that come to an end
  std::vector<Transition> transitions;
  std::vector<Decision> decisions;
  std::vector<Further> further;
  std::vector<std::string> ack_origins;  // of acknowledgements that were taken on
  std::vector<FlushDelay> flush_delays;
  [[nodiscard]] bool empty() const noexcept {
    return notifications.empty() && state.empty() && control.empty() && transitions.empty() &&
           decisions.empty();
  }
};

/// Not thread-safe: one owner.
class Router {
 public:
  /// invalid_argument: matchers that do not parse, a receiver without integration, duplicate route
  /// or integration ids, a time interval that is none or is not there.
  static core::Result<std::unique_ptr<Router>> create(const RouteConfig& tree,
                                                      std::vector<RuleActions> rule_actions,
                                                      std::vector<Integration> integrations,
                                                      RouterOptions options);
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  /// One record of the state, in any order, newest value per key. Keys of others are ignored.
  /// data_loss: the value cannot be read (the entity is left out).
  core::Status restore(std::string_view key, std::string_view value);
  /// Keys of which records may be restored as they are read: an older value, then a newer one, then
  /// none. There are so many of them that keeping the newest until all are read takes as much memory
  /// as the router itself.
  [[nodiscard]] static bool restores_as_read(std::string_view key) noexcept;
  /// The newest record of such a key says that it is gone, or cannot be read.
  void restore_gone(std::string_view key);
  /// All state is there: links it, closes groups whose route is gone, and lifts the barrier. What
  /// is overdue is flushed once by the next tick(). `now` = UTC.
  void restored(core::WallTime now);

  /// One event; `now` is its arrival. Duplicates and stale reports are counted and ignored. What it
  /// makes due at once on a route without group_wait is decided before it returns, so that a
  /// resolve further on in the same poll does not hide it: one tick() per poll is enough.
  void on_issue(core::Issue issue, core::WallTime now);
  /// Where the event has an outline, it may come again by on_repeat().
  void on_issue(core::Issue issue, core::WallTime now, const std::optional<Outline>& outline);
  /// True: an issue that fires is said again, and what on_issue() would have done is done. False:
  /// nothing is done; decode the event and give it to on_issue().
  bool on_repeat(const Repeat& repeat, core::WallTime now);
  /// ended → the attempt's issues resolve (not those about the end itself); a higher attempt
  /// started → those of lower ones do.
  void on_job(const core::JobEvent& event, core::WallTime now);
  /// Where the page about an attempt that has ended lies (docs/report.md). Messages about its issues
  /// say it from then on, as the annotation `report`.
  void on_report(const core::RunRef& run, std::string where, core::WallTime now);
  /// A stop that a run is asked for (action "stop"; others are passed over), its answers, and that it
  /// was taken back. Messages about the run say what came of it, and come soon.
  void on_stop(const core::Command& command, core::WallTime now);
  void on_stop_withdrawn(const core::RunUid& run);
  void on_ack(const core::Ack& ack, core::WallTime now);
  /// The notification log follows: what never arrived is not told any more.
  void on_delivery(const core::Delivery& delivery, core::WallTime now);
  /// A record of `router-control`: key, and its value (nullopt: taken back). invalid_argument: it
  /// asks for nothing that the router knows.
  core::Status on_control(std::string_view key, std::optional<std::string_view> value,
                          core::WallTime now);
  /// While true (some input is not read to its end), the backlog goes before telling: old issues,
  /// repeats, ends and expiries wait until it is false, or catchup_hold_max is over; then all that
  /// is due is told once, and the next catchup_hold_max begins. Fresh issues (of the last seconds)
  /// are told as always, except between restored() and the first round. Call it each turn before
  /// tick().
  void set_behind(bool behind, core::WallTime now);
  /// All issues that were published before `at` have been given to on_issue(). A group with targets of
  /// inhibit rules that is due later than that waits, at most inhibit_settle: a source may come.
  /// Without a call nothing waits.
  void set_read_until(core::WallTime at);
  /// Does what is due at or before `now`: expiries, flushes, forgetting, oldest first, until the
  /// budget is used. Missed ticks of a group collapse into one. True: more is due; take() and call
  /// again.
  bool tick(core::WallTime now);
  /// When tick() is next needed; may lie in the past: now.
  [[nodiscard]] std::optional<core::WallTime> next_deadline() const;
  /// Hands over what changed; the next call starts empty. Lose it only together with the router.
  Output take();

  /// The whole state, ascending by key: for a reload (create a second Router, restore into it).
  [[nodiscard]] std::vector<StateRecord> snapshot() const;
  void for_each_issue(core::FunctionRef<void(const IssueView&)> visit) const;
  /// Those that fire, in any order, without what is only read for a message.
  void for_each_firing(core::FunctionRef<void(const FiringView&)> visit) const;
  /// nullopt: it does not fire. Borrowed until the next event or tick.
  [[nodiscard]] std::optional<FiringView> find_firing(std::string_view issue_key) const;
  [[nodiscard]] std::optional<IssueView> find_issue(std::string_view issue_key) const;
  /// Also for runs whose attempt has ended, as long as they are remembered.
  [[nodiscard]] std::optional<RunView> find_run(const core::RunUid& uid) const;
  [[nodiscard]] const Stats& stats() const noexcept;
  /// The figures that have a label.
  void for_each_figure(EachFigure each) const;
  /// Which leaves labels reach, in tree order, and why the others were not.
  [[nodiscard]] Explanation explain(const core::Labels& labels) const;
  /// The tree with what holds at each node, a parent before its children.
  [[nodiscard]] std::vector<RouteView> routes() const;
  /// Why nobody is told of this route's groups at `at`: "mute_time:<name>", "active_time:<name>".
  [[nodiscard]] std::vector<std::string> muted_by(std::string_view route_id,
                                                  core::WallTime at) const;

 private:
  struct Parts;
  explicit Router(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace tocsin::routing
