// Whether the outputs of one loss call differ from sample to sample: collapse's state of one call in one mode. O(1).
#pragma once

#include <cmath>
#include <cstdint>

#include "rules/builtin/shared/ledger_rows.h"
#include "rules/builtin/shared/pairing_course.h"

namespace tocsin::rules {

/// Trivially copyable, without padding.
struct OutputCourse {
  static constexpr double kInARow = 3;    // steps, of outputs that had differed before
  static constexpr double kSamples = 32;  // in these
  static constexpr double kFirstLook =
      16;  // steps, of outputs that never differed; then at doubled ones
  static constexpr double kFirstTold =
      32;  // scalers of losses leave out fewer updates than this at first

  std::uint64_t standing = 0;  // 1: constant
  double compared = 0;         // steps with pairs of different targets
  double differed = 0;         // of these, in which the exchange of a pair changed its loss
  double flat = 0;             // of these, in which outputs were the same
  double flat_in_a_row = 0;
  double flat_samples = 0;  // in these
  double ratio = 0;         // deviation of the outputs by that of the targets, of the newest step
  double widest = 0;        // the largest one
  double look_at = 0;       // updates at the newest look
  double look_ratio = 0;
  double told_at = 0;
  // Evaluation: one pass.
  double pass_at = -1;
  double pass_flat = 0;  // calls
  double pass_samples = 0;
  double pass_differed = 0;
  double still_from = -1;
  double still_now = 0;

  /// What one step says.
  enum Seen { kNothing, kDiffers, kFlat, kNarrow };
  [[nodiscard]] static Seen seen(const LedgerCall& call, double spread) {
    using F = LedgerCall;
    if (!call.has(F::output_spread) || !(call[F::target_spread] > 0) || call[F::crossed] == 0) {
      return kNothing;
    }
    if (call[F::pairs] > 0) return kDiffers;
    return call[F::output_spread] < spread * call[F::target_spread] ? kFlat : kNarrow;
  }

  // ------------------------------------------------------------------------------- training

  void train(const LedgerCall& call, const PairingRun& run, double spread) {
    const Seen now = seen(call, spread);
    if (now == kNothing) return;
    note(call);
    if (now == kDiffers) ++differed;
    if (now != kFlat) {
      flat_in_a_row = 0;
      flat_samples = 0;
      standing = 0;
      return;
    }
    ++flat;
    ++flat_in_a_row;
    flat_samples += call[LedgerCall::samples];
    if (flat < compared) {
      // Beside targets far from 0 all exchanges are small, so both must hold: nothing is left of what there was.
      const bool lost = ratio <= std::sqrt(spread) * widest;
      if (flat_in_a_row >= kInARow && flat_samples >= kSamples && lost) tell(run);
      return;
    }
    if (flat < kFirstLook || std::log2(flat) != std::floor(std::log2(flat))) return;
    // Heads that start at zero: they grow. A line through the newer half of the updates says how far.
    const double slope = (ratio - look_ratio) / std::max(run.updates - look_at, 1.0);
    const double then = ratio + std::max(slope, 0.0) * (run.end() - run.updates);
    const bool warm = look_at >= run.rate_at;
    if (flat >= kFirstTold && warm && then < std::sqrt(spread)) tell(run);
    look_at = run.updates;
    look_ratio = ratio;
  }

  // ----------------------------------------------------------------------------- evaluation

  /// `trained`: of training; nullptr: not known.
  void evaluate(const LedgerCall& call, const PairingRun& run, const OutputCourse* trained,
                double spread) {
    if (pass_at != run.updates) {
      if (still_now == 0) still_from = -1;
      still_now = 0;
      pass_at = run.updates;
      pass_flat = 0;
      pass_samples = 0;
      pass_differed = 0;
    }
    const Seen now = seen(call, spread);
    if (now == kNothing) return;
    note(call);
    if (now == kDiffers) ++differed;
    if (now != kFlat) {
      ++pass_differed;
      still_now = 0;
      standing = 0;
      return;
    }
    ++flat;
    pass_flat += std::max(call[LedgerCall::calls], 1.0);
    pass_samples += call[LedgerCall::samples];
    still_now = pass_differed == 0 && pass_flat >= kInARow && pass_samples >= kSamples ? 1 : 0;
    if (still_now == 0) return;
    if (still_from < 0) still_from = run.updates;
    // As long as all updates before; or in the second half of a plan, where training's outputs differ.
    const bool lasts = still_from > 0 && run.updates >= 2 * still_from;
    const bool late = run.planned > 0 && 2 * run.updates >= run.planned && trained != nullptr &&
                      trained->differed > 0 && trained->standing == 0;
    if (lasts || late) tell(run);
  }

 private:
  void note(const LedgerCall& call) {
    ++compared;
    ratio =
        std::sqrt(std::max(0.0, call[LedgerCall::output_spread]) / call[LedgerCall::target_spread]);
    widest = std::max(widest, ratio);
  }
  void tell(const PairingRun& run) {
    if (standing == 0) told_at = run.updates;
    standing = 1;
  }
};

}  // namespace tocsin::rules
