// Inside of the engine. Its parts: engine.cc (records in, ticks), lanes.cc (rows), steps.cc (step
// clock, series), system.cc (samples), evaluators.cc (rules with a state of their own), lifecycle.cc
// (jobs), issues.cc (issue life), state.cc
// (snapshots and logged entries).
#pragma once

#include <array>
#include <bit>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/function_ref.h"
#include "rules/cut.h"
#include "rules/evaluate/evaluator.h"
#include "rules/rules.h"
#include "rules/run/operational.h"
#include "rules/run/run.h"

namespace tocsin::rules {

/// A decision that does not follow from the records: written to rules-state, applied again on
/// replay.
struct Entry {
  enum class What : std::uint8_t {
    grace_over,
    idle,
    silence,
    forget,
    lost,
    skew,
    skew_over,
    refuse,
    admit,
  };
  What what = What::grace_over;
  RunId run;
  std::uint32_t attempt = 0;
  std::uint32_t worker = kNoLane;
  std::uint32_t rule = 0;
  std::int64_t now = 0;
  std::map<std::string, std::int64_t> next;  // positions at which it was made

  /// Made while the record at `next` was handled, and after that had made its run and worker known;
  /// the others come before it.
  [[nodiscard]] bool within_record() const noexcept {
    return what == What::skew || what == What::skew_over;
  }

  template <typename A>
  friend void io(A& a, Entry& e) {
    io_all(a, e.what, e.run, e.attempt, e.worker, e.rule, e.now, e.next);
  }
};

using StreamPositions = std::map<std::string, std::int64_t, std::less<>>;

struct PartitionState {
  std::int32_t number = 0;
  StreamPositions next;
  Output output;  // since the last take()
  bool silent = false;
  std::string incomplete;  // why the state is not what it should be; empty: it is
  std::map<RunId, std::unique_ptr<Run>> runs;
  std::set<RunId> refused;  // runs that found no room
  Cut cut;
  std::uint64_t log_first = 0;  // logged entries that the last cut does not contain
  std::uint64_t log_next = 0;
  std::deque<Entry> replay;                       // waiting for their positions, oldest first
  std::map<std::string, std::string> restored{};  // key → value, until finish_restore
  /// Of a partition that had no state: written with the first positions. A transaction without
  /// positions is not fenced by the group, and one that comes late would put an empty state over
  /// what another owner has written since.
  std::optional<StateRecord> first_index;
  std::vector<Event> farewell;  // resolutions of rules that are gone, told when going live

  [[nodiscard]] bool owes_first_index() const {
    return first_index.has_value() && !silent && !next.empty();
  }
};

/// The unit of an evaluation: its number, and its labels when somebody needs them.
struct Unit {
  OpenKey key;  // without kind
  std::uint32_t worker = kNoLane;
  core::FunctionRef<Labels()> labels;
};

/// What the engine knows about a unit beyond its labels, for evidence.
struct Extra {
  std::optional<core::TensorRef> tensor = {};
  core::Affected affected = {};
  std::optional<core::Role> role = {};  // of the tensor or scalar, where the unit is one
};

using Explain = core::FunctionRef<std::pair<Finding, Extra>(unsigned kind)>;

struct Engine::Impl {
  template <typename P>
  struct Bound {
    std::uint32_t rule = 0;
    const P* program = nullptr;
  };

  RulesConfig configured;
  std::vector<RuleSettings> all_rules;  // configured ones, then the operational ones
  EngineOptions options;
  std::vector<Bound<RowProgram>> row_rules;
  /// Rules of scalars of completed steps.
  struct SeriesRule {
    std::uint32_t evaluator = 0;
    const Program* program = nullptr;
  };
  std::vector<SeriesRule> series_rules;
  std::vector<Bound<ClockProgram>> clock_rules;
  /// Rules that are judged by evaluators, series rules among them, and who of them takes what: by
  /// bit of input::….
  struct Evaluated {
    std::uint32_t rule = 0;
    const Program* program = nullptr;
    std::uint64_t identity = 0;
  };
  std::vector<Evaluated> evaluated;
  std::array<std::vector<std::uint32_t>, input::kCount> takers;
  std::uint32_t first_own = 0;  // of all_rules: the first operational one

  std::map<std::int32_t, PartitionState> partitions;
  EngineStats stats;

  // The record or tick being worked on.
  PartitionState* part = nullptr;
  RecordRef ref;
  std::string ref_topic;
  std::int64_t now = 0;                // engine time: arrival, or record time in replays
  std::int64_t evaluated_at = 0;       // what issues state as such
  std::int64_t next_check = kForever;  // record time: nothing is due before

  // Scratch, to keep rows free of allocation.
  std::vector<std::uint32_t> slots;
  std::vector<core::SparseColumn> sparse;
  std::vector<core::SparseVector> vectors;
  std::vector<RowHit> noted;
  std::vector<SeriesValue> values;
  std::vector<std::uint32_t> chosen_rows;
  std::uint32_t current = kNoLane;                 // the worker whose frame is being handled
  std::map<std::uint32_t, std::string> summaries;  // of the run that ends right now, by rule

  // engine.cc
  void bind();
  PartitionState& partition(std::int32_t number);
  void on_record(const core::FrameView& frame, const core::FrameBody& body, const RecordRef& from,
                 core::WallTime arrival);
  void on_frame(const core::FrameView& frame, const core::FrameBody& body);
  void handle(Run& run, std::uint32_t worker, const core::FrameView& frame,
              const core::FrameBody& body);
  void tell_incomplete();
  Run* find_run(const core::FrameHeader& header);
  [[nodiscard]] bool make_room();
  void decide(Entry entry);
  bool enter_attempt(Run& run, const core::FrameView& frame, const core::Lifecycle* body);
  std::uint32_t find_worker(Run& run, const core::FrameHeader& header);
  void unwatched(Run& run, const core::FrameHeader& header);
  void check_clock(Run& run, std::uint32_t worker, const core::FrameHeader& header);
  void sync(Run& run, std::uint32_t worker) { run.workers.sync(worker); }
  bool accept_sequence(Run& run, Worker& worker, const core::FrameHeader& header);
  void progress(Run& run, Worker& worker, const core::FrameHeader& header);
  void on_dictionary(Run& run, const core::Dictionary& names);
  void learn(Run& run, const core::NamedEntry& entry);
  void tick_run(Run& run, std::int64_t time, bool zero_lag, std::vector<Entry>& due);
  void tick_silence(Run& run, std::int64_t time, std::vector<Entry>& due);
  void tick_partition(PartitionState& partition, std::int64_t time, bool zero_lag);
  void apply(const Entry& entry);
  void apply_run(const Entry& entry, Run& run);
  void clamp_times(Run& run, std::int64_t time);
  void apply_silence(Run& run, const Entry& entry);
  void count_clock(Run& run, const Bound<ClockProgram>& clock, bool at_end);
  [[nodiscard]] std::int64_t idle_limit(const Worker& worker) const;
  void advance_record_time();
  [[nodiscard]] std::string name_of(const Run& run, std::uint64_t hash) const;
  [[nodiscard]] bool wants_worker(const Common& common, const Worker& worker) const;

  // lanes.cc
  Lane& lane(Run& run, std::uint32_t worker, core::Mode mode, bool scalars);
  std::uint32_t slot(Run& run, Lane& lane, std::uint64_t name, std::uint64_t meta,
                     std::uint32_t guess);
  static Candidate candidate_of(const Run& run, std::uint32_t worker);
  static Candidate candidate_of(const Run& run, const Lane& lane, std::size_t number);
  void resolve(Run& run, Lane& lane);
  void on_summary(Run& run, std::uint32_t worker, const core::FrameView& frame);
  void on_scalars(Run& run, std::uint32_t worker, const core::FrameView& frame);
  void judge_rows(Run& run, std::uint32_t lane_number, RowBatch& batch, Place place);
  void settle_rows(Run& run, std::uint32_t lane_number, std::size_t row_rule,
                   std::span<const RowHit> hits, const RowBatch* batch, const Place& place);
  void end_row_step(Run& run, std::uint32_t worker, core::Mode mode, std::int64_t step,
                    const Place& place);
  void end_row_step(Run& run, std::uint32_t lane_number, std::int64_t step, const Place& place);
  void reset_units(Run& run, std::uint32_t worker);
  void flush_rows(Run& run);

  // steps.cc
  void on_step_end(Run& run, std::uint32_t worker, const core::FrameView& frame);
  void end_step(Run& run, std::uint32_t worker, core::Mode mode, std::int64_t step,
                const Place& place);
  void add_pending(Run& run, std::uint32_t worker, const core::FrameHeader& header,
                   std::int64_t step, std::int64_t global_step, std::int64_t time,
                   std::uint64_t name, double value, core::Role role);
  void implicit_step_ends(Run& run, std::uint32_t worker, core::Mode mode, std::int64_t step);
  void advance(Run& run, bool everything = false);
  void tell_closed(Run& run, bool trains, bool all);
  void release(Run& run, std::vector<PendingScalar>& items);
  void judge_group(Run& run, std::span<const PendingScalar> items, std::optional<std::size_t> only);
  void judge_step(Run& run, std::span<const PendingScalar> items, std::optional<std::size_t> only);
  void judge_pass(Run& run, std::span<const PendingScalar> items, std::optional<std::size_t> only);
  void run_series(Run& run, const StepPoint& point, bool pass, const Place& place,
                  std::optional<std::size_t> only);

  // system.cc
  void on_system(Run& run, std::uint32_t worker, const core::FrameView& frame);
  void close_snapshot(Run& run, NodeState& node, std::int64_t next);
  void flush_nodes(Run& run);

  // evaluators.cc
  class EvaluatorScope;
  void bind_evaluators();
  [[nodiscard]] const std::vector<std::uint32_t>& takers_of(std::uint32_t which) const {
    return takers[static_cast<std::size_t>(std::countr_zero(which))];
  }
  Evaluator& evaluator(Run& run, std::uint32_t number);
  void feed(Run& run, std::uint32_t number, core::FunctionRef<void(Evaluator&, Scope&)> call);
  void feed_all(Run& run, std::uint32_t which, core::FunctionRef<void(Evaluator&, Scope&)> call);
  void choose(Run& run, Lane& lane);
  void feed_rows(Run& run, std::uint32_t lane_number, WorkerRows rows,
                 std::span<const std::uint32_t> units);
  void feed_step_end(Run& run, const WorkerStep& step);
  void feed_closed(Run& run, core::Mode mode, std::int64_t step);
  void end_evaluators(Run& run);
  void restart_evaluators(Run& run, std::uint32_t worker);

  // lifecycle.cc
  void on_lifecycle(Run& run, std::uint32_t worker, const core::FrameView& frame,
                    const core::Lifecycle& body);
  void on_start(Run& run, Worker& worker, const core::FrameHeader& header,
                const core::Lifecycle& body);
  void on_preflight(Run& run, std::uint32_t worker, const core::Lifecycle& body, std::int64_t time);
  void on_died(Run& run, const core::Lifecycle& body, std::int64_t time);
  void heartbeat(Run& run, std::int64_t time, bool due);
  void finish_again(Run& run, std::int64_t time);
  void tell_end(Run& run, const std::string& outcome);
  void revive(Run& run, std::int64_t time);
  void check_end(Run& run);
  void finish(Run& run, core::Resolution resolution, bool lost = false);
  void give_up_parts(Run& run, bool names);
  EvaluatorParts take_series(Run& run);
  void supersede(Run& run, std::uint32_t attempt, std::optional<std::int64_t> continues_from);
  void request_capture(Run& run, std::int64_t time);
  [[nodiscard]] core::RunRef run_ref(const Run& run) const;
  core::JobEvent job_event(const Run& run, core::JobPhase phase, std::uint64_t number,
                           std::int64_t time) const;

  // issues.cc
  [[nodiscard]] const RuleSettings& settings(std::uint32_t rule) const { return all_rules[rule]; }
  void count(Run& run, std::uint32_t rule, const OutcomeCounts& counts);
  void settle(Run& run, std::uint32_t rule, Life& life, const Unit& unit, Verdict verdict,
              const Place& place, Explain explain);
  void fire(Run& run, std::uint32_t rule, Life& life, const Unit& unit, unsigned kind,
            const Place& place, Explain explain);
  void begin(Run& run, std::uint32_t rule, const OpenKey& key, Open& open, core::Issue& issue,
             const Place& place, const std::optional<core::Role>& role);
  void name_causes(const Run& run, const Open& open, core::Issue& issue) const;
  void resolve_open(Run& run, const OpenKey& key, core::Resolution resolution, const Place& place);
  void resolve_all(Run& run, core::Resolution resolution, bool lost = false);
  core::Issue make_issue(const Run& run, const RuleSettings& which, const Open& open,
                         const Place& place) const;
  static void identify(const Run& run, core::Issue& issue, const Open& open, const Place& place);
  void resolve_gone(PartitionState& partition, const Run& run, const RuleSettings& gone,
                    const Open& open, std::uint64_t sequence);
  void send_issue(Run& run, std::uint32_t rule, core::Issue issue, const Open& open,
                  const Place& place);
  void set_state(Run& run, std::uint32_t rule, core::RuleState state, std::string reason = {});
  void emit(Event event);

  // operational.cc
  [[nodiscard]] std::uint32_t own(Operational which) const {
    return first_own + static_cast<std::uint32_t>(which);
  }
  static std::int64_t later(Run& run, std::uint32_t rule, std::int64_t time);
  void raise(Run& run, Operational which, std::uint32_t worker, std::int64_t time, Finding finding);
  void lower(Run& run, Operational which, std::uint32_t worker, std::int64_t time);
  void raise_plain(Operational which, const core::RunUid& run, std::int64_t time,
                   std::string summary);
  void judge_gap(Run& run, std::uint32_t worker, const Place& place);

  // state.cc
  void log(Entry entry);
  [[nodiscard]] int beyond(const Entry& entry) const;
  void replay_one();
  void replay_entries();
  void replay_within(const Run& run, std::uint32_t worker);
  [[nodiscard]] std::uint32_t slots_per_part() const;

  // restore.cc
  core::Status read_state(PartitionState& state, Index& index,
                          std::map<std::string, std::string>& records);
  static core::Status read_log(PartitionState& state, const Index& index,
                               std::map<std::string, std::string>& records);

  // remap.cc
  [[nodiscard]] std::string layout() const;
  void remap(PartitionState& partition, Run& run, const std::string& before);
};

/// Frames by which a training shows that it goes on.
inline bool is_progress(core::FrameKind kind) {
  return kind == core::FrameKind::summary || kind == core::FrameKind::scalar ||
         kind == core::FrameKind::step_end;
}

}  // namespace tocsin::rules
