// How a learning rate decays: what all updates of a training are worth when it falls geometrically.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "rules/contract/selection.h"

namespace tocsin::rules {

/// One optimizer's rate since the start of the attempt. O(1), trivially copyable, without padding.
struct RateDecay {
  static constexpr double kEven =
      1.5;  // the longer by the shorter part of a geometric decay, at most
  static constexpr std::int64_t kNever = -1;

  double largest = 0;
  double current = 0;
  double worth = 0;            // updates since the first value, in those at the largest rate
  double total = 0;            // with those before and to come; known when the rate has decayed
  std::int64_t before = 0;     // updates before the first value
  std::int64_t step = 0;       // of the current value
  std::int64_t start = 0;      // since when the rate is at its largest
  std::int64_t half = kNever;  // where it was √share of the largest: half of the way in powers
  std::int64_t end = kNever;   // where it was share of it
  std::uint64_t values = 0;

  /// A rate, finite and not negative, at a step that is not before the last one.
  void take(std::int64_t at, double rate, double share) {
    if (values == 0) before = step = at;
    const double since = static_cast<double>(std::max<std::int64_t>(0, distance(at, step)));
    if (largest > 0) worth += since * current / largest;
    step = std::max(step, at);
    if (rate >= largest) {
      rise(rate);
    } else {
      fall(rate, share);
    }
    current = rate;
    ++values;
  }

  /// From the largest rate to √share and from there to share of it took about equally many updates, and all updates, those
  /// to come among them, are worth fewer than so many at the largest rate.
  [[nodiscard]] bool too_soon(double updates) const {
    if (end == kNever || total >= updates) return false;
    const auto first = static_cast<double>(half - start);
    const auto second = static_cast<double>(end - half);
    return first > 0 && second > 0 && first <= kEven * second && second <= kEven * first;
  }

 private:
  void rise(double rate) {
    if (largest > 0) worth *= largest / rate;
    if (rate > current) start = step;
    largest = rate;
    half = end = kNever;
  }

  void fall(double rate, double share) {
    const double middle = std::sqrt(share) * largest;
    if (rate > middle) {  // or again: then the way there begins anew
      half = end = kNever;
      return;
    }
    if (half == kNever) half = step;
    if (rate > share * largest || end != kNever) return;
    end = step;
    // What is to come is a geometric series: √share is what so many updates leave of a rate.
    const double length = static_cast<double>(end - half);
    total =
        static_cast<double>(before) + worth + rate / largest * length / (-0.5 * std::log(share));
  }
};

}  // namespace tocsin::rules
