// Rules of system metrics, one node at a time: snapshots are observed as they close, and judged once
// per evaluation period of event time. Time is cut at the multiples of the period; what a node has
// sent in a piece is judged when its samples have passed the piece's end, or the run is over.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/identity.h"
#include "core/time.h"
#include "rules/evaluate/active_spans.h"
#include "rules/evaluate/evaluator.h"

namespace tocsin::rules {

/// What every configuration of this shape begins with.
struct SampleConfig {
  core::Duration scan_interval = std::chrono::seconds(60);
};
/// Declares `scan_interval_us`.
void read_scan_interval(config::Reader& in, SampleConfig& config);

/// Where a rule puts its verdicts about a node or one of its devices.
class SampleReport {
 public:
  using Explain = Scope::Explain;
  SampleReport(Scope& scope, const Place& place, std::uint64_t number, std::string_view node)
      : scope_(scope), place_(place), number_(number), node_(node) {}

  /// Of the node as a whole (`device` empty), or of one device or process of it.
  void evaluated(std::string_view device, Verdict verdict, Explain explain);
  [[nodiscard]] const Scope& scope() const noexcept { return scope_; }

 private:
  Scope& scope_;
  const Place& place_;
  std::uint64_t number_;  // of the node among those of the run
  std::string_view node_;
};

/// End of the piece of time that `time` lies in. Floor division: times before 1970 have pieces too.
std::int64_t interval_end(std::int64_t time, core::Duration period) noexcept;

/// `Rule` has: Config; State of a node, with io(); observe(config, state, snapshot) → bit mask of the
/// rule's inputs that the snapshot held; kInputs, the mask that makes a piece of time worth judging;
/// judge(config, state, report).
template <typename Rule>
struct NodeMemory {
  std::uint64_t number = 0;
  std::string name;
  std::int64_t end = INT64_MIN;  // of the open piece of time; INT64_MIN: none
  std::uint32_t seen = 0;        // inputs in it
  typename Rule::State state{};

  template <typename A>
  friend void io(A& a, NodeMemory& n) {
    io_all(a, n.number, n.name, n.end, n.seen, n.state);
  }
};

/// Whether a rule wants spans beside samples.
template <typename Rule>
inline constexpr bool kWantsSpans = requires(typename Rule::State& state) {
  Rule::spans(state);
};

template <typename Rule>
class SampleEvaluator final : public EvaluatorOf<std::map<std::uint64_t, NodeMemory<Rule>>> {
 public:
  explicit SampleEvaluator(const typename Rule::Config& config) : config_(config) {}

  void on_snapshot(const NodeSnapshot& snapshot, Scope& scope) override {
    NodeMemory<Rule>& node = this->state[snapshot.node];
    node.number = snapshot.node;
    if (!snapshot.name.empty()) node.name = snapshot.name;
    if (!snapshot.readings.empty()) {
      const std::int64_t end = interval_end(snapshot.time, config_.scan_interval);
      if (node.end != INT64_MIN && node.end != end) judge(node, scope);
      node.end = end;
      node.seen |= Rule::observe(config_, node.state, snapshot);
      if constexpr (kEach) return judge_at(node, snapshot.time, snapshot.time, scope);
    }
    if (node.end == INT64_MIN || snapshot.next < node.end) return;
    judge(node, scope, snapshot.next != INT64_MAX);
  }
  /// `Rule` may have spans(state), an ActiveSpans: those of workers on a node that has sent samples.
  void on_spans(std::uint32_t worker, const core::FrameView& frame, Scope& scope) override {
    if constexpr (kWantsSpans<Rule>) {
      const auto node = this->state.find(core::name_hash(scope.node(worker)));
      if (node == this->state.end()) return;
      auto& spans = Rule::spans(node->second.state);
      for (std::size_t i = 0; i < frame.rows(); ++i) {
        const core::SpanRow span = frame.span(i);
        if (ActiveSpans::wants(span)) spans.span(span);
      }
    }
  }
  /// `Rule` may have summary(nodes), the nodes by the hash of their names: told at the end of the run;
  /// and interim(nodes, node, period_end), behind each judgement of a node while the run goes on: what
  /// to tell of it so far, or nothing.
  void on_end(Scope& scope) override {
    if constexpr (requires { Rule::summary(this->state); }) {
      scope.summary(Rule::summary(this->state));
    }
  }

 private:
  /// Judged at each snapshot instead: `Rule` has kEachSample.
  static constexpr bool kEach = requires { Rule::kEachSample; };

  void judge(NodeMemory<Rule>& node, Scope& scope, bool goes_on = true) {
    const std::int64_t end = std::exchange(node.end, INT64_MIN);
    // A piece of time that lacks one of the inputs brings nothing new to judge.
    if ((std::exchange(node.seen, 0U) & Rule::kInputs) != Rule::kInputs || kEach) return;
    judge_at(node, distance(end, config_.scan_interval.count()), end, scope);
    if constexpr (requires { Rule::interim(this->state, node, end); }) {
      if (!goes_on) return;
      core::ValueMap told = Rule::interim(this->state, node, end);
      if (!told.empty()) scope.interim(end, std::move(told));
    }
  }
  void judge_at(NodeMemory<Rule>& node, std::int64_t first, std::int64_t time, Scope& scope) {
    Place place;
    place.step_clock = false;
    place.time = time;
    place.first_time = first;
    SampleReport report(scope, place, node.number, node.name);
    Rule::judge(config_, node.state, report);
  }

  const typename Rule::Config& config_;  // of the program, which outlives its evaluators
};

template <typename Rule>
class SampleProgramOf final : public Program {
 public:
  typename Rule::Config config;  // derives from SampleConfig
  [[nodiscard]] std::uint32_t inputs() const noexcept override {
    return input::kSnapshots | (kWantsSpans<Rule> ? input::kSpans : 0U);
  }
  [[nodiscard]] std::unique_ptr<Evaluator> evaluator() const override {
    return std::make_unique<SampleEvaluator<Rule>>(config);
  }
  [[nodiscard]] bool step_clock() const noexcept override { return false; }
};

/// Like read_row_rule, for rules of this shape.
template <typename Rule>
std::shared_ptr<const Program> read_sample_rule(config::Reader& in, Preset preset) {
  return read_rule<Rule, SampleProgramOf<Rule>>(in, preset);
}

}  // namespace tocsin::rules
