// The course of an evaluation beside that of training: what the default preset of overfit judges.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "rules/builtin/shared/evaluation_curve.h"
#include "rules/contract/no_number.h"

namespace tocsin::rules {

/// 0 turns a condition off.
struct CourseLimits {
  std::uint32_t patience = 1;
  double ratio_threshold = 0.1;
  double noise_factor = 0;
  double steep_threshold = 0;
  double round_share = 0;
  double gain_share = 0;
  double back_share = 0;
};

/// Trivially copyable. Values come as EvaluationCurve wants them.
struct EvaluationCourse {
  static constexpr double kLeastGain = 0.01;    // of a training loss, that can be compared
  static constexpr double kLeastGrowth = 0.05;  // the same of a metric between 0 and 1
  static constexpr double kGap = 2;       // evaluation by training: what a steep rise asks for
  static constexpr double kGoesOn = 0.9;  // training by that at the best: it still gains
  static constexpr double kAlong = 0.2;   // of a rise of the evaluation, where training shares it

  EvaluationCurve curve;
  double training = kNoNumber;  // of the newest point, set by the owner
  double sign = 1;              // −1: the metric should grow
  std::uint64_t bounded = 0;    // 1: it should grow, and to 1 at most
  std::uint64_t alone = 0;      // 1: its fall is not judged, which may be that of a few samples
  double first = kNoNumber;
  std::int64_t last = 0;    // step of the newest point
  std::uint32_t steep = 0;  // points in a row that lie far above the best and still rise
  std::uint32_t apart = 0;  // points in a row that have gained hardly anything of what training has
  double first_training = kNoNumber;
  double best_training = kNoNumber;  // beside the best
  std::uint64_t back = 0;            // points in a row that have given back a share of the gain

  /// Takes a finite value. `each_step`: every step may be evaluated. Whether that is to be told.
  bool turns(const CourseLimits& limits, std::int64_t step, double trained, double loss,
             bool each_step) {
    const bool begun = !std::isnan(first);
    const bool rises = begun && loss > curve.value;
    const bool round = begun && each_step && step - last == 1;
    if (!begun) {
      first = loss;
      first_training = training;
    }
    last = step;
    curve.take(step, trained, loss, limits.ratio_threshold, limits.noise_factor);
    if (curve.best == loss) best_training = training;
    if (round && loss - curve.best <= limits.round_share * (first - curve.best)) curve.strikes = 0;
    if (goes_along(loss) || alone != 0) curve.strikes = 0;
    return count_rows(limits, loss, rises, round);
  }

 private:
  /// Counts what lasts for points in a row. `rises`: over the point before. `round`: every step is evaluated.
  bool count_rows(const CourseLimits& limits, double loss, bool rises, bool round) {
    steep = !round && rises && is_steep(limits, loss) ? steep + 1 : 0;
    back = !round && gives_back(limits, loss) ? back + 1 : 0;
    apart = round && goes_apart(limits, loss) ? apart + 1 : 0;
    // Where it does not rise any more, only a gap says that what was learned is no use elsewhere.
    const bool given_back = rises || (loss > kGap * training && curve.best < first);
    const std::uint64_t most = std::max<std::uint64_t>({steep, given_back ? back : 0, apart});
    return curve.strikes >= limits.patience || (most > 0 && most + 1 >= limits.patience);
  }

  [[nodiscard]] bool is_steep(const CourseLimits& limits, double loss) const {
    return limits.steep_threshold > 0 && curve.strikes > 0 &&
           curve.excess > limits.steep_threshold && sign > 0 && training > 0 &&
           loss > kGap * training;
  }

  /// Where training rises with the evaluation the task has become another one (a weight that grows, harder
  /// samples, a better opponent), or training itself fails: nothing was learned by heart. Losses that are
  /// negative are no errors: objectives of reinforcement rise to zero the better they are met, on both
  /// sets. There the evaluation has turned only if it had gained something, too.
  [[nodiscard]] bool goes_along(double loss) const {
    if (sign < 0 || loss <= curve.best) return false;
    const bool never_gained = curve.best < 0 && curve.best == first;
    return never_gained || training - best_training >= kAlong * (loss - curve.best);
  }

  /// A good part of the gain is lost, and training goes on to gain. Where the first value is the best,
  /// the gain is what training had gained until then.
  [[nodiscard]] bool gives_back(const CourseLimits& limits, double loss) const {
    // fmax leaves out a training loss that is not known.
    const double gained = std::fmax(first, first_training) - curve.best;
    return limits.back_share > 0 && sign > 0 && gained > 0 && training > 0 && loss > training &&
           curve.excess > limits.ratio_threshold &&
           loss - curve.best > limits.back_share * gained && training < kGoesOn * best_training;
  }

  /// Training gains, and the evaluation does not: by more than the evaluation's own noise. Metrics
  /// that grow to 1 come to their end on each set in their own time: of those the evaluation must
  /// stay behind what training had at first, and never have gained twice that share.
  [[nodiscard]] bool goes_apart(const CourseLimits& limits, double loss) const {
    const double trained = sign * (first_training - training);
    const double gain = first - loss;
    const bool comparable = sign > 0 ? trained > kLeastGain * std::fabs(first_training)
                                     : bounded != 0 && trained > kLeastGrowth &&
                                           -loss < first_training &&
                                           first - curve.best < 2 * limits.gain_share * trained;
    return comparable && gain < limits.gain_share * trained &&
           trained - gain > limits.noise_factor * curve.spread;
  }
};

}  // namespace tocsin::rules
