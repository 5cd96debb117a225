// Whether the outputs of one loss call know their targets, as it goes on: chance_level's state of one
// call in one mode, and what it comes to. Trivially copyable, O(1).
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "rules/builtin/shared/ledger_rows.h"
#include "rules/evidence/doubled_looks.h"
#include "rules/evidence/share_evidence.h"

namespace tocsin::rules {

/// What H₀ holds of a run that needs nobody, and how often it may be rejected by mistake.
struct PairingBounds {
  static constexpr double kMargin =
      0.05;               // of shares: the first of those that evidence is sought for
  double skill = 0.02;    // of the trivial loss
  double share = 0.55;    // of pairs that fit their own targets better
  double worse = 0.1;     // of the trivial loss, lost
  double learned = 0.5;   // skill in training from which evaluation must know something
  double carried = 0.6;   // share of wins in evaluation then
  double alpha = 0.001;   // per kind and run
  double arrival = 0.01;  // of the bound that says that the margin will not be reached
};

/// What was said of the whole run by now.
struct PairingRun {
  double updates = 0;
  double planned = 0;   // 0: not known
  double rate = 0;      // the largest so far
  double rate_at = 0;   // updates when it became that large
  double rewarded = 0;  // 1: it learns by reward, so its targets move with what it does
  double over = 0;      // 1: it has ended, nothing more is learned

  /// The last update that counts: of the plan; without one as many again as were done.
  [[nodiscard]] double end() const {
    if (over != 0) return updates;
    return planned > 0 ? std::max(planned, updates) : 2 * updates;
  }
};

/// What other metrics of a booster say where one shows nothing.
struct PairingBeside {
  bool known = false;    // another metric of the same data is better than a constant by `worse`
  bool learned = false;  // the same metric of other data has `learned`
};

struct PairingCourse {
  enum Standing : std::uint64_t { kOpen, kNothing, kForgot, kWorse, kMemorised };
  static constexpr std::size_t kNewest = 8;  // blocks that say how far training is
  static constexpr double kChance = 0.5;     // the share of wins of outputs that know nothing
  static constexpr int kLeastBlocks = 16;    // of a look, behind the largest rate
  static constexpr double kFirstLook =
      2.0 * DoubledLooks::kBlocks;  // updates, where steps are left out
  static constexpr double kBareInARow = 3;
  static constexpr double kBareSteps = 20;
  static constexpr double kBareShare = 0.2;

  std::uint64_t standing = kOpen;
  std::uint64_t knows = 0;  // shown, and not refuted since
  double steps = 0;
  double samples = 0;
  double bare = 0;  // steps without a target that counts
  double bare_in_a_row = 0;
  ShareCounts all;
  ShareCounts window;      // since the newest look
  ShareCounts before;      // between the newest two looks
  ShareCounts knowing;     // since the start, or since an alarm
  double window_look = 0;  // number of that look
  // 1: at the newest look the loss was no better than a constant's and could not get there.
  double short_of = 0;
  double behind = 0;     // 1: at the newest look the loss was no better than a constant's
  double looked_at = 0;  // updates then
  double unpaired = 0;   // 1: a metric of a booster, which has no pairs
  double tied = 0;       // steps since the newest look, where no exchange changed a loss
  double classes = 0;    // 1: its targets are classes
  double paired = 0;     // steps since the newest look with pairs
  double looks = 0;      // so far: each spends half as much as the one before
  DoubledLooks skill;
  DoubledLooks gain;  // what outputs save with their own targets against exchanged ones
  // What it was when a hit was found.
  DoubledLooks::Block told;  // weight, difference, unit of the window
  ShareCounts told_pairs;
  double told_from = 0;
  double told_at = 0;
  // Training: since outputs may have begun to lose what they knew.
  ShareFall fall;
  DoubledLooks::Block fallen;
  double fall_from = 0;
  // Evaluation: one pass, and how many there were.
  double pass_at = -1;
  double passes = 0;
  double learned_passes = 0;
  ShareCounts pass;
  DoubledLooks::Block pass_sums;
  double still_from = -1;  // updates at the first of the passes in a row that show nothing
  double still_skill = 0;  // of that pass
  double still_now = 0;    // 1: the newest pass shows nothing

  /// Σ (trivial − loss) of Σ trivial; NaN where that is no measure.
  [[nodiscard]] static double skill_of(const DoubledLooks::Block& sums) {
    return sums.unit > 0 ? sums.difference / sums.unit : std::numeric_limits<double>::quiet_NaN();
  }
  [[nodiscard]] bool bare_now() const {
    return bare_in_a_row >= kBareInARow || (steps >= kBareSteps && bare > kBareShare * steps);
  }

  /// Training has got so far that evaluation must show some of it.
  [[nodiscard]] bool has_learned(const PairingBounds& bounds) const {
    const DoubledLooks::Block sums = skill.window(kNewest);
    return sums.entries >= kNewest && skill_of(sums) >= bounds.learned;
  }
  /// The newest pairs: at least those of the newer half of the updates, or of the pass.
  [[nodiscard]] ShareCounts recent() const {
    if (passes > 0) return pass;
    ShareCounts out = before;
    out.add(window.wins, window.pairs);
    return out;
  }
  /// A step's rows, whatever they say.
  void count(const LedgerCall& call) {
    using F = LedgerCall;
    ++steps;
    const bool none = call[F::no_targets] > 0 && call[F::samples] == 0;
    bare += none ? 1 : 0;
    bare_in_a_row = none ? bare_in_a_row + 1 : 0;
    samples += call[F::samples];
    all.add(call[F::wins], call[F::pairs]);
    if (call.has(F::labels)) classes = 1;
  }

  // ------------------------------------------------------------------------------- training

  void train(const LedgerCall& call, const PairingRun& run, const PairingBounds& bounds) {
    using F = LedgerCall;
    const double wins = call[F::wins];
    const double pairs = call[F::pairs];
    window.add(wins, pairs);
    knowing.add(wins, pairs);
    if (pairs > 0) ++paired;
    if (pairs == 0 && call[F::crossed] != 0) ++tied;
    if (-std::log(bounds.alpha) <= knowing.against_at_most(bounds.share, bounds.share - kChance)) {
      know(run);
    }
    if (call.comparable()) {
      const double below = call[F::trivial] - call[F::loss];
      fallen.add({1, call[F::samples], below, call[F::trivial], run.updates});
      if (call.has(F::crossed)) {
        gain.add(call[F::samples], call[F::crossed] - call[F::straight], call[F::trivial],
                 run.updates);
      }
      const bool doubled = skill.add(call[F::samples], below, call[F::trivial], run.updates);
      if (doubled || due(run)) look(run, bounds);
    }
    if (short_of != 0 && standing == kOpen && knows == 0 && shows_nothing(bounds) &&
        skill_of(skill.window()) < bounds.skill) {
      stand(kNothing, run);
    }
    if (fall.add(wins, pairs, bounds.share, bounds.share - kChance)) {
      fallen = {};
      fall_from = run.updates;
    }
    if (knows != 0 && forgets(run, bounds)) tell(kForgot, fallen, fall.since, fall_from, run);
  }

  /// The run has ended: what is known now is all that will be. True: it has a standing that it had not.
  bool end(const PairingRun& run, const PairingBounds& bounds) {
    if (standing != kOpen || knows != 0) return false;
    if (passes > 0) {
      if (still_now == 0 || 2 * pass_at < run.updates) return false;
      tell(kNothing, pass_sums, pass, still_from, run);
      return true;
    }
    if (unpaired != 0 || skill.window().entries < DoubledLooks::kWindow) return false;
    look(run, bounds);
    return standing != kOpen;
  }

  /// A booster's round was added: it has no pairs, so its skill decides, beside its other metrics.
  void settle(const PairingBeside& beside, const PairingRun& run) {
    unpaired = 1;
    if (looked_at != run.updates) return;
    if (beside.known) {
      standing = kOpen;
    } else if (standing == kOpen && behind != 0 && (beside.learned || short_of != 0)) {
      tell(beside.learned ? kMemorised : kNothing, skill.window(), {}, skill.from(), run);
    }
  }

  // ----------------------------------------------------------------------------- evaluation

  /// `course`: of training, of the same call; nullptr: there is none.
  void evaluate(const LedgerCall& call, const PairingRun& run, const PairingCourse* course,
                const PairingBounds& bounds) {
    using F = LedgerCall;
    const bool learned = course != nullptr && course->has_learned(bounds);
    if (pass_at != run.updates) begin_pass(run, learned);
    pass.add(call[F::wins], call[F::pairs]);
    if (call.comparable()) {
      pass_sums.add({1, call[F::samples], call[F::trivial] - call[F::loss], call[F::trivial], 0});
    }
    // Pass k spends α/(k(k + 1)): the same samples in a later pass are no new evidence beside the old.
    const double enough = -std::log(bounds.alpha) + std::log(passes * (passes + 1));
    if (pass.against_at_most(bounds.share, bounds.share - kChance) >= enough) {
      know(run);
      still_from = -1;
    }
    if (learned && pass.against_at_least(bounds.carried, bounds.carried - kChance) >=
                       -std::log(bounds.alpha) + std::log(learned_passes * (learned_passes + 1))) {
      return tell(kMemorised, pass_sums, pass, run.updates, run);
    }
    const double now = skill_of(pass_sums);
    const bool nothing = now < bounds.skill &&
                         pass.against_at_least(bounds.carried, bounds.carried - kChance) >= enough;
    still_now = nothing ? 1 : 0;
    if (!nothing) return;
    if (still_from < 0) {
      still_from = run.updates;
      still_skill = now;
    }
    const double done = run.updates - still_from;
    if (still_from <= 0 || done < still_from) return;
    const double then = now + (now - still_skill) / done * (run.end() - run.updates);
    if (then < bounds.skill && standing != kMemorised) {
      tell(kNothing, pass_sums, pass, still_from, run);
    }
  }

 private:
  void know(const PairingRun& run) {
    if (knows == 0) {
      fall = {};
      fallen = {};
      fall_from = run.updates;
    }
    knows = 1;
    knowing = {};
    if (standing != kWorse) standing = kOpen;
  }
  void tell(Standing kind, const DoubledLooks::Block& sums, const ShareCounts& counts, double from,
            const PairingRun& run) {
    if (standing != kind) knowing = {};
    standing = kind;
    knows = 0;
    told = sums;
    told_pairs = counts;
    told_from = from;
    told_at = run.updates;
  }
  void begin_pass(const PairingRun& run, bool learned) {
    if (still_now == 0) still_from = -1;
    still_now = 0;
    pass_at = run.updates;
    ++passes;
    if (learned) ++learned_passes;
    pass = {};
    pass_sums = {};
  }
  // The updates have doubled since the newest look, of which few were measured.
  [[nodiscard]] bool due(const PairingRun& run) const {
    return skill.window().entries >= DoubledLooks::kWindow &&
           run.updates >= std::max(2 * looked_at, kFirstLook);
  }
  // Twice as many entries, or updates, as at the look before: the newest blocks behind the largest rate. Skill has two
  // upper bounds, which share what the look spends: itself, and what outputs save with their own targets. For the loss
  // with another's target is that of a constant at best, so the loss is at least trivial − gain.
  void look(const PairingRun& run, const PairingBounds& bounds) {
    ++looks;
    const double spent = bounds.alpha * std::exp2(-looks);
    const auto shown = [&](const BlockMean& mean, double alpha) {
      return mean.blocks >= kLeastBlocks && mean.upper(alpha) < 0;
    };
    if (skill.window().unit > 0) {
      const double since = run.rate_at;
      const BlockMean whole = skill.mean(bounds.skill);
      const BlockMean mean = skill.mean(bounds.skill, since);
      const BlockMean saved = gain.mean(bounds.skill, since);
      behind = shown(mean, spent / 2) ? 1 : 0;
      const bool saves_nothing = shown(saved, spent / 2) && stays_below(saved, run, bounds);
      short_of = (behind != 0 && stays_below(mean, run, bounds)) || saves_nothing ? 1 : 0;
      const BlockMean low = skill.mean(-bounds.worse, since);
      const bool worse = shown(low, spent) && stays_below(low, run, bounds);
      if (whole.lower(spent) > 0) {
        standing = kOpen;
        know(run);
      } else {
        const bool still = knows == 0 && short_of != 0 && shows_nothing(bounds) &&
                           skill_of(skill.window()) < bounds.skill;
        stand(still ? kNothing : worse ? kWorse : kOpen, run);
      }
    }
    before = window;
    window = {};
    window_look = looks;
    looked_at = run.updates;
    tied = paired = 0;
  }
  // What was forgotten stays so until it is shown to be known again.
  void stand(Standing kind, const PairingRun& run) {
    if (standing == kForgot && kind != kWorse) return;
    if (kind == kOpen) {
      standing = kOpen;
      return;
    }
    const std::uint64_t knew = knows;
    tell(kind, skill.window(), recent(), skill.from(run.rate_at), run);
    knows = knew;
  }
  // It does not get to the margin by the end, and does not move by a whole `skill` per window either: a
  // bad start that falls has no plateau yet. Of a run that has ended the line and the newest blocks say where it is.
  [[nodiscard]] bool stays_below(const BlockMean& mean, const PairingRun& run,
                                 const PairingBounds& bounds) const {
    const DoubledLooks::Block sums = skill.window();
    const bool below =
        run.over != 0 ? mean.at(run.updates) < 0 && skill_of(skill.window(kNewest)) < bounds.skill
                      : mean.upper_at(run.end(), bounds.arrival) < 0;
    return below && mean.rise(bounds.arrival) < bounds.skill * sums.unit / sums.weight;
  }
  // Weights: the process of all pairs ½, that begun at look k 2⁻ᵏ⁻². Outputs that are the
  // same for all samples have no pairs, and know nothing.
  [[nodiscard]] bool shows_nothing(const PairingBounds& bounds) const {
    if (paired == 0) return tied >= double{DoubledLooks::kWindow};
    const double p = bounds.share;
    const double sum =
        log_sum(all.against_at_least(p, p - kChance) - std::log(2.0),
                window.against_at_least(p, p - kChance) - (window_look + 2) * std::log(2.0));
    return sum >= -std::log(bounds.alpha) && recent().share() < p;
  }
  // At any step, so the bound is on the mean time between false alarms: one in planned updates / α.
  [[nodiscard]] bool forgets(const PairingRun& run, const PairingBounds& bounds) const {
    const double enough = std::log(std::max(run.end(), 1.0) / bounds.alpha);
    if (fall.since.against_at_least(bounds.share, bounds.share - kChance) < enough) return false;
    return skill_of(fallen) < bounds.skill;
  }
};

}  // namespace tocsin::rules
