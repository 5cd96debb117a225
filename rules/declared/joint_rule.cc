// Several selections: judged at each new point of any of them, with the others as they stand. One
// worker's records come in one order, so the answer does not depend on anybody else's.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "rules/declared/point_rule.h"
#include "rules/declared/row_rule.h"
#include "rules/evaluate/evaluator.h"
#include "rules/evaluate/spare_nodes.h"

namespace tocsin::rules::declared {
namespace {

struct JointKey {
  std::uint64_t name = 0;  // 0: the selections name different things
  std::uint32_t worker = 0;
  std::uint8_t mode = kJoined;
  friend auto operator<=>(const JointKey&, const JointKey&) = default;

  static constexpr std::uint8_t kJoined = 0xFF;  // the selections are of different modes

  template <typename A>
  friend void io(A& a, JointKey& k) {
    io_all(a, k.name, k.worker, k.mode);
  }
};
using Memories = std::vector<std::vector<std::uint64_t>>;

/// Spans of one name in a step that its worker has not ended.
struct OpenSpans {
  std::uint32_t worker = 0;
  std::uint8_t mode = 0;
  std::int64_t step = 0;
  std::uint64_t name = 0;
  friend auto operator<=>(const OpenSpans&, const OpenSpans&) = default;

  template <typename A>
  friend void io(A& a, OpenSpans& o) {
    io_all(a, o.worker, o.mode, o.step, o.name);
  }
};
using Spent = std::map<OpenSpans, double>;  // seconds

struct JointState {
  std::map<JointKey, Memories> units;
  Spent spent;

  template <typename A>
  friend void io(A& a, JointState& s) {
    io_all(a, s.units, s.spent);
  }
};

bool of_rows(Selector::Source source) {
  return source != Selector::Source::step && source != Selector::Source::span;
}

struct Joint {
  const Rule& rule;
  const std::vector<Choice>& choices;
  bool named = false;    // all selections name the same thing
  bool by_mode = false;  // and look at the same modes, so that each of these is one unit
  std::string_view label;
};

class JointEvaluator final : public EvaluatorOf<JointState> {
 public:
  explicit JointEvaluator(const Joint& joint) : joint_(joint) {}

  void on_rows(const WorkerRows& rows, Scope& scope) override {
    if (rows.scalar != nullptr) return take(rows, *rows.scalar, nullptr, scope);
    for (const std::uint32_t number : rows.rows) {
      const core::SummaryRow row = rows.frame->summary(number);
      take(rows, row, rows.frame, scope);
    }
  }
  void on_spans(std::uint32_t worker, const core::FrameView& frame, Scope&) override {
    for (std::size_t i = 0; i < frame.rows(); ++i) {
      const core::SpanRow span = frame.span(i);
      if (span.duration < 0) continue;
      const auto mode = static_cast<std::uint8_t>(frame.header().mode);
      spans_.at(state.spent, {worker, mode, span.step, span.name}) +=
          static_cast<double>(span.duration) / 1e9;
    }
  }
  void on_step_end(const WorkerStep& step, Scope& scope) override {
    const auto mode = static_cast<std::uint8_t>(step.mode);
    auto at = state.spent.lower_bound({step.worker, mode, INT64_MIN, 0});
    // Steps whose end was lost are over as well, and nobody knows how long they were.
    while (at != state.spent.end() && at->first < OpenSpans{step.worker, mode, step.step, 0}) {
      at = spans_.erase(state.spent, at);
    }
    const auto of_step = [&](Spent::const_iterator one) {
      return one != state.spent.end() && one->first.worker == step.worker &&
             one->first.mode == mode && one->first.step == step.step;
    };
    const WorkerRows rows = rows_of(step);
    Point point;
    point.step = step.step;
    point.time = step.end;
    point.world_size = scope.world_size();
    point.epoch = step.epoch;
    Candidate who = scope.who(step.worker);
    who.mode = step.mode;
    std::vector<std::pair<std::size_t, double>>& seconds = seconds_;
    seconds.clear();
    for (std::size_t i = 0; i < joint_.choices.size(); ++i) {
      const Selector::Source source = joint_.rule.selected[i].selector.source;
      if (source == Selector::Source::step && step.end > step.start &&
          joint_.choices[i].matches_step(who)) {
        seconds.emplace_back(i, static_cast<double>(step.end - step.start) / 1e9);
      }
      if (source != Selector::Source::span) continue;
      double sum = 0;
      bool any = false;
      for (Spent::const_iterator one = at; of_step(one); ++one) {
        who.name = scope.find(one->first.name);
        if (joint_.choices[i].matches_span(who) != Match::yes) continue;
        sum += one->second;
        any = true;
      }
      if (any) seconds.emplace_back(i, sum);
    }
    while (of_step(at)) at = spans_.erase(state.spent, at);
    if (seconds.empty()) return;
    Memories& memories = unit(0, rows);
    cut(rows, 0, point, memories, scope);
    for (const auto& [number, value] : seconds) {
      point.value = value;
      add_point(memories, number, point);
    }
    if (!joint_.rule.formula.cut()) judge(rows, 0, point, memories, scope);
  }
  void on_restart(std::uint32_t worker) override {
    std::erase_if(state.units, [&](const auto& one) { return one.first.worker == worker; });
    std::erase_if(state.spent, [&](const auto& one) { return one.first.worker == worker; });
    chosen_.clear();
  }

 private:
  struct Who {
    std::uint64_t name;
    std::uint32_t worker;
    core::Mode mode;
    bool scalar;
    friend auto operator<=>(const Who&, const Who&) = default;
  };

  // Which selections take the row, one bit each. What is not known yet is asked again.
  std::uint32_t choose(const WorkerRows& rows, const core::SummaryRow& row, Scope& scope) {
    const Who who{row.name, rows.worker, rows.mode, rows.scalar != nullptr};
    const auto known = chosen_.find(who);
    if (known != chosen_.end()) return known->second;
    Candidate candidate = scope.who(rows.worker);
    candidate.name = scope.find(row.name);
    candidate.role = core::meta::role(row.meta);
    if (candidate.role == core::Role::other && candidate.name != nullptr) {
      candidate.role = candidate.name->role;
    }
    candidate.dtype = core::meta::dtype(row.meta);
    candidate.mode = rows.mode;
    candidate.scalar = rows.scalar != nullptr;
    std::uint32_t bits = 0;
    bool sure = true;
    for (std::size_t i = 0; i < joint_.choices.size(); ++i) {
      const Match match = of_rows(joint_.rule.selected[i].selector.source)
                              ? joint_.choices[i].matches(candidate)
                              : Match::no;
      if (match == Match::yes) bits |= 1U << i;
      sure = sure && match != Match::unknown;
    }
    if (sure) chosen_[who] = bits;
    return bits;
  }

  void take(const WorkerRows& rows, const core::SummaryRow& row, const core::FrameView* frame,
            Scope& scope) {
    const std::uint32_t bits = choose(rows, row, scope);
    if (bits == 0) return;
    Memories& memories = unit(row.name, rows);
    const Row columns(reinterpret_cast<const std::byte*>(&row), 1, 0);
    Point point;
    point.row = &columns;
    point.step = rows.step;
    point.time = rows.time;
    point.world_size = frame != nullptr ? frame->header().world_size : scope.world_size();
    point.epoch = rows.epoch;
    cut(rows, row.name, point, memories, scope);
    for (std::size_t i = 0; i < memories.size(); ++i) {
      if ((bits & (1U << i)) != 0) add_point(memories, i, point);
    }
    if (!joint_.rule.formula.cut()) judge(rows, row.name, point, memories, scope);
  }

  Memories& unit(std::uint64_t name, const WorkerRows& rows) {
    const Formula& formula = joint_.rule.formula;
    JointKey key{joint_.named ? name : 0, rows.worker};
    if (joint_.by_mode) key.mode = static_cast<std::uint8_t>(rows.mode);
    Memories& memories = state.units[key];
    if (memories.empty()) {
      memories.resize(formula.sources.size());
      for (std::size_t i = 0; i < memories.size(); ++i) {
        memories[i].resize(formula.sources[i].words);
        begin(formula, static_cast<std::uint16_t>(i), memories[i].data());
      }
    }
    return memories;
  }

  void add_point(Memories& memories, std::size_t number, const Point& point) {
    const Formula& formula = joint_.rule.formula;
    const auto source = static_cast<std::uint16_t>(number);
    arrives(formula, source, memories[number].data(), point);
    add(formula, source, memories[number].data(), point, formula.cut());
  }

  // A piece that is over is judged with the first point of any selection behind it: until then another one may
  // still have something of its last step.
  void cut(const WorkerRows& rows, std::uint64_t name, const Point& point, Memories& memories,
           Scope& scope) {
    const Formula& formula = joint_.rule.formula;
    if (!formula.cut()) return;
    const auto goes_on = [&](const std::vector<std::uint64_t>& one) {
      return open(formula, one.data()) && !beyond(formula, one.data(), point);
    };
    const auto is_open = [&](const std::vector<std::uint64_t>& one) {
      return open(formula, one.data());
    };
    if (std::any_of(memories.begin(), memories.end(), goes_on) ||
        std::none_of(memories.begin(), memories.end(), is_open)) {
      return;
    }
    for (std::size_t i = 0; i < memories.size(); ++i) {
      if (is_open(memories[i])) close(formula, static_cast<std::uint16_t>(i), memories[i].data());
    }
    judge(rows, name, point, memories, scope);
    for (std::size_t i = 0; i < memories.size(); ++i) {
      turn(formula, static_cast<std::uint16_t>(i), memories[i].data());
    }
  }

  void judge(const WorkerRows& rows, std::uint64_t name, const Point& point,
             const Memories& memories, Scope& scope) {
    std::array<const std::uint64_t*, kMostSources> words{};
    for (std::size_t i = 0; i < memories.size(); ++i) words[i] = memories[i].data();
    const Sight sight{&joint_.rule.formula, &point, words.data(), nullptr};
    const Verdict verdict = verdict_of(run(joint_.rule.formula.when, sight));
    Place place = at_step(rows.mode, rows.step, rows.global_step, rows.time);
    Subject subject;
    subject.mode = rows.mode;
    subject.step = rows.step;
    if (verdict.outcome == EvaluationOutcome::hit) {
      subject.worker = scope.worker(rows.worker);
      if (joint_.named) subject.name = scope.text(name);
    }
    const auto labels = [&]() -> Labels {
      Labels out{{"worker", scope.worker(rows.worker)}};
      if (joint_.named) out.emplace_back(joint_.label, scope.text(name));
      if (joint_.by_mode) out.emplace_back("mode", core::to_string(rows.mode));
      return out;
    };
    std::uint64_t number =
        (joint_.named ? name : 0) ^ (0x9E3779B97F4A7C15ULL * (std::uint64_t{rows.worker} + 1));
    if (joint_.by_mode) {
      number ^= 0xC2B2AE3D27D4EB4FULL * (static_cast<std::uint64_t>(rows.mode) + 1);
    }
    scope.judged(number, rows.worker, verdict, place, subject, labels,
                 [&](const Subject& whom, unsigned) {
                   return tell(joint_.rule, sight, whom, [&](const std::string& label) {
                     if (label == "worker") return whom.worker;
                     if (label == "mode") return std::string(core::to_string(whom.mode));
                     return whom.name;
                   });
                 });
  }

  const Joint& joint_;
  std::map<Who, std::uint32_t> chosen_;  // follows from names, so it is not saved
  // To allocate less; not in snapshots.
  SpareNodes<Spent, 64> spans_;
  std::vector<std::pair<std::size_t, double>> seconds_;  // of a step: selection, its value
};

class JointProgram final : public Program {
 public:
  JointProgram(Rule rule, std::vector<Choice> choices)
      : rule_(std::move(rule)),
        choices_(std::move(choices)),
        joint_{rule_, choices_, true, true, {}} {
    common.mode_mask = 0;
    const Selector& first = rule_.selected.front().selector;
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      common.mode_mask = static_cast<std::uint8_t>(common.mode_mask | choices_[i].modes());
      const Selector& other = rule_.selected[i].selector;
      joint_.named = joint_.named && other.source == first.source &&
                     other.argument == first.argument && !other.argument.empty() &&
                     other.source != Selector::Source::span;
      joint_.by_mode = joint_.by_mode && choices_[i].modes() == choices_.front().modes();
      if (other.source == Selector::Source::step) inputs_ |= input::kStepEnds;
      if (other.source == Selector::Source::span) inputs_ |= input::kStepEnds | input::kSpans;
      if (of_rows(other.source)) inputs_ |= input::kRows;
    }
    joint_.label = first.source == Selector::Source::metric ? "metric" : "tensor";
  }
  [[nodiscard]] std::uint32_t inputs() const noexcept override { return inputs_; }
  [[nodiscard]] Match selects(const Candidate& candidate) const override {
    Match best = Match::no;
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      const Match match = row_match(i, candidate);
      if (match == Match::yes) return match;
      if (match == Match::unknown) best = match;
    }
    return best;
  }
  [[nodiscard]] std::unique_ptr<Evaluator> evaluator() const override {
    return std::make_unique<JointEvaluator>(joint_);
  }

 private:
  [[nodiscard]] Match row_match(std::size_t number, const Candidate& candidate) const {
    return of_rows(rule_.selected[number].selector.source) ? choices_[number].matches(candidate)
                                                           : Match::no;
  }

  Rule rule_;
  std::vector<Choice> choices_;
  Joint joint_;
  std::uint32_t inputs_ = 0;
};

}  // namespace

std::shared_ptr<Program> joint_program(Rule rule, std::vector<Choice> choices) {
  return std::make_shared<JointProgram>(std::move(rule), std::move(choices));
}

}  // namespace tocsin::rules::declared
