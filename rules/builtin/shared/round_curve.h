// A number of every round of a boosting, in bounded memory: evenly spaced points, and the exact first,
// last and best.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/value.h"
#include "rules/contract/archive.h"

namespace tocsin::rules {

class RoundCurve {
 public:
  static constexpr std::size_t kMostPoints = 200;

  RoundCurve() = default;
  explicit RoundCurve(bool grows) : grows_(grows) {}

  /// Rounds come in order.
  void take(std::int64_t round, double value) {
    if (count_ % stride_ == 0) points_.emplace_back(round, value);
    if (points_.size() > kMostPoints) {  // every second one goes
      for (std::size_t i = 0; 2 * i < points_.size(); ++i) points_[i] = points_[2 * i];
      points_.resize((points_.size() + 1) / 2);
      stride_ *= 2;
    }
    ++count_;
    last_ = {round, value};
    if (!std::isfinite(value)) return;
    if (finite_++ == 0 || (grows_ ? value > best_.second : value < best_.second)) {
      best_ = {round, value};
    }
  }

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] bool grows() const noexcept { return grows_; }
  /// The first of those with the best value; nothing was finite: best_round() is −1.
  [[nodiscard]] std::int64_t best_round() const noexcept { return finite_ > 0 ? best_.first : -1; }
  [[nodiscard]] double best() const noexcept { return best_.second; }
  [[nodiscard]] std::int64_t last_round() const noexcept { return last_.first; }
  [[nodiscard]] double last() const noexcept { return last_.second; }

  /// {"rounds": […], "values": […]}, the last one always among them.
  [[nodiscard]] core::ValueMap points() const {
    core::ValueList rounds;
    core::ValueList values;
    const auto add = [&](const std::pair<std::int64_t, double>& point) {
      rounds.emplace_back(point.first);
      values.emplace_back(point.second);
    };
    for (const auto& point : points_) add(point);
    if (points_.empty() || points_.back().first != last_.first) add(last_);
    return {{"rounds", std::move(rounds)}, {"values", std::move(values)}};
  }

  template <typename A>
  friend void io(A& a, RoundCurve& c) {
    io_all(a, c.grows_, c.stride_, c.count_, c.finite_, c.points_, c.best_, c.last_);
  }

 private:
  using Point = std::pair<std::int64_t, double>;

  bool grows_ = false;
  std::uint64_t stride_ = 1;
  std::uint64_t count_ = 0;
  std::uint64_t finite_ = 0;
  std::vector<Point> points_;
  Point best_{};
  Point last_{};
};

}  // namespace tocsin::rules
