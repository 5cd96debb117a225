// Rules of how long steps take. Every worker's time of a step, with what its spans say of it, is
// handed over when nobody can add to the step any more; workers come by rank, whatever the order in
// which their records came. A step whose end was lost is a gap, no long step.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "rules/contract/selection.h"
#include "rules/evaluate/evaluator.h"

namespace tocsin::rules {

inline constexpr double kNsPerSecond = 1e9;

/// One worker's time of one step. `Notes`: what a rule keeps of the spans in it.
template <typename Notes>
struct StepTime {
  std::uint32_t worker = 0;
  std::uint32_t rank = 0;
  bool ended = false;  // false: only spans were seen of it
  std::int64_t global_step = 0;
  std::int64_t start = 0;  // UTC ns
  std::int64_t end = 0;
  std::int64_t after_train = INT64_MIN;  // the worker's last ended train step
  Notes notes{};

  /// Seconds; 0 where its worker does not say when it began.
  [[nodiscard]] double seconds() const noexcept {
    return static_cast<double>(std::max<std::int64_t>(distance(end, start), 0)) / kNsPerSecond;
  }

  template <typename A>
  friend void io(A& a, StepTime& t) {
    io_all(a, t.worker, t.rank, t.ended, t.global_step, t.start, t.end, t.after_train, t.notes);
  }
};

/// A step that everybody has ended. Its workers are those that said how long it took.
template <typename Notes>
struct TimedStep {
  core::Mode mode = core::Mode::train;
  std::int64_t step = 0;
  std::span<const StepTime<Notes>> workers;
};

/// Whether steps of this mode are those of a training: where workers wait for each other.
inline bool trains(core::Mode mode) noexcept {
  return mode == core::Mode::train || mode == core::Mode::global;
}

/// Times that wait for the others.
template <typename Notes>
class StepTimes {
 public:
  using Key = std::pair<std::uint8_t, std::int64_t>;  // mode, step
  using Workers = std::map<std::uint32_t, StepTime<Notes>>;
  static constexpr std::size_t kMost = 1U << 17;  // of one rule and run

  /// nullptr: the step is over already.
  StepTime<Notes>* of(std::uint32_t worker, core::Mode mode, std::int64_t step) {
    const std::uint8_t number = number_of(mode);
    if (step <= released_[number]) return nullptr;
    Workers& workers = waiting_[{number, step}];
    const auto [place, fresh] = workers.try_emplace(worker);
    if (fresh) {
      ++size_;
      place->second.worker = worker;
      const auto trained = trained_.find(worker);
      if (trained != trained_.end()) place->second.after_train = trained->second;
    }
    return &place->second;
  }
  void trained(std::uint32_t worker, std::int64_t step) { trained_[worker] = step; }
  [[nodiscard]] bool full() const noexcept { return size_ > kMost; }

  using Taken = std::pair<Key, std::vector<StepTime<Notes>>>;
  /// The next step of `mode` up to `step` that waits.
  std::optional<Taken> take(core::Mode mode, std::int64_t step) {
    const std::uint8_t number = number_of(mode);
    const auto first = waiting_.lower_bound({number, INT64_MIN});
    if (first == waiting_.end() || first->first.first != number || first->first.second > step) {
      released_[number] = std::max(released_[number], step);
      return std::nullopt;
    }
    return out(first);
  }
  /// One of `mode` that came before train step `step` ended.
  std::optional<Taken> take_before(core::Mode mode, std::int64_t step) {
    const std::uint8_t number = number_of(mode);
    for (auto at = waiting_.lower_bound({number, INT64_MIN});
         at != waiting_.end() && at->first.first == number; ++at) {
      const bool before = std::all_of(at->second.begin(), at->second.end(), [&](const auto& one) {
        return one.second.after_train < step;
      });
      if (before) return out(at);
    }
    return std::nullopt;
  }
  /// The oldest of all.
  std::optional<Taken> take_any() {
    const auto place = [](const auto& step) {
      std::int64_t global = INT64_MIN;
      for (const auto& [worker, time] : step.second) global = std::max(global, time.global_step);
      return std::make_tuple(global, step.first);
    };
    const auto oldest =
        std::min_element(waiting_.begin(), waiting_.end(),
                         [&](const auto& a, const auto& b) { return place(a) < place(b); });
    if (oldest == waiting_.end()) return std::nullopt;
    return out(oldest);
  }

  template <typename A>
  friend void io(A& a, StepTimes& s) {
    io_all(a, s.waiting_, s.trained_, s.released_, s.size_);
  }

 private:
  static std::uint8_t number_of(core::Mode mode) noexcept {
    return static_cast<std::uint8_t>(static_cast<std::uint8_t>(mode) & 3U);
  }
  Taken out(typename std::map<Key, Workers>::iterator at) {
    Taken taken{at->first, {}};
    size_ -= at->second.size();
    for (auto& [worker, time] : at->second) {
      if (time.ended && time.end > time.start) taken.second.push_back(std::move(time));
    }
    waiting_.erase(at);
    std::int64_t& released = released_[taken.first.first];
    released = std::max(released, taken.first.second);
    std::sort(taken.second.begin(), taken.second.end(), [](const auto& a, const auto& b) {
      return std::tie(a.rank, a.worker) < std::tie(b.rank, b.worker);
    });
    return taken;
  }

  std::map<Key, Workers> waiting_;
  std::map<std::uint32_t, std::int64_t> trained_;  // per worker: newest train step it has ended
  std::array<std::int64_t, 4> released_{INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN};
  std::uint64_t size_ = 0;
};

template <typename Rule>
struct TimedMemory {
  StepTimes<typename Rule::Notes> times;
  typename Rule::State state{};

  template <typename A>
  friend void io(A& a, TimedMemory& m) {
    io_all(a, m.times, m.state);
  }
};

/// `Rule` has: Config; Notes, with io() and, where the rule wants spans, note(span) → whether it was
/// of interest; State, with io(); completed(config, state, step, scope); forget(state, worker) when
/// a worker begins anew; finish(config, state, scope) at the end of the run.
template <typename Rule>
class TimedEvaluator final : public EvaluatorOf<TimedMemory<Rule>> {
 public:
  using Notes = typename Rule::Notes;
  static constexpr bool kSpans = requires(Notes & notes, const core::SpanRow& span) {
    notes.note(span);
  };
  explicit TimedEvaluator(const typename Rule::Config& config) : config_(config) {}

  void on_spans(std::uint32_t worker, const core::FrameView& frame, Scope& scope) override {
    if constexpr (kSpans) {
      for (std::size_t i = 0; i < frame.rows(); ++i) {
        const core::SpanRow span = frame.span(i);
        if (span.duration < 0 || !Notes::wants(span)) continue;
        auto* time = this->state.times.of(worker, frame.header().mode, span.step);
        if (time == nullptr) {
          scope.late(1);
          continue;
        }
        time->global_step = std::max(time->global_step, frame.header().global_step);
        time->notes.note(span);
      }
      bound(scope);
    }
  }
  void on_step_end(const WorkerStep& step, Scope& scope) override {
    if (auto* time = this->state.times.of(step.worker, step.mode, step.step)) {
      time->rank = scope.rank(step.worker);
      time->ended = true;
      time->global_step = step.global_step;
      time->start = step.start;
      time->end = step.end;
    } else {
      scope.late(1);
    }
    if (step.mode == core::Mode::train) this->state.times.trained(step.worker, step.step);
    bound(scope);
  }
  void on_closed(core::Mode mode, std::int64_t step, Scope& scope) override {
    while (auto next = this->state.times.take(mode, step)) judge(*next, scope);
    if (mode != core::Mode::train) return;
    for (const core::Mode other : {core::Mode::eval, core::Mode::predict}) {
      while (auto next = this->state.times.take_before(other, step)) judge(*next, scope);
    }
  }
  void on_restart(std::uint32_t worker) override { Rule::forget(this->state.state, worker); }
  void on_end(Scope& scope) override {
    while (auto next = this->state.times.take_any()) judge(*next, scope);
    Rule::finish(config_, this->state.state, scope);
  }

 private:
  void bound(Scope& scope) {
    while (this->state.times.full()) judge(*this->state.times.take_any(), scope);
  }
  void judge(const typename StepTimes<Notes>::Taken& taken, Scope& scope) {
    if (taken.second.empty()) return;
    Rule::completed(config_, this->state.state,
                    TimedStep<Notes>{static_cast<core::Mode>(taken.first.first), taken.first.second,
                                     taken.second},
                    scope);
  }

  const typename Rule::Config& config_;  // of the program, which outlives its evaluators
};

/// `Rule::kStepClock(config)`: whether its issues stand at steps.
template <typename Rule>
class TimedProgramOf final : public Program {
 public:
  typename Rule::Config config;
  [[nodiscard]] std::uint32_t inputs() const noexcept override {
    return input::kStepEnds | input::kClosedSteps |
           (TimedEvaluator<Rule>::kSpans ? input::kSpans : 0U);
  }
  [[nodiscard]] std::unique_ptr<Evaluator> evaluator() const override {
    return std::make_unique<TimedEvaluator<Rule>>(config);
  }
  [[nodiscard]] bool step_clock() const noexcept override { return Rule::by_steps(config); }
};

/// Like read_row_rule, for rules of this shape.
template <typename Rule>
std::shared_ptr<const Program> read_timed_rule(config::Reader& in, Preset preset) {
  return read_rule<Rule, TimedProgramOf<Rule>>(in, preset);
}

/// One evaluation of one worker's steps of a mode: these two are the unit.
void judged_worker(Scope& scope, std::uint32_t worker, const Place& place, Verdict verdict,
                   Scope::Explain explain);

}  // namespace tocsin::rules
