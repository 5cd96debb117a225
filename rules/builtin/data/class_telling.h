// What left_out_class tells: a finding's sentence, and the numbers of a loss call that a run's summary holds.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "rules/builtin/data/class_course.h"
#include "rules/contract/finding.h"
#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {

/// "class 3", "classes 3 and 7", "classes 1, 2, 3, 4, 5 and 9 more".
inline std::string class_names(const std::vector<std::uint32_t>& which) {
  constexpr std::size_t kMost = 5;
  std::string out = which.size() == 1 ? "class " : "classes ";
  const std::size_t shown = std::min(which.size(), kMost);
  for (std::size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == shown && shown == which.size();
    if (i > 0) out += last ? " and " : ", ";
    out += std::to_string(which[i]);
  }
  if (shown < which.size()) out += " and " + std::to_string(which.size() - shown) + " more";
  return out;
}

/// Those that are told of, the first of them the one with the fewest wins, or the most samples.
inline std::vector<std::uint32_t> classes_told(const ClassCourse& course, unsigned kind) {
  std::vector<std::uint32_t> out = course.told[kind];
  const auto& classes = course.window.classes;
  std::stable_sort(out.begin(), out.end(), [&](std::uint32_t a, std::uint32_t b) {
    const LedgerClass& one = classes.at(a);
    const LedgerClass& two = classes.at(b);
    if (kind == ClassCourse::kRandom)
      return ClassWindow::share_of(one) < ClassWindow::share_of(two);
    return one[LedgerClass::labels] > two[LedgerClass::labels];
  });
  return out;
}

inline Finding class_finding(unsigned kind, const Subject& subject, const ClassCourse& course,
                             const ClassBounds& bounds) {
  using C = LedgerClass;
  const std::vector<std::uint32_t> which = classes_told(course, kind);
  const std::string names = class_names(which);
  const bool one = which.size() == 1;
  const LedgerClass& worst = course.window.classes.at(which[0]);
  const ClassWindow usual(course.window, bounds);
  const std::string first = sentence("class {}", which[0]);
  Finding out;
  if (kind == ClassCourse::kRandom) {
    const double w = ClassWindow::share_of(worst);
    out = Finding::that("w", w);
    out.is("<", "limit", usual.limit(bounds))
        .titled(names, one ? Verb::is : Verb::are, "not told apart from the others")
        .says(sentence(
            "{0} does not tell {1} from the other classes: in {4} % of {2} pairs the sample of {3} "
            "has the higher score for it (usual class: {5} %, chance: 50 %).",
            subject.name, names, worst[C::pairs], first, 100 * w, 100 * usual.share))
        .advises(
            "Look at 20 samples of this class. Most probable first: labels shuffled or mixed up "
            "with other classes; inputs that do not hold what distinguishes it.")
        .with("pairs", worst[C::pairs])
        .with("usual_w", usual.share);
  } else if (kind == ClassCourse::kNeverAnswered) {
    out = Finding::that("times_answered", 0);
    out.is("==", "limit", 0)
        .titled(names, one ? Verb::is : Verb::are, "never predicted")
        .says(sentence(
            "{0} never predicts {1}. {3} of {2} samples are of {4}; their mean loss, {5}, is no "
            "lower than guessing by class frequency. {6} % of the usual class are right.",
            subject.name, names, course.window.samples, worst[C::labels], first,
            worst[C::loss] / worst[C::labels], 100 * usual.right))
        .advises(
            "Most probable first: a wrong weight or bias of this class; a mask over the outputs; "
            "another number for this class in training.")
        .with("labels", worst[C::labels])
        .with("usual_right", usual.right);
  } else if (kind == ClassCourse::kNeverSeen) {
    out = Finding::that("trained", 0);
    out.is("==", "limit", 0)
        .titled(names, one ? Verb::is : Verb::are, "missing in training")
        .says(sentence("{} of {} evaluation samples are of {}, but none of {} training targets.",
                       worst[C::labels], course.window.samples, first, course.window.trained))
        .advises(
            "Most probable first: a split or filter that removed this class; another class map in "
            "training; training data sorted by class and not shuffled.")
        .with("labels", worst[C::labels]);
    if (!one) out.adds("All that are concerned: " + names + ".");
  } else {
    const double here = worst[C::labels] / course.window.samples;
    const double there = worst[C::trained] / course.window.trained;
    out = Finding::that("trained_share", there);
    out.is("<", "limit", here / ClassCourse::kRarer)
        .titled(names, one ? Verb::is : Verb::are, "rare in training")
        .says(sentence("{} % of the evaluation samples but only {} % of the training targets are "
                       "of {}. {} % of these samples are predicted right (usual class: {} %).",
                       100 * here, 100 * there, first, 100 * worst.right_share(),
                       100 * usual.right))
        .advises(
            "Most probable first: labels of this class that became others in training; an uneven "
            "split. If training is meant to have few of them, weight these samples or draw them "
            "more often.")
        .with("share", here)
        .with("right_share", worst.right_share());
    out.severity = core::Severity::info;
    if (!one) out.adds("All that are concerned: " + names + ".");
  }
  std::string all;
  for (const std::uint32_t number : which) all += (all.empty() ? "" : " ") + std::to_string(number);
  out.with("classes", all).with("updates", course.at);
  return out;
}

/// "hit"; "ok": each class that is judged is shown to be told apart; "undecided".
inline std::string_view class_answer(const ClassCourse& course, const ClassBounds& bounds) {
  if (course.kinds() != 0) return "hit";
  const ClassWindow usual(course.window, bounds);
  if (!usual.known(bounds)) return "undecided";
  const double limit = usual.limit(bounds);
  for (const std::uint32_t number : usual.judged) {
    const LedgerClass& one = course.window.classes.at(number);
    const ShareCounts counts{one[LedgerClass::wins], one[LedgerClass::pairs]};
    if (counts.against_at_most(limit, ClassCourse::kFirst * (limit - 0.5)) <
        -std::log(bounds.alpha))
      return "undecided";
  }
  return "ok";
}

inline core::ValueMap class_numbers(const ClassCourse& course, const ClassBounds& bounds) {
  constexpr std::array<std::string_view, ClassCourse::kKinds> kNames{
      "random_class", "never_answered", "never_seen", "rarely_seen"};
  const ClassWindow usual(course.window, bounds);
  core::ValueMap out;
  std::string kinds;
  for (unsigned kind = 0; kind < ClassCourse::kKinds; ++kind) {
    if (course.told[kind].empty()) continue;
    kinds += (kinds.empty() ? "" : "; ") + std::string(kNames[kind]) + ": " +
             class_names(classes_told(course, kind));
  }
  if (!kinds.empty()) out.emplace_back("kind", kinds);
  out.emplace_back("updates", course.at);
  out.emplace_back("samples", course.window.samples);
  out.emplace_back("classes", course.window.count / std::max(course.window.senders, 1.0));
  out.emplace_back("judged", static_cast<double>(usual.judged.size()));
  if (usual.judged.empty()) {
    out.emplace_back("needs_samples_of_a_class", bounds.samples);
    return out;
  }
  const std::uint32_t worst = *std::min_element(
      usual.judged.begin(), usual.judged.end(), [&](std::uint32_t a, std::uint32_t b) {
        return ClassWindow::share_of(course.window.classes.at(a)) <
               ClassWindow::share_of(course.window.classes.at(b));
      });
  const LedgerClass& least = course.window.classes.at(worst);
  out.emplace_back("usual_w", usual.share);
  out.emplace_back("usual_right", usual.right);
  out.emplace_back("worst_class", static_cast<double>(worst));
  out.emplace_back("worst_w", ClassWindow::share_of(least));
  out.emplace_back("worst_pairs", least[LedgerClass::pairs]);
  if (class_answer(course, bounds) == "undecided" && !usual.known(bounds)) {
    out.emplace_back("needs_usual_w", bounds.usual);
  }
  return out;
}

}  // namespace tocsin::rules
