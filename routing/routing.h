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

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config.h"
#include "core/command.h"
#include "core/function_ref.h"
#include "core/issue.h"
#include "core/labels.h"
#include "core/notification.h"
#include "core/own_issue.h"
#include "core/result.h"
#include "core/time.h"
#include "routing/suppress/suppressor.h"

namespace tocsin::routing {

/// The issues that the router reports of itself.
std::span<const core::OwnIssue> own_issues() noexcept;

enum class MatchOperator { equal, not_equal, regex, not_regex };

/// Conjunction of `name OP "value"`, OP one of = != =~ !~. Regexes are RE2, anchored at both ends.
/// A missing label compares as the empty text. Cheap to copy; matching is thread-safe.
class Matchers {
 public:
  struct Term {
    std::string name;
    MatchOperator op = MatchOperator::equal;
    std::string value;
  };

  Matchers();
  /// `{a="b", c=~"d"}`, the same without braces, or one term; empty text and `{}` match everything.
  /// invalid_argument says what was expected at which character (counted from 1).
  static core::Result<Matchers> parse(std::string_view text);
  /// All terms of all texts.
  static core::Result<Matchers> parse(const std::vector<std::string>& texts);

  [[nodiscard]] bool matches(const core::Labels& labels) const;
  [[nodiscard]] const std::vector<Term>& terms() const noexcept;
  /// Does the term at `index` hold for this value of its label (empty = absent)?
  [[nodiscard]] bool holds(std::size_t index, std::string_view value) const;
  /// `{a="b",c=~"d"}`: terms in the order they were written, always quoted; parses to the same.
  [[nodiscard]] std::string canonical() const;
  [[nodiscard]] bool empty() const noexcept { return terms().empty(); }

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

/// `name OP "value"` as canonical() writes it.
std::string to_text(const Matchers::Term& term);

/// For a time nobody is told of issues whose labels match. A record of `router-control`, key
/// `silence/<id>`; a null value takes it back.
struct Silence {
  std::string id;        // sil_…
  std::string matchers;  // as Matchers::parse reads them
  core::WallTime starts_at{};
  core::WallTime ends_at{};
  core::WallTime created_at{};
  std::string created_by;
  std::string comment;
  std::string actions;  // what it holds back: notify, stop_training; empty: both
};
/// Every issue that it matches is looked at with all of them; one more is refused.
inline constexpr std::size_t kMaxSilences = 1000;
/// How long one is kept after its end.
inline constexpr core::Duration kSilenceKept = std::chrono::hours(120);
[[nodiscard]] bool in_force(const Silence& silence, core::WallTime at) noexcept;
std::string silence_json(const Silence& silence);
/// invalid_argument: it is none, or check() says why it is not to be.
core::Result<Silence> read_silence(std::string_view json);
/// invalid_argument: matchers that do not parse, or that all hold where their label is missing, or an
/// end that is not after the begin.
core::Status check(const Silence& silence);

/// One action config of one receiver, as far as deciding needs it; filled from `receivers`.
struct Integration {
  std::string id;        // stable; unique
  std::string receiver;  // several integrations may share one
  std::string type;      // webhook, email, …
  std::size_t index = 0;
  bool send_resolved = true;
  std::size_t max_alerts = 100;  // issues listed in one message; 0 = no limit
  core::Duration max_age = std::chrono::hours(24);
  std::string when;  // matchers: which members this action is told of
  bool enabled = true;
  bool shadow = false;  // decided and recorded as usual; the deliverer does not send
  /// The far side keeps an incident open until told otherwise: one that is lost sight of is closed
  /// there, and a resolve is told although the issue is suppressed. Else that resolve is owed until
  /// the suppression ends.
  bool stateful = true;
  /// The action acts on each issue by itself (a topic, an alert, a series, a run to stop): a flush
  /// tells it all issues, in as many messages as that takes. Else a message lists what fits and
  /// counts the rest.
  bool every_issue = false;
  Purpose purpose = Purpose::notify;  // what of it a suppression holds back
};

/// One rung of a repeat ladder: `every`, as long as the oldest firing member is younger than
/// `until`.
struct RepeatStep {
  std::optional<core::Duration> until;
  core::Duration every = std::chrono::hours(4);
};

/// A node of the routing tree as written. What is not set is inherited from the parent; at the root
/// the defaults are group_by [job, run_uid], group_wait 30s, group_interval 5m, repeat_interval 4h.
struct RouteConfig {
  std::string id;
  std::vector<std::string> matchers;
  bool proceed = false;                              // key `continue`: try later siblings too
  std::vector<std::string> receivers;                // empty = inherited; mandatory at the root
  std::optional<std::vector<std::string>> group_by;  // {"..."} = by all labels
  std::optional<core::Duration> group_wait;
  std::optional<core::Duration> group_interval;
  std::optional<std::vector<RepeatStep>> repeat_interval;
  std::string immediate_on;  // matchers; a new member that matches pulls the flush forward
  std::optional<core::Duration> urgent_wait;
  std::optional<core::Duration> urgent_min_gap;
  std::vector<RouteConfig> routes;
};

/// Reads the section `route` of the root map. Every problem is reported at its place, also names of
/// receivers that are not among `receivers`. Returns whether the section is there.
bool read_route(config::Reader& root, RouteConfig& route,
                const std::vector<std::string>& receivers);

/// The part of the section `router` that belongs to deciding.
struct Config {
  core::Duration resolve_timeout = std::chrono::minutes(5);
  core::Duration dedup_window = std::chrono::hours(24);
  std::uint64_t dedup_max = 1'000'000;
  core::Duration max_future = std::chrono::minutes(5);
  core::Duration retention = std::chrono::hours(24);  // of resolved issues and ended runs
  core::Duration owed_max_age = std::chrono::hours(168);
  core::Duration catchup_hold_max = std::chrono::seconds(30);
  core::Duration job_lost_after{};  // 0 = never
  std::uint64_t max_groups = 50'000;
  std::uint64_t max_groups_per_route = 50'000;
  std::uint64_t max_members_per_group = 10'000;
};
/// Call it inside `section("router", …)`; other rooms may read their keys from the same map.
void read(config::Reader& in, Config& cfg);

/// A rule's `actions: [stop]`: a route of its own to these receivers, beside the tree: the tree
/// still decides about the same issue. Grouped by run and rule, no group_wait, new episodes at
/// once.
struct RuleActions {
  std::string rule;
  std::vector<std::string> receivers;
};

struct RouterOptions {
  Config limits;
  std::string config_version;
  std::string source = "/default/router";  // of built-in issues: "/<cluster>/router"
  std::vector<std::shared_ptr<const Suppressor>> suppressors;  // in this order; all are asked
  /// What one call of tick() gives out at most, and then says that more is due. A flush is never
  /// cut.
  struct Budget {
    std::size_t notifications = 1000;
    std::size_t bytes = std::size_t{4} << 20;  // of the issues they list
    std::size_t members = 100'000;             // issues looked at
  } budget;
};

/// A change of one entity of the router's state; nullopt = gone (tombstone).
struct StateRecord {
  std::string key;
  std::optional<std::string> value;
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

/// What happened since the last take(), to be committed as one unit.
struct Output {
  std::vector<core::Notification> notifications;  // in the order decided; `rendered` is empty
  std::vector<StateRecord> state;                 // ascending by key, one per changed entity
  std::vector<Transition> transitions;
  std::vector<Decision> decisions;
  std::vector<core::Duration> flush_delays;  // tick's now − the flush's scheduled time
  [[nodiscard]] bool empty() const noexcept {
    return notifications.empty() && state.empty() && transitions.empty() && decisions.empty();
  }
};

/// Totals since create(), and present sizes.
struct Stats {
  std::uint64_t events = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t stale = 0;
  std::uint64_t rejected = 0;      // no labels
  std::uint64_t clamped = 0;       // began too far in the future
  std::uint64_t late_issues = 0;   // of a run that had ended, or of an earlier attempt
  std::uint64_t seen_evicted = 0;  // ids forgotten within the window: more than dedup_max
  std::uint64_t orphan_resolves = 0;
  std::uint64_t groups_overflow = 0;
  std::uint64_t suppressed = 0;  // member × flush × reason
  std::uint64_t owed_dropped = 0;
  std::uint64_t flushes = 0;
  std::uint64_t notifications = 0;
  std::uint64_t truncated = 0;  // issues that a message counted and did not list
  std::uint64_t untold = 0;     // episodes whose message never arrived: news again
  // Present sizes:
  std::uint64_t firing = 0;
  std::uint64_t issues = 0;
  std::uint64_t groups = 0;  // with members
  std::uint64_t runs = 0;
  std::uint64_t seen = 0;
  std::uint64_t owed = 0;
  std::uint64_t undelivered = 0;                     // messages without a final state
  std::uint64_t waiting = 0;                         // held back while the input is behind
  std::uint64_t silences = 0;                        // in force at the newest tick
  std::optional<core::WallTime> oldest_undelivered;  // when it was decided
  std::optional<core::WallTime> next_due;            // what tick() would do first
};

/// Calls `each` for every counter (they only grow). Names are complete metric names.
void for_each_counter(
    const Stats& stats,
    core::FunctionRef<void(std::string_view name, std::string_view help, std::uint64_t value)>
        each);
/// Calls `each` for every value that goes up and down; ages are seconds at `now`.
void for_each_gauge(
    const Stats& stats, core::WallTime now,
    core::FunctionRef<void(std::string_view name, std::string_view help, double value)> each);

/// An issue as the router knows it, for state series and listings.
struct IssueView {
  const core::Issue& issue;  // borrowed for the call
  const std::string& issue_key;
  bool firing = false;
  std::uint64_t episodes = 0;  // since it was first seen
  core::WallTime last_transition{};
};

/// What is known of a run: its newest attempt, by its own job events or by issues, whichever named
/// it first.
struct RunView {
  std::uint32_t attempt = 0;                  // 0: no job event or issue has named one
  std::map<std::string, std::string> launch;  // JobEvent::launch; empty: not heard yet
  std::optional<core::WallTime> ended_at;     // of this attempt
  bool lost = false;                          // no sign of life for job_lost_after
  std::string outcome;                        // of its end
  std::optional<std::int64_t> step;           // newest train step, at step_time
  std::optional<double> step_seconds;         // median of one
  core::WallTime step_time{};
  std::string job;
  std::string report;                  // where its page lies
  std::optional<core::StopTold> stop;  // that this attempt was asked for
};

/// A leaf that given labels reach.
struct MatchedRoute {
  std::string route_id;
  std::string path;  // canonical matchers from the root: `{}/{severity="error"}`
  std::vector<std::string> receivers;
  std::vector<std::string> integrations;
  core::Labels group_labels;
  std::string group_key;
  core::Duration group_wait{};
  core::Duration group_interval{};
  core::Duration repeat_interval{};  // first rung
};
/// A node that was tried and did not match, with the first term that failed.
struct NearMiss {
  std::string route_id;
  std::string path;
  std::string term;
  std::string value;  // of the label; empty = absent
};
struct Explanation {
  std::vector<MatchedRoute> leaves;
  std::vector<NearMiss> misses;
};

/// Not thread-safe: one owner.
class Router {
 public:
  /// invalid_argument: matchers that do not parse, a receiver without integration, duplicate route
  /// or integration ids, missing codec.
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
  /// All state is there: links it, closes groups whose route is gone, and lifts the barrier. What
  /// is overdue is flushed once by the next tick(). `now` = UTC.
  void restored(core::WallTime now);

  /// One event; `now` is its arrival. Duplicates and stale reports are counted and ignored. What it
  /// makes due at once on a route without group_wait is decided before it returns, so that a
  /// resolve further on in the same poll does not hide it: one tick() per poll is enough.
  void on_issue(core::Issue issue, core::WallTime now);
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
  [[nodiscard]] std::optional<IssueView> find_issue(std::string_view issue_key) const;
  /// Also for runs whose attempt has ended, as long as they are remembered.
  [[nodiscard]] std::optional<RunView> find_run(const core::RunUid& uid) const;
  [[nodiscard]] const Stats& stats() const noexcept;
  /// Which leaves labels reach, in tree order, and why the others were not.
  [[nodiscard]] Explanation explain(const core::Labels& labels) const;

 private:
  class Impl;
  explicit Router(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tocsin::routing
