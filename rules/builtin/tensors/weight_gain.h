// Whether all weight matrices of a model start far too large: what poor_weight_initialization says of
// weights alone, where nothing is known of what the layers are given.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/frame.h"
#include "rules/contract/selection.h"
#include "rules/contract/sentence.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {

/// The matrices of one step. A sum of n products of a weight of mean square s and an input of variance 1
/// has the variance n · s, the gain of the layer: 1 … 3 in every usual start (Glorot and Bengio 2010, He
/// et al. 2015), so that signals neither die out nor grow from layer to layer.
struct WeightGain {
  static constexpr std::uint64_t kLeast = 32;  // elements: of fewer the mean square says little
  /// Tables of embeddings are no sums over inputs. The widest that they are drawn from is the standard
  /// normal distribution, whose mean square is 1: what is four times that is no table's start either.
  static constexpr double kLargestTable = 4;
  static constexpr double kNormal = 0.1;  // around 1

  std::size_t matrices = 0;
  std::size_t large = 0;
  const StepRow* least = nullptr;  // the one of the least gain
  double least_gain = HUGE_VAL;

  void add(const StepRow& row, const Name* name, double most) {
    if (!(most > 0) || row.scalar || row.role() != core::Role::weight || row.row.count < kLeast ||
        name == nullptr || !may_be_matrix(*name)) {
      return;
    }
    const auto count = static_cast<double>(row.row.count);
    const double square = row.row.sumsq / count;
    if (square == 0) return;  // set to zero on purpose, as output layers and adapters are
    const double gain = square * inputs(*name, count);
    ++matrices;
    const bool table = std::fabs(square - 1) <= kNormal;
    const bool too_large =
        std::isfinite(square) && ((gain > most && !table) || square > kLargestTable);
    large += too_large ? 1 : 0;
    if (gain < least_gain) {
      least = &row;
      least_gain = gain;
    }
  }

  /// One alone may be meant so: a scale that is learned, features that are drawn.
  [[nodiscard]] bool judged() const { return matrices >= 2; }
  [[nodiscard]] bool holds() const { return judged() && large == matrices; }

  [[nodiscard]] Finding explain(const std::string& name, const Subject& subject,
                                double most) const {
    Finding finding = Finding::that("gain", least_gain);
    finding.is(">", "max_gain", most)
        .titled("weight matrices", Verb::are, "far too large")
        .says(sentence("All {} weight matrices start far too large: even {} multiplies the "
                       "variance of its input by {} at {} (usual: 1 to 3, limit {}).",
                       matrices, name, least_gain, subject.place(), most));
    return finding;
  }

 private:
  // Where the producer sends no shape (JAX), a vector may count as one: its elements are few and near 1,
  // so that it speaks against.
  static bool may_be_matrix(const Name& name) {
    return name.shape.empty() ||
           std::count_if(name.shape.begin(), name.shape.end(), [](auto n) { return n > 1; }) >= 2;
  }
  // Behind the first axis, as PyTorch has its outputs there. In kernels that are stored the other way
  // round it is the number of outputs, and without a shape that of a square: of the same order.
  static double inputs(const Name& name, double count) {
    if (name.shape.empty() || name.shape.front() <= 0) return std::sqrt(count);
    return count / static_cast<double>(name.shape.front());
  }
};

}  // namespace tocsin::rules
