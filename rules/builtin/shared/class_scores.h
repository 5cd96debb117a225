// Precision, recall and F1 of a confusion matrix.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "core/value.h"

namespace tocsin::rules {

/// (label, prediction) → samples; cells that are not there are 0.
using ConfusionCells = std::map<std::pair<std::uint32_t, std::uint32_t>, double>;

struct ClassScores {
  double samples = 0;
  double right = 0;
  std::set<std::uint32_t> classes;              // that occur, as label or as prediction
  std::map<std::uint32_t, double> labels;       // samples per true class
  std::map<std::uint32_t, double> predictions;  // and per predicted one
  std::map<std::uint32_t, double> hits;

  explicit ClassScores(const ConfusionCells& cells) {
    for (const auto& [cell, count] : cells) {
      samples += count;
      labels[cell.first] += count;
      predictions[cell.second] += count;
      classes.insert(cell.first);
      classes.insert(cell.second);
      if (cell.first != cell.second) continue;
      right += count;
      hits[cell.first] += count;
    }
  }

  /// Where nothing was predicted (or is) of a class, its precision (or recall) counts as 0.
  [[nodiscard]] double precision(std::uint32_t one) const {
    return ratio(of(hits, one), of(predictions, one));
  }
  [[nodiscard]] double recall(std::uint32_t one) const {
    return ratio(of(hits, one), of(labels, one));
  }
  [[nodiscard]] double f1(std::uint32_t one) const {
    return ratio(2 * of(hits, one), of(labels, one) + of(predictions, one));
  }

  /// Micro: over all samples, where all three are the share of what is right. Macro: the mean over
  /// classes. Weighted: that mean, by the samples of each class.
  [[nodiscard]] core::ValueMap told() const {
    const auto means = [&](double (ClassScores::*score)(std::uint32_t) const) {
      double sum = 0;
      double weighted = 0;
      for (const std::uint32_t one : classes) {
        sum += (this->*score)(one);
        weighted += (this->*score)(one)*of(labels, one);
      }
      return core::ValueMap{{"micro", ratio(right, samples)},
                            {"macro", ratio(sum, static_cast<double>(classes.size()))},
                            {"weighted", ratio(weighted, samples)}};
    };
    return {{"samples", samples},
            {"accuracy", ratio(right, samples)},
            {"precision", means(&ClassScores::precision)},
            {"recall", means(&ClassScores::recall)},
            {"f1", means(&ClassScores::f1)}};
  }

 private:
  static double of(const std::map<std::uint32_t, double>& map, std::uint32_t one) {
    const auto found = map.find(one);
    return found == map.end() ? 0 : found->second;
  }
  static double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }
};

}  // namespace tocsin::rules
