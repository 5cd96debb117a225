// Whether evaluation and training see numbers of one world: parity's state of one unit (an input, a channel of an
// image, a target, the share of a class), and what it comes to. Trivially copyable, O(1).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rules/evidence/doubled_looks.h"

namespace tocsin::rules {

/// How far evaluation may lie from training.
struct WorldBounds {
  static constexpr double kAugmented =
      3;  // times `moved`, unless inputs of training are seen again
  static constexpr double kPlain =
      1;  // deviations: no augmentation moves a mean as far, or a deviation by e^½
  static constexpr double kPlainScale = 0.5;
  double errors = 8;   // of the difference
  double moved = 0.1;  // of a deviation of training
  double loss = 0.25;  // of the trivial loss
};

/// Sums that a step or a pass sends of one unit.
struct WorldSums {
  enum Field : std::size_t {
    batches,
    weights,
    rows,
    mean,
    square,
    mean_squared,
    mean_lagged,
    square_squared,
    square_lagged,
    kFields
  };
  static constexpr std::array<std::string_view, kFields> kNames{
      "batches",      "weights",     "rows",           "mean",         "square",
      "mean_squared", "mean_lagged", "square_squared", "square_lagged"};

  std::array<double, kFields> sums{};

  [[nodiscard]] double operator[](Field field) const { return sums[field]; }
  void add(const WorldSums& other) {
    for (std::size_t i = 0; i < kFields; ++i) sums[i] += other.sums[i];
  }
  /// As many independent batches of equal weight are worth as much.
  [[nodiscard]] double effective() const {
    return sums[weights] > 0 ? sums[batches] * sums[batches] / sums[weights] : sums[batches];
  }
};

/// How evaluation differs from training.
struct WorldGap {
  double mean = 0;              // of evaluation less that of training, in deviations of training
  double mean_errors = 0;       // the same in its errors
  double deviation = 1;         // of evaluation, in those of training
  double deviation_errors = 0;  // how far mean squares differ, in errors
  double train = 0;             // batches
  double eval = 0;
  double known = 0;  // 0: not enough batches, or all numbers are alike

  [[nodiscard]] bool moved(const WorldBounds& bounds, double times) const {
    return known > 0 && mean_errors > bounds.errors && std::fabs(mean) > times * bounds.moved;
  }
  [[nodiscard]] bool scaled(const WorldBounds& bounds, double times) const {
    return known > 0 && deviation_errors > bounds.errors &&
           std::fabs(deviation - 1) > times * bounds.moved;
  }
  [[nodiscard]] bool hit(const WorldBounds& bounds, double times) const {
    return moved(bounds, times) || scaled(bounds, times);
  }
  [[nodiscard]] bool plain() const {
    return std::fabs(mean) >= WorldBounds::kPlain ||
           !(std::fabs(std::log(deviation)) < WorldBounds::kPlainScale);
  }
};

struct WorldCourse {
  static constexpr double kOwn = 8;           // batches that know their spread
  static constexpr double kMostBatches = 32;  // of training that one large batch is worth
  static constexpr double kMostAlike = 0.9;   // correlation of neighbours in evaluation

  DoubledLooks
      train;  // weight: batches; difference: Σ of their means; unit: Σ of their mean squares
  double train_batches = 0;
  double train_rows = 0;
  WorldSums pass;  // of the newest evaluation
  WorldGap gap;    // at the newest evaluation that was judged

  [[nodiscard]] double entries() const { return train.window(DoubledLooks::kBlocks).entries; }
  void add_train(const WorldSums& step, double place) {
    if (!(step[WorldSums::batches] > 0)) return;
    train_batches += step[WorldSums::batches];
    train_rows += step[WorldSums::rows];
    train.add(step[WorldSums::batches], step[WorldSums::mean], step[WorldSums::square], place);
  }

  /// Of the pass. `squares`: mean squares are sent, too.
  void compare(bool squares) {
    gap = {};
    const BlockMean mean = train.mean(0);
    gap.train = train.window().weight;
    gap.eval = pass[WorldSums::batches];
    if (mean.blocks < static_cast<int>(DoubledLooks::kWindow) || !(gap.eval > 0)) return;
    const double at = pass[WorldSums::mean] / gap.eval;
    if (!squares) {
      gap.known = 1;
      gap.mean = at - mean.mean;
      gap.mean_errors =
          errors(gap.mean, mean, WorldSums::mean, WorldSums::mean_squared, WorldSums::mean_lagged);
      return;
    }
    const BlockMean square = exchanged(train).mean(0);
    const double there = pass[WorldSums::square] / gap.eval;
    if (square.mean <= 0 && there <= 0) gap.known = 1;  // one number everywhere
    const double deviation = std::sqrt(std::max(0.0, square.mean - mean.mean * mean.mean));
    if (!(deviation > kLeast * std::fabs(mean.mean))) return;
    gap.known = 1;
    gap.mean = (at - mean.mean) / deviation;
    gap.mean_errors = errors(at - mean.mean, mean, WorldSums::mean, WorldSums::mean_squared,
                             WorldSums::mean_lagged);
    gap.deviation = std::sqrt(std::max(0.0, there - at * at)) / deviation;
    gap.deviation_errors = errors(there - square.mean, square, WorldSums::square,
                                  WorldSums::square_squared, WorldSums::square_lagged);
  }

 private:
  static constexpr double kLeast = 1e-6;  // deviation of what is not constant
  static constexpr double kMostErrors = 1e6;

  static DoubledLooks exchanged(DoubledLooks looks) {
    for (DoubledLooks::Block& block : looks.blocks) std::swap(block.difference, block.unit);
    return looks;
  }
  // |difference| in errors. The error of evaluation: batches of training with as many rows have it at least (they may be
  // better mixed), and its own batches show it, widened by how alike neighbours are: sorted sets, whole patients.
  [[nodiscard]] double errors(double difference, const BlockMean& mean, WorldSums::Field sum,
                              WorldSums::Field squared, WorldSums::Field lagged) const {
    const double n = std::max(pass.effective(), 1.0);
    const double rows = pass[WorldSums::rows] / pass[WorldSums::batches];
    const double usual = train_rows / train_batches;
    const double ratio = rows > 0 ? usual / rows : 1;
    const double smaller = std::max(ratio, n < kOwn ? 1 / kMostBatches : 1);
    double error = mean.error * mean.error * train.window().weight * smaller / n;
    if (n >= kOwn) error = std::max(error, own(n, sum, squared, lagged));
    const double all = std::sqrt(mean.error * mean.error + error);
    if (difference == 0) return 0;
    return all > 0 ? std::min(kMostErrors, std::fabs(difference) / all) : kMostErrors;
  }
  [[nodiscard]] double own(double n, WorldSums::Field sum, WorldSums::Field squared,
                           WorldSums::Field lagged) const {
    const double weight = pass[WorldSums::batches];
    const double middle = pass[sum] / weight;
    const double spread = pass[squared] / weight - middle * middle;
    if (!(spread > 0)) return 0;
    double alike = (pass[lagged] / weight - middle * middle) / spread;
    alike = std::clamp(alike + (1 + 4 * alike) / n + DoubledLooks::kError / std::sqrt(n), 0.0,
                       kMostAlike);
    return spread * (1 + alike) / (1 - alike) / (n - 1);
  }
};

/// The loss of one call: training just before an evaluation, and the evaluation.
struct WorldLoss {
  static constexpr std::size_t kAround = 32;  // steps
  static constexpr double kHalf = 2;          // dropout and augmentation explain no more
  static constexpr double kMoreCalls =
      1.5;  // two where evaluation has one, with a batch that is cut short
  struct Entry {
    double samples = 0;
    double loss = 0;
    double trivial = 0;
    void add(const Entry& other) {
      samples += other.samples;
      loss += other.loss;
      trivial += other.trivial;
    }
  };
  struct Around {
    double mean = 0;
    double error = 0;
    double trivial = 0;
    double variance = 0;  // of the mean of one sample
  };

  std::array<Entry, kAround> newest{};
  double steps = 0;
  double highest = 0;  // mean of kAround steps in a row
  Entry block;         // the present one of them
  Entry pass;
  double passes = 0;  // evaluations that were judged
  double worse = 0;   // of the newest ones in a row that are worse by far
  // What the first evaluation came to.
  double first = 0;  // its loss per sample
  double first_error = 0;
  double before = 0;   // training's
  double trivial = 0;  // per sample
  double errors = 0;   // of the difference
  double waits = 0;    // steps until training after it is known
  double first_epoch = 0;
  double reversed = 0;
  // How often it is called for a batch that a model is given, at steps that tell both.
  double train_calls = 0;
  double train_inputs = 0;
  double pass_calls = 0;
  double pass_inputs = 0;

  void begin_pass() {
    pass = {};
    pass_calls = pass_inputs = 0;
  }
  void add_train_calls(double calls, double inputs) {
    if (!(calls > 0) || !(inputs > 0)) return;
    train_calls += calls;
    train_inputs += inputs;
  }
  void add_pass_calls(double calls, double inputs) {
    if (!(calls > 0) || !(inputs > 0)) return;
    pass_calls += calls;
    pass_inputs += inputs;
  }
  /// Training makes its loss of more calls than evaluation does, as mixup does of two with targets that
  /// are each true in part: one of them is not the loss of training.
  [[nodiscard]] bool is_a_part() const {
    return train_calls * pass_inputs > kMoreCalls * pass_calls * train_inputs;
  }

  void add_train(const Entry& step) {
    newest[static_cast<std::size_t>(steps) % kAround] = step;
    ++steps;
    block.add(step);
    if (std::fmod(steps, kAround) != 0) return;
    highest = std::max(highest, block.loss / block.samples);
    block = {};
  }
  /// The first evaluation was in the first epoch.
  [[nodiscard]] bool decided() const { return passes > 0 && first_epoch > 0; }
  [[nodiscard]] bool knows_training() const { return steps >= kAround; }

  /// Of the newest kAround steps.
  [[nodiscard]] Around around() const {
    Entry sum;
    for (const Entry& one : newest) sum.add(one);
    Around out;
    out.mean = sum.loss / sum.samples;
    out.trivial = sum.trivial / sum.samples;
    std::array<double, kAround> apart{};
    double squares = 0;
    double products = 0;
    constexpr auto kNumber = static_cast<double>(kAround);
    for (std::size_t i = 0; i < kAround; ++i) {
      const Entry& one = newest[(static_cast<std::size_t>(steps) + i) % kAround];
      apart[i] = (one.loss - out.mean * one.samples) / (sum.samples / kNumber);
      squares += apart[i] * apart[i];
      if (i > 0) products += apart[i] * apart[i - 1];
    }
    double alike = squares > 0 ? products / squares : 0;
    alike =
        std::clamp(alike + (1 + 4 * alike) / kNumber + DoubledLooks::kError / std::sqrt(kNumber),
                   0.0, DoubledLooks::kMostAlike);
    const double wide = squares * (1 + alike) / (1 - alike) / (kNumber - 1);
    out.error = std::sqrt(wide / kNumber);
    out.variance = wide * sum.samples / kNumber;
    return out;
  }

  /// The pass is over. `in_first_epoch`: nothing was trained on twice.
  void judge(const WorldBounds& bounds, bool in_first_epoch) {
    if (!(pass.samples > 0) || !knows_training()) return;
    const Around now = around();
    const double loss_now = pass.loss / pass.samples;
    const double constant = std::max(now.trivial, pass.trivial / pass.samples);
    const double error = std::sqrt(now.error * now.error + now.variance / pass.samples);
    const double gap = loss_now - now.mean;
    const bool far = gap > bounds.errors * error && gap > bounds.loss * constant &&
                     loss_now > constant && loss_now > highest;
    ++passes;
    worse = far && (in_first_epoch || worse > 0) ? worse + 1 : 0;
    if (passes > 1 && worse == 0) return;
    first = loss_now;
    first_error = error;
    before = now.mean;
    trivial = constant;
    errors = error > 0 ? gap / error : 0;
    if (passes > 1) return;
    first_epoch = in_first_epoch ? 1 : 0;
    waits = kAround;
  }
  /// A step of training has followed. True: it is known now whether the first evaluation was far better.
  bool follow(const WorldBounds& bounds, double times) {
    if (waits <= 0) return false;
    --waits;
    if (waits > 0 || first_epoch == 0) return waits == 0;
    const double least = std::min(before, around().mean);
    const double gap = least - first;
    reversed = gap > bounds.errors * first_error && gap > bounds.loss * trivial &&
                       first * kHalf * times < least
                   ? 1
                   : 0;
    return true;
  }
};

}  // namespace tocsin::rules
