// What a question of the task came to so far, by subject: the lines of the run card (app/view/run_card.h).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/value.h"
#include "rules/contract/outcome.h"
#include "rules/evaluate/evaluator.h"

namespace tocsin::rules {

/// A number worth seeing. `x_low` and `x_high` beside `x` are its interval; `needs_x` is how much of `x` is missing.
using AnswerNumber = std::pair<std::string, double>;

/// How early a question must be able to decide: a tenth of the planned updates, or 2000 where no plan is known.
inline double decides_in_time(double planned_updates) {
  return planned_updates > 0 ? planned_updates / 10 : 2000;
}

/// Of an undecided question that has `has` and needs `missing` more: the update at which it has enough at the present
/// pace; infinite where nothing comes.
inline double decides_at(double updates, double has, double missing) {
  return has > 0 ? std::ceil(updates * (has + missing) / has) : HUGE_VAL;
}

/// Adds `decides_at_update`, and `insufficient_data` where that is too late, to what an undecided question tells.
/// `updates`: so far; with fewer than 64 nothing can be said of the pace.
inline void tell_starving(core::ValueMap& numbers, double updates, double planned_updates) {
  constexpr double kEnough = 64;
  constexpr std::string_view kNeeds = "needs_";
  double latest = 0;
  for (const auto& [name, value] : numbers) {
    const auto* missing = core::as<double>(value);
    if (missing == nullptr || !name.starts_with(kNeeds) || !(*missing > 0)) continue;
    const auto* has = core::as<double>(core::find(numbers, name.substr(kNeeds.size())));
    if (has != nullptr) latest = std::max(latest, decides_at(updates, *has, *missing));
  }
  if (updates < kEnough || latest == 0) return;
  if (std::isfinite(latest)) numbers.emplace_back("decides_at_update", latest);
  if (latest > decides_in_time(planned_updates)) numbers.emplace_back("insufficient_data", true);
}

/// Answers as a rule's summary holds them: {"hit" | "undecided" | "ok": {subject: {name: number}}}.
class AnswerCard {
 public:
  static constexpr std::string_view kAnswers[] = {"hit", "undecided", "ok"};

  void add(std::string_view answer, std::string subject, core::ValueMap numbers) {
    const auto* const at = std::find(std::begin(kAnswers), std::end(kAnswers), answer);
    if (at != std::end(kAnswers)) {
      parts_[static_cast<std::size_t>(at - std::begin(kAnswers))].emplace_back(std::move(subject),
                                                                               std::move(numbers));
    }
  }
  [[nodiscard]] core::ValueMap take() {
    core::ValueMap out;
    for (std::size_t i = 0; i < std::size(kAnswers); ++i) {
      if (!parts_[i].empty()) out.emplace_back(std::string(kAnswers[i]), std::move(parts_[i]));
    }
    return out;
  }

 private:
  core::ValueMap parts_[std::size(kAnswers)];
};

/// "ok", "hit", "undecided"; empty: the question does not apply.
inline std::string_view answer_of(Verdict verdict) {
  switch (verdict.outcome) {
    case EvaluationOutcome::ok:
      return "ok";
    case EvaluationOutcome::hit:
      return "hit";
    case EvaluationOutcome::insufficient_data:
      return "undecided";
    default:
      return {};
  }
}

/// The first kind of a hit.
inline std::string_view kind_of(Verdict verdict, std::span<const std::string_view> kinds) {
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if ((verdict.kinds & (1U << i)) != 0) return kinds[i];
  }
  return {};
}

/// When what a rule came to so far is told. Trivially copyable, without padding.
struct TellingTime {
  double told = 0;            // updates when it was last told
  double updates = 0;         // so far
  std::uint64_t changed = 0;  // answers since then

  /// The updates have doubled, or an answer has changed and some have gone by. It is told from then on.
  [[nodiscard]] bool due(double now) {
    updates = std::max(updates, now);
    const bool soon = changed > 0 && updates >= told + std::max(1.0, told / 8);
    if (updates < 1 || (updates < 2 * told && !soon)) return false;
    told = updates;
    changed = 0;
    return true;
  }
};

/// What a unit was answered last. Trivially copyable, without padding.
struct LastAnswer {
  std::uint64_t packed = 0;  // 0: nothing yet

  [[nodiscard]] Verdict verdict() const {
    if (packed == 0) return kNotApplicable;
    return {static_cast<EvaluationOutcome>((packed & 0xFF) - 1),
            static_cast<std::uint8_t>(packed >> 8U)};
  }
  /// Whether it is another answer than before. One that does not apply changes nothing.
  bool take(Verdict verdict) {
    if (answer_of(verdict).empty()) return false;
    const auto before = answer_of(this->verdict());
    packed = (static_cast<std::uint64_t>(verdict.outcome) + 1) |
             static_cast<std::uint64_t>(verdict.kinds) << 8U;
    return before != answer_of(verdict);
  }
};

/// A rule of steps keeps one as `answers` in its State and notes each verdict in it. The evaluator tells all of them when
/// the updates have doubled, soon after an answer has changed, and at the end of the run.
class AnswersSoFar {
 public:
  static constexpr std::size_t kMostSubjects = 64;
  TellingTime time;  // of the first state it counts

  /// `numbers`: the most telling first. What does not apply is not noted.
  void note(std::string_view subject, Verdict verdict, std::initializer_list<AnswerNumber> numbers,
            std::span<const std::string_view> kinds = {}) {
    const std::string_view answer = answer_of(verdict);
    if (answer.empty()) return;
    const auto [at, fresh] = answers_.try_emplace(std::string(subject));
    if (fresh && answers_.size() > kMostSubjects) {
      answers_.erase(at);
      return;
    }
    Answer& one = at->second;
    if (fresh || one.answer != answer) ++time.changed;
    one.answer = answer;
    one.kind = kind_of(verdict, kinds);
    one.numbers.assign(numbers);
  }
  void plan(double updates) { planned_ = updates; }

  /// Of a rule that is judged per worker, a subject is answered by the worker that fares worst.
  template <typename States>
  static core::ValueMap of_all(const States& states) {
    std::map<std::string_view, const Answer*> worst;
    const AnswersSoFar* first = nullptr;
    for (const auto& [owner, state] : states) {
      if (first == nullptr) first = &state.answers;
      for (const auto& [subject, one] : state.answers.answers_) {
        const Answer*& known = worst[subject];
        if (known == nullptr || one.place() < known->place()) known = &one;
      }
    }
    AnswerCard card;
    for (const auto& [subject, one] : worst) {
      core::ValueMap numbers;
      if (!one->kind.empty()) numbers.emplace_back("kind", one->kind);
      for (const auto& [name, value] : one->numbers) numbers.emplace_back(name, value);
      if (one->answer == "undecided") tell_starving(numbers, first->time.updates, first->planned_);
      card.add(one->answer, std::string(subject), std::move(numbers));
    }
    return card.take();
  }

  template <typename A>
  friend void io(A& a, AnswersSoFar& s) {
    io_all(a, s.answers_, s.time, s.planned_);
  }

 private:
  struct Answer {
    std::string answer;
    std::string kind;
    std::vector<AnswerNumber> numbers;
    [[nodiscard]] std::ptrdiff_t place() const {
      return std::find(std::begin(AnswerCard::kAnswers), std::end(AnswerCard::kAnswers), answer) -
             std::begin(AnswerCard::kAnswers);
    }
    template <typename A>
    friend void io(A& a, Answer& one) {
      io_all(a, one.answer, one.kind, one.numbers);
    }
  };

  std::map<std::string, Answer> answers_;
  double planned_ = 0;  // updates; 0: not known
};

/// After a step, of a rule whose states have `answers`.
template <typename States>
void tell_answers(States& states, double updates, std::int64_t time, Scope& scope) {
  if (states.empty()) return;
  TellingTime& first = states.begin()->second.answers.time;
  for (auto& [owner, state] : states) {
    if (&state.answers.time != &first)
      first.changed += std::exchange(state.answers.time.changed, 0);
  }
  if (!first.due(updates)) return;
  scope.so_far(time, AnswersSoFar::of_all(states));
}

}  // namespace tocsin::rules
