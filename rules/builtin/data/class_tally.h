// Labels and predictions by class: what is counted since the start, and over the latest steps.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rules/builtin/shared/classes.h"
#include "rules/contract/items.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {

/// Which labels are classes, and how many of them the latest steps are to hold.
struct Classes {
  std::optional<std::uint32_t> num_classes;
  std::vector<std::int64_t> ignored;
  std::uint32_t samples = 500;

  [[nodiscard]] bool ignores(std::size_t which) const {
    return std::find(ignored.begin(), ignored.end(), static_cast<std::int64_t>(which)) !=
           ignored.end();
  }
};

/// The parameter `ignore_labels` of rules of labels. What is below 0 the hook leaves out by itself where there is a score per class.
inline void read_ignored(config::Reader& in, Classes& classes) {
  std::vector<std::string> labels;
  read_items(in, "ignore_labels", labels, "labels that are not classes, such as 255");
  classes.ignored.clear();
  for (const std::string& label : labels) {
    std::int64_t number = 0;
    const char* last = label.data() + label.size();
    const auto [end, error] = std::from_chars(label.data(), last, number);
    if (error != std::errc() || end != last) {
      in.error("ignore_labels", "\"" + label + "\" is no whole number");
    }
    classes.ignored.push_back(number);
  }
}

struct ClassCount {
  std::uint32_t which = 0;
  double labels = 0;
  double wrong = 0;
};

struct ClassTally {
  std::vector<double> labels;                   // N_c since the start
  std::vector<std::vector<ClassCount>> recent;  // per step with predictions, oldest first
  double recent_labels = 0;                     // in all of them
  std::uint64_t steps = 0;                      // that brought labels
  std::vector<double> sizes;  // of the latest of them; negative: of one class only

  template <typename A>
  friend void io(A& a, ClassTally& s) {
    io_all(a, s.labels, s.recent, s.recent_labels, s.steps, s.sizes);
  }

  enum class Added { nothing, labels, broken, beyond };

  Added add(const Classes& classes, const StepRow& row, std::vector<ClassCount>& step) {
    const std::vector<double>* counts = row.vector(core::VectorStat::class_counts);
    if (counts == nullptr) return Added::broken;
    const std::vector<double>* correct = row.vector(core::VectorStat::class_correct);
    if (counts->size() > kMostClasses || !are_counts(*counts)) return Added::broken;
    if (correct != nullptr && (correct->size() != counts->size() || !are_counts(*correct))) {
      return Added::broken;
    }
    for (std::size_t i = 0; i < counts->size(); ++i) {
      if (correct != nullptr && (*correct)[i] > (*counts)[i]) return Added::broken;
      if (classes.num_classes && i >= *classes.num_classes && (*counts)[i] > 0 &&
          !classes.ignores(i)) {
        return Added::beyond;
      }
    }
    Added out = Added::nothing;
    for (std::size_t i = 0; i < counts->size(); ++i) {
      const double number = (*counts)[i];
      if (number == 0 || classes.ignores(i)) continue;
      if (i >= labels.size()) labels.resize(i + 1);
      labels[i] += number;
      out = Added::labels;
      if (correct == nullptr) continue;
      step.push_back({static_cast<std::uint32_t>(i), number, number - (*correct)[i]});
    }
    return out;
  }

  /// Of the newest steps that hold so many labels with predictions: how many of these are wrong; 0 without any.
  [[nodiscard]] double wrong_share(double enough) const {
    double all = 0;
    double wrong = 0;
    for (auto step = recent.rbegin(); step != recent.rend() && all < enough; ++step) {
      for (const ClassCount& one : *step) {
        all += one.labels;
        wrong += one.wrong;
      }
    }
    return all == 0 ? 0 : wrong / all;
  }

  /// Steps at the front go as long as the others hold enough without them.
  void slide(const Classes& classes, std::vector<ClassCount> step) {
    const auto labels_of = [](const std::vector<ClassCount>& counts) {
      double sum = 0;
      for (const ClassCount& one : counts) sum += one.labels;
      return sum;
    };
    if (step.empty()) return;
    recent_labels += labels_of(step);
    recent.push_back(std::move(step));
    std::size_t drop = 0;
    while (recent_labels - labels_of(recent[drop]) >= classes.samples) {
      recent_labels -= labels_of(recent[drop++]);
    }
    recent.erase(recent.begin(), recent.begin() + static_cast<std::ptrdiff_t>(drop));
  }
};

}  // namespace tocsin::rules
