// Labels as classes, and how they were predicted: counts per class, and the cells of the confusion
// matrix. A step's predictions meet the labels that come after them, as the inputs of a loss do.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/tensors/elements.h"
#include "collectors/tensors/statistics/statistic.h"

namespace tocsin::collectors {
namespace {

constexpr int kMostClasses = 4096;                 // more are tokens of a vocabulary
constexpr std::uint64_t kMostElements = 1U << 22;  // of predictions: they are kept for a moment
constexpr std::size_t kMostCells = 16384;          // of a matrix, as they travel
constexpr double kWhole = 1e-3;                    // how far from whole a label may be
constexpr double kUnused = -100;                   // what PyTorch's losses leave out
constexpr int kNone = -1;                          // a sample that belongs to no class

using Shape = std::vector<std::int64_t>;
using Classes = std::vector<int>;

// Losses whose targets are quantities, whole ones too.
bool is_regression(std::string_view op_type) {
  constexpr std::string_view kLosses[] = {
      "MSELoss",         "L1Loss",    "SmoothL1Loss", "HuberLoss",           "PoissonNLLLoss",
      "GaussianNLLLoss", "KLDivLoss", "CTCLoss",      "CosineEmbeddingLoss", "TripletMarginLoss"};
  return std::find(std::begin(kLosses), std::end(kLosses), op_type) != std::end(kLosses);
}

std::vector<double> elements_of(const TensorSample& sample) {
  std::vector<double> out;
  out.reserve(sample.count);
  each_block(sample.dtype, sample.data, sample.count, [&](std::span<const double> block) {
    out.insert(out.end(), block.begin(), block.end());
  });
  return out;
}

bool is_whole(double x) { return std::fabs(x - std::round(x)) <= kWhole; }

Shape without(const Shape& shape, std::size_t axis) {
  Shape out = shape;
  out.erase(out.begin() + static_cast<std::ptrdiff_t>(axis));
  return out;
}

// Shapes are the same but for extents of 1.
bool alike(const Shape& a, const Shape& b) {
  const auto squeezed = [](const Shape& shape) {
    Shape out;
    std::copy_if(shape.begin(), shape.end(), std::back_inserter(out),
                 [](std::int64_t n) { return n != 1; });
    return out;
  };
  return squeezed(a) == squeezed(b);
}

// Where the largest entry along an axis stands, the first of equal ones.
Classes largest_along(const std::vector<double>& values, const Shape& shape, std::size_t axis) {
  std::size_t inner = 1;
  for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= static_cast<std::size_t>(shape[i]);
  const auto extent = static_cast<std::size_t>(shape[axis]);
  Classes out(values.size() / extent);
  for (std::size_t k = 0; k < out.size(); ++k) {
    const double* from = values.data() + (k / inner * extent * inner) + k % inner;
    double best = from[0];
    for (std::size_t c = 0; c < extent; ++c) {
      if (!(from[c * inner] > best)) continue;
      best = from[c * inner];
      out[k] = static_cast<int>(c);
    }
  }
  return out;
}

// Every row along the last axis sums to 1 with nothing below 0: one-hot labels, or soft ones.
bool are_shares(const std::vector<double>& values, std::size_t extent) {
  for (std::size_t at = 0; at < values.size(); at += extent) {
    double sum = 0;
    for (std::size_t c = 0; c < extent; ++c) {
      if (!(values[at + c] >= 0)) return false;
      sum += values[at + c];
    }
    if (std::fabs(sum - 1) > kWhole) return false;
  }
  return true;
}

/// The predictions of a step, until its labels come.
struct Predictions {
  std::int64_t global_step = -1;
  Shape shape;
  std::vector<double> values;
};

/// `classes(θ)`: one number per sample is class 1 from the probability θ on; `classes` is 0.5.
class ClassCounts final : public TensorStatistic {
 public:
  explicit ClassCounts(std::span<const double> parameters)
      : parameters_(parameters.begin(), parameters.end()) {
    if (parameters_.empty()) return;
    share_ = parameters_.front();
    logit_ = std::log(share_) - std::log1p(-share_);  // infinite at 0 and 1
  }

  void measure(const TensorSample& sample, StatisticSink& out) override {
    const bool labels = sample.role == core::Role::label;
    if (!labels && sample.role != core::Role::prediction) return;
    Predictions before = std::exchange(predictions_, {});
    if (!sample.row_major || sample.count == 0 || sample.count > kMostElements ||
        sample.row.non_finite() > 0 || !is_real(sample.dtype) || is_regression(sample.op_type)) {
      return;
    }
    const Shape shape(sample.shape.begin(), sample.shape.end());
    if (!labels) {
      predictions_ = {sample.global_step, shape, elements_of(sample)};
      return;
    }
    if (before.global_step != sample.global_step) before = {};
    const std::vector<double> values = elements_of(sample);
    const auto classes = classes_of(values, shape, before);
    if (!classes) return;
    tell(*classes, predicted(before, *classes, values.size() == classes->size() ? shape : Shape()),
         out);
  }

 private:
  // nullopt: these are quantities, tokens of a vocabulary, or several classes at once.
  static std::optional<Classes> classes_of(const std::vector<double>& values, const Shape& shape,
                                           const Predictions& before) {
    const bool rows = shape.size() >= 2 && shape.back() > 1;
    if (rows && (before.values.empty() || before.shape == shape)) {
      const auto extent = static_cast<std::size_t>(shape.back());
      const bool whole = std::all_of(values.begin(), values.end(), is_whole);
      if (are_shares(values, extent)) return largest_along(values, shape, shape.size() - 1);
      if (!whole || before.shape == shape) return std::nullopt;
    }
    // A loss with a score per class numbers them from 0: what is below is its ignore_index. Without
    // scores −1 may be a class, of two or of three.
    const bool numbered =
        before.values.size() > values.size() && before.values.size() % values.size() == 0;
    Classes out(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!is_whole(values[i]) || values[i] >= kMostClasses) return std::nullopt;
      const double whole = std::round(values[i]);
      if (whole < 0 && whole != kUnused && !numbered) return std::nullopt;
      out[i] = whole < 0 ? kNone : static_cast<int>(whole);
    }
    return out;
  }

  // The class that each sample was taken for; empty: there are no predictions that fit the labels.
  [[nodiscard]] Classes predicted(const Predictions& of, const Classes& labels,
                                  const Shape& shape) const {
    if (of.values.empty() || of.values.size() % labels.size() != 0) return {};
    if (of.values.size() == labels.size()) return decided(of.values, labels);
    const std::size_t last = of.shape.size() - 1;
    // PyTorch's losses have the classes on axis 1, all else on the last one.
    for (const std::size_t axis : {std::size_t{1}, last}) {
      if (of.shape.size() < 2 || axis > last || of.shape[axis] >= kMostClasses) continue;
      const auto extent = static_cast<std::size_t>(of.shape[axis]);
      if (extent < 2 || of.values.size() / extent != labels.size()) continue;
      if (shape.empty() ? axis == last : alike(without(of.shape, axis), shape)) {
        return largest_along(of.values, of.shape, axis);
      }
    }
    return {};
  }

  // One number per sample: a class, a probability of class 1, or its logit.
  [[nodiscard]] Classes decided(const std::vector<double>& values, const Classes& labels) const {
    Classes out(values.size());
    if (std::all_of(values.begin(), values.end(), is_whole)) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double whole = std::round(values[i]);
        if (whole < 0 || whole >= kMostClasses) return {};
        out[i] = static_cast<int>(whole);
      }
      return out;
    }
    if (std::any_of(labels.begin(), labels.end(), [](int label) { return label > 1; })) return {};
    const bool share =
        std::all_of(values.begin(), values.end(), [](double x) { return x >= 0 && x <= 1; });
    const double limit = share ? share_ : logit_;
    for (std::size_t i = 0; i < values.size(); ++i) out[i] = values[i] >= limit ? 1 : 0;
    return out;
  }

  void tell(const Classes& labels, const Classes& predictions, StatisticSink& out) const {
    const int largest = *std::max_element(labels.begin(), labels.end());
    if (largest == kNone) return;
    std::vector<double> counts(static_cast<std::size_t>(largest) + 1);
    std::vector<double> correct(counts.size());
    std::map<std::pair<int, int>, double> cells;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] == kNone) continue;
      const auto label = static_cast<std::size_t>(labels[i]);
      counts[label] += 1;
      if (predictions.empty()) continue;
      correct[label] += labels[i] == predictions[i] ? 1 : 0;
      cells[{labels[i], predictions[i]}] += 1;
    }
    out.vector(core::VectorStat::class_counts, counts, parameters_);
    if (predictions.empty()) return;
    out.vector(core::VectorStat::class_correct, correct, parameters_);
    if (cells.size() > kMostCells) return;
    std::vector<double> triples;
    triples.reserve(3 * cells.size());
    for (const auto& [cell, count] : cells) {
      triples.insert(triples.end(),
                     {static_cast<double>(cell.first), static_cast<double>(cell.second), count});
    }
    out.vector(core::VectorStat::confusion, triples, parameters_);
  }

  std::vector<double> parameters_;  // as asked for
  double share_ = 0.5;
  double logit_ = 0;
  Predictions predictions_;
};

}  // namespace

StatisticDescriptor classes() {
  return {.request = "classes",
          .gives = {"class_counts", "class_correct", "confusion"},
          .in_order = true,
          .make = [](const StatisticLimits&,
                     std::span<const double> parameters) -> std::unique_ptr<TensorStatistic> {
            const bool share = parameters.empty() || (parameters[0] >= 0 && parameters[0] <= 1);
            return share ? std::make_unique<ClassCounts>(parameters) : nullptr;
          }};
}

}  // namespace tocsin::collectors
