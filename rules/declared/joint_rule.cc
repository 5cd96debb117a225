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

namespace tocsin::rules::declared {
namespace {

struct JointKey {
  std::uint64_t name = 0;  // 0: the selections name different things
  std::uint32_t worker = 0;
  friend auto operator<=>(const JointKey&, const JointKey&) = default;
};
using Memories = std::vector<std::vector<std::uint64_t>>;

struct Joint {
  const Rule& rule;
  const std::vector<Choice>& choices;
  bool named = false;  // all selections name the same thing
  std::string_view label;
};

class JointEvaluator final : public EvaluatorOf<std::map<JointKey, Memories>> {
 public:
  explicit JointEvaluator(const Joint& joint) : joint_(joint) {}

  void on_rows(const WorkerRows& rows, Scope& scope) override {
    if (rows.scalar != nullptr) return take(rows, *rows.scalar, nullptr, scope);
    for (const std::uint32_t number : rows.rows) {
      const core::SummaryRow row = rows.frame->summary(number);
      take(rows, row, rows.frame, scope);
    }
  }
  void on_restart(std::uint32_t worker) override {
    for (auto at = state.begin(); at != state.end();) {
      at = at->first.worker == worker ? state.erase(at) : std::next(at);
    }
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
      const Match match = joint_.choices[i].matches(candidate);
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
    const Formula& formula = joint_.rule.formula;
    Memories& memories = state[{joint_.named ? row.name : 0, rows.worker}];
    if (memories.empty()) {
      memories.resize(formula.sources.size());
      for (std::uint16_t i = 0; i < memories.size(); ++i) {
        memories[i].resize(formula.sources[i].words);
        begin(formula, i, memories[i].data());
      }
    }
    const Row columns(reinterpret_cast<const std::byte*>(&row), 1, 0);
    Point point;
    point.row = &columns;
    point.step = rows.step;
    point.time = rows.time;
    point.world_size = frame != nullptr ? frame->header().world_size : scope.world_size();
    for (std::uint16_t i = 0; i < memories.size(); ++i) {
      if ((bits & (1U << i)) == 0) continue;
      arrives(formula, i, memories[i].data(), point);
      add(formula, i, memories[i].data(), point, false);
    }
    judge(rows, row, point, memories, scope);
  }

  void judge(const WorkerRows& rows, const core::SummaryRow& row, const Point& point,
             const Memories& memories, Scope& scope) {
    std::array<const std::uint64_t*, kMostSources> words{};
    for (std::size_t i = 0; i < memories.size(); ++i) words[i] = memories[i].data();
    const Sight sight{&joint_.rule.formula, &point, words.data(), nullptr};
    const double answer = run(joint_.rule.formula.when, sight);
    const Verdict verdict = std::isnan(answer) ? kInsufficient : answer == 0 ? kOk : hit();
    Place place;
    place.mode = rows.mode;
    place.step = rows.step;
    place.global_step = rows.global_step;
    place.time = rows.time;
    Subject subject;
    subject.mode = rows.mode;
    subject.step = rows.step;
    if (verdict.outcome == Outcome::hit) {
      subject.worker = scope.worker(rows.worker);
      if (joint_.named) subject.name = scope.text(row.name);
    }
    const auto labels = [&]() -> Labels {
      Labels out{{"worker", scope.worker(rows.worker)}};
      if (joint_.named) out.emplace_back(joint_.label, scope.text(row.name));
      return out;
    };
    const std::uint64_t unit =
        (joint_.named ? row.name : 0) ^ (0x9E3779B97F4A7C15ULL * (std::uint64_t{rows.worker} + 1));
    scope.judged(unit, rows.worker, verdict, place, subject, labels,
                 [&](const Subject& whom, unsigned) {
                   std::vector<double> numbers;
                   for (const Spoken& one : joint_.rule.spoken)
                     numbers.push_back(run(one.code, sight));
                   return tell(joint_.rule, numbers.data(), whom, [&](const std::string& label) {
                     if (label == "worker") return whom.worker;
                     if (label == "mode") return std::string(core::to_string(whom.mode));
                     return whom.name;
                   });
                 });
  }

  const Joint& joint_;
  std::map<Who, std::uint32_t> chosen_;  // follows from names, so it is not saved
};

class JointProgram final : public Program {
 public:
  JointProgram(Rule rule, std::vector<Choice> choices)
      : rule_(std::move(rule)), choices_(std::move(choices)), joint_{rule_, choices_, true, {}} {
    common.mode_mask = 0;
    const Selector& first = rule_.selected.front().selector;
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      common.mode_mask = static_cast<std::uint8_t>(common.mode_mask | choices_[i].modes());
      const Selector& other = rule_.selected[i].selector;
      joint_.named =
          joint_.named && other.source == first.source && other.argument == first.argument;
    }
    joint_.label = first.source == Selector::Source::metric ? "metric" : "tensor";
  }
  [[nodiscard]] std::uint32_t inputs() const noexcept override { return input::kRows; }
  [[nodiscard]] Match selects(const Candidate& candidate) const override {
    Match best = Match::no;
    for (const Choice& choice : choices_) {
      const Match match = choice.matches(candidate);
      if (match == Match::yes) return match;
      if (match == Match::unknown) best = match;
    }
    return best;
  }
  [[nodiscard]] std::unique_ptr<Evaluator> evaluator() const override {
    return std::make_unique<JointEvaluator>(joint_);
  }

 private:
  Rule rule_;
  std::vector<Choice> choices_;
  Joint joint_;
};

}  // namespace

std::shared_ptr<Program> joint_program(Rule rule, std::vector<Choice> choices) {
  return std::make_shared<JointProgram>(std::move(rule), std::move(choices));
}

}  // namespace tocsin::rules::declared
