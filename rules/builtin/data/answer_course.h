// How often a classifier's answers differ, beside how often its labels do: whether it gives one answer to all samples.
// And whether its scores are in order all the same. The state of one loss call in one mode; O(1).
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "rules/builtin/shared/ledger_rows.h"
#include "rules/builtin/shared/pairing_course.h"
#include "rules/evidence/doubled_looks.h"
#include "rules/evidence/mean_evidence.h"
#include "rules/evidence/share_evidence.h"

namespace tocsin::rules {

/// Samples, and how many of them are of another kind than the most frequent one of their step.
/// Trivially copyable; the counts of two add up.
struct AnswerCounts {
  static constexpr double kStray = 0.01;  // of the labels' variety: so few other answers are none
  // P(a binomial count is a hundredth of its mean m or less) is below exp(−m·(1 − 0.01 + 0.01·ln 0.01)).
  static constexpr double kRate = 0.94394829814;

  double samples = 0;
  double other_answers = 0;
  double other_labels = 0;
  double right = 0;

  void add(const AnswerCounts& more) {
    samples += more.samples;
    other_answers += more.other_answers;
    other_labels += more.other_labels;
    right += more.right;
  }
  /// Hardly any answer differs, though labels do.
  [[nodiscard]] bool alike() const {
    return other_labels > 0 && other_answers <= kStray * other_labels;
  }
  /// So rarely would answers be alike that are drawn as the labels are.
  [[nodiscard]] bool one_answer(double alpha) const {
    return alike() && kRate * other_labels >= -std::log(alpha);
  }
  [[nodiscard]] double answer_share() const {
    return samples > 0 ? 1 - other_answers / samples : 0;
  }
  [[nodiscard]] double right_share() const { return samples > 0 ? right / samples : 0; }
  [[nodiscard]] double label_share() const { return samples > 0 ? 1 - other_labels / samples : 0; }
};

/// Trivially copyable, without padding.
struct AnswerCourse {
  static constexpr double kChance = 0.5;  // the share of wins of scores without an order

  std::uint64_t standing = 0;  // 1: one answer
  std::uint64_t knows =
      0;             // the scores were shown to have an order, and that was not refuted since
  double steps = 0;  // with answers and labels
  AnswerCounts all;
  AnswerCounts window;  // since the newest look
  AnswerCounts before;  // between the newest two looks
  ShareCounts pairs;    // since the look before the newest
  ShareCounts window_pairs;
  MeanEvidence unordered;         // against "the share of wins is high enough", all steps
  MeanEvidence window_unordered;  // since the newest look
  MeanEvidence ordered;           // against "it is no higher", since the start or since an alarm
  double window_look = 0;
  double short_of =
      0;  // 1: at the newest look the loss was no better than a constant's and could not get there
  DoubledLooks skill;
  // Since scores may have begun to lose their order.
  MeanEvidence fall;
  ShareCounts fallen_pairs;
  DoubledLooks::Block fallen_sums;
  AnswerCounts unbroken;  // since answers last differed
  // Of the hit: goes on as long as it stands.
  AnswerCounts told;
  ShareCounts told_pairs;
  double told_at = 0;
  double told_lost = 0;  // 1: it had an order before
  // Evaluation: one pass.
  double pass_at = -1;
  double passes = 0;
  AnswerCounts pass;
  ShareCounts pass_pairs;
  DoubledLooks::Block pass_sums;
  double still_from = -1;  // updates at the first of the passes in a row with one answer
  double still_skill = 0;
  double still_now = 0;

  /// nullopt: the call tells none.
  [[nodiscard]] static std::optional<AnswerCounts> counts_of(const LedgerCall& call) {
    using F = LedgerCall;
    if (!call.has(F::answers) || !call.has(F::labels) || !(call[F::samples] > 0)) {
      return std::nullopt;
    }
    return AnswerCounts{call[F::samples], std::max(0.0, call[F::samples] - call[F::answers]),
                        std::max(0.0, call[F::samples] - call[F::labels]), call[F::right]};
  }
  /// Those of the newer half of the updates at least, or of the pass.
  [[nodiscard]] AnswerCounts recent() const {
    if (passes > 0) return pass;
    AnswerCounts out = before;
    out.add(window);
    return out;
  }
  [[nodiscard]] ShareCounts recent_pairs() const {
    if (passes > 0) return pass_pairs;
    ShareCounts out = pairs;
    out.add(window_pairs.wins, window_pairs.pairs);
    return out;
  }

  // ------------------------------------------------------------------------------- training

  void train(const LedgerCall& call, const PairingRun& run, const PairingBounds& bounds) {
    using F = LedgerCall;
    const auto counts = counts_of(call);
    if (!counts) return;
    ++steps;
    all.add(*counts);
    window.add(*counts);
    unbroken.add(*counts);
    if (!unbroken.alike()) unbroken = {};
    const double paired = call[F::pairs];
    const double wins = std::min(call[F::wins], paired);
    window_pairs.add(wins, paired);
    fallen_pairs.add(wins, paired);
    if (paired > 0) {
      const double share = wins / paired;
      unordered.against_at_least(share, bounds.share);
      window_unordered.against_at_least(share, bounds.share);
      fall.against_at_least(share, bounds.share);
      ordered.against_at_most(share, bounds.share);
      if (ordered.evidence() >= -std::log(bounds.alpha)) know();
    }
    if (call.comparable()) {
      const double gain = call[F::trivial] - call[F::loss];
      fallen_sums.add({1, call[F::samples], gain, call[F::trivial], run.updates});
      if (skill.add(call[F::samples], gain, call[F::trivial], run.updates)) look(run, bounds);
    }
    if (standing != 0) {
      told.add(*counts);
      told_pairs.add(wins, paired);
      if (!told.alike()) standing = 0;
    } else if (is_still_without_order(bounds)) {
      tell(recent(), recent_pairs(), 0, run);
    } else if (loses_order(run, bounds)) {
      tell(unbroken, fallen_pairs, 1, run);
    }
    if (fall.evidence() <= 0) {
      fall = {};
      fallen_pairs = {};
      fallen_sums = {};
    }
  }

  // ----------------------------------------------------------------------------- evaluation

  /// One answer in each of several passes in a row, which have lasted as long as all updates before them, and the
  /// skill does not get there on a straight line.
  void evaluate(const LedgerCall& call, const PairingRun& run, const PairingBounds& bounds) {
    using F = LedgerCall;
    const auto counts = counts_of(call);
    if (!counts) return;
    if (pass_at != run.updates) {
      if (still_now == 0) still_from = -1;
      still_now = 0;
      pass_at = run.updates;
      ++passes;
      pass = {};
      pass_pairs = {};
      pass_sums = {};
    }
    ++steps;
    all.add(*counts);
    pass.add(*counts);
    pass_pairs.add(std::min(call[F::wins], call[F::pairs]), call[F::pairs]);
    if (call.comparable()) {
      pass_sums.add(
          {1, call[F::samples], call[F::trivial] - call[F::loss], call[F::trivial], run.updates});
    }
    const double enough = -std::log(bounds.alpha) + std::log(passes * (passes + 1));
    const double now = PairingCourse::skill_of(pass_sums);
    const double margin = bounds.share - kChance;
    if (pass_pairs.against_at_most(bounds.share, margin) >= enough) {
      knows = 1;
      standing = 0;
    }
    still_now = pass.one_answer(bounds.alpha) && now < bounds.skill &&
                        pass_pairs.against_at_least(bounds.share, margin) >= enough
                    ? 1
                    : 0;
    if (!pass.alike()) standing = 0;
    if (still_now == 0) return;
    if (still_from < 0) {
      still_from = run.updates;
      still_skill = now;
    }
    const double done = run.updates - still_from;
    if (still_from <= 0 || done < still_from) return;
    const double then = now + (now - still_skill) / done * (run.end() - run.updates);
    if (then < bounds.skill) tell(pass, pass_pairs, 0, run);
  }

 private:
  void know() {
    if (knows == 0) {
      fall = {};
      fallen_pairs = {};
      fallen_sums = {};
    }
    knows = 1;
    ordered = {};
    standing = 0;
  }
  void tell(const AnswerCounts& counts, const ShareCounts& its_pairs, double lost,
            const PairingRun& run) {
    standing = 1;
    knows = 0;
    ordered = {};
    told = counts;
    told_pairs = its_pairs;
    told_lost = lost;
    told_at = run.updates;
  }
  void look(const PairingRun& run, const PairingBounds& bounds) {
    short_of = 0;
    const DoubledLooks::Block sums = skill.window();
    if (sums.unit > 0) {
      const BlockMean mean = skill.mean(bounds.skill);
      short_of = skill.from() >= run.rate_at &&
                         mean.upper(bounds.alpha * std::exp2(-skill.looks)) < 0 &&
                         mean.upper_at(run.end(), bounds.arrival) < 0 &&
                         mean.rise(bounds.arrival) < bounds.skill * sums.unit / sums.weight
                     ? 1
                     : 0;
    }
    before = window;
    pairs = window_pairs;
    window = {};
    window_pairs = {};
    window_unordered = {};
    window_look = skill.looks;
  }
  // Weights as chance_level has them: all steps ½, those since look k 2⁻ᵏ⁻².
  [[nodiscard]] bool is_still_without_order(const PairingBounds& bounds) const {
    if (short_of == 0 || knows != 0 || !recent().one_answer(bounds.alpha)) return false;
    const double evidence =
        log_sum(unordered.evidence() - std::log(2.0),
                window_unordered.evidence() - (window_look + 2) * std::log(2.0));
    return evidence >= -std::log(bounds.alpha) && recent_pairs().share() < bounds.share &&
           PairingCourse::skill_of(skill.window()) < bounds.skill;
  }
  // At any step, so the bound is on the mean time between false alarms: one in planned updates / α.
  [[nodiscard]] bool loses_order(const PairingRun& run, const PairingBounds& bounds) const {
    if (knows == 0 || !unbroken.one_answer(bounds.alpha)) return false;
    if (fall.evidence() < std::log(std::max(run.end(), 1.0) / bounds.alpha)) return false;
    return PairingCourse::skill_of(fallen_sums) < bounds.skill;
  }
};

}  // namespace tocsin::rules
