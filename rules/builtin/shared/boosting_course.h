// What an evaluation of every round says of boosting, beside the conditions of evaluation_course.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "rules/builtin/shared/evaluation_course.h"
#include "rules/contract/whole.h"

namespace tocsin::rules {

/// A round adds what its trees know of all data, the signal, and what they know of the training samples
/// alone, the noise. On the training set both lower the loss; on another set the signal lowers it and
/// the noise raises it by about as much (the optimism of Efron, 2004): it gains s − n where training
/// gains s + n. No gain in the first rounds means that there is no signal, a loss of gain in late ones
/// that there is none left. Values are of whole sets: nothing else makes them waver. Trivially copyable.
struct BoostingCourse {
  static constexpr double kLeastGain = 0.003;  // of the training loss at first
  static constexpr double kGoesOn = 0.7;       // training by that at the best
  static constexpr double kLeastGrowth = 0.05;

  std::int64_t last = -2;      // step of the newest value; none is before step 0
  std::uint32_t useless = 0;   // rounds in a row that had gained a share of what training had
  std::uint32_t returned = 0;  // rounds in a row that had given back a share of the gain

  /// Takes what `course` has taken, a finite value. `beside`: a growing metric beside a loss, of which
  /// only is judged what is learned, for a round more: it counts order, where a few samples matter.
  bool turns(const CourseLimits& limits, const EvaluationCourse& course, std::int64_t step,
             bool each_step, bool beside) {
    const bool round = each_step && last == step - 1;
    last = step;
    const bool nothing =
        course.sign > 0 ? gains_nothing(limits, course) : beside && stays_behind(limits, course);
    useless = round && limits.gain_share > 0 && nothing ? useless + 1 : 0;
    returned = round && gives_back(limits, course) ? returned + 1 : 0;
    return useless >= limits.patience + (beside ? 1U : 0U) || returned >= limits.patience;
  }

 private:
  static bool surely(const CourseLimits& limits, const EvaluationCourse& course,
                     double difference) {
    return difference > limits.noise_factor * course.curve.spread;
  }

  static bool gains_nothing(const CourseLimits& limits, const EvaluationCourse& course) {
    const double trained = course.first_training - course.training;
    const double gain = course.first - course.curve.value;
    return trained > kLeastGain * std::fabs(course.first_training) &&
           gain < limits.gain_share * trained && surely(limits, course, trained - gain);
  }

  /// Metrics that grow to 1, as EvaluationCourse judges them where they stand alone.
  static bool stays_behind(const CourseLimits& limits, const EvaluationCourse& course) {
    const double trained = course.training - course.first_training;
    const double gain = course.first - course.curve.value;
    return course.bounded != 0 && trained > kLeastGrowth &&
           -course.curve.value < course.first_training &&
           course.first - course.curve.best < 2 * limits.gain_share * trained &&
           gain < limits.gain_share * trained && surely(limits, course, trained - gain);
  }

  static bool gives_back(const CourseLimits& limits, const EvaluationCourse& course) {
    const double loss = course.curve.value;
    const double rise = loss - course.curve.best;
    const double gained = std::fmax(course.first, course.first_training) - course.curve.best;
    return limits.back_share > 0 && course.sign > 0 && course.alone == 0 && course.training > 0 &&
           loss > course.training && course.curve.excess > limits.ratio_threshold &&
           rise > limits.back_share * gained && surely(limits, course, rise) &&
           course.training < kGoesOn * course.best_training;
  }
};

}  // namespace tocsin::rules
