#include "app/report/axis.h"

#include <algorithm>
#include <cmath>

namespace tocsin::app::report {

Axis::Axis(double low, double high, double from, double to, bool logarithmic)
    : low_(low), high_(high), from_(from), to_(to), logarithmic_(logarithmic) {
  if (logarithmic_) {
    low_ = std::log10(low);
    high_ = std::log10(high);
  }
  const double least = std::max(std::max(std::fabs(low_), std::fabs(high_)) * 1e-12, 1e-300);
  if (!(high_ - low_ > least)) {
    const double apart = std::max(std::fabs(low_) * 0.1, logarithmic_ ? 0.5 : 1e-6);
    low_ -= apart;
    high_ += apart;
  }
}

double Axis::at(double value) const {
  const double place = logarithmic_ ? std::log10(value) : value;
  // Each part by itself: the difference of two huge bounds would be infinite.
  const double share = (place / 2 - low_ / 2) / (high_ / 2 - low_ / 2);
  return from_ + std::clamp(share, 0.0, 1.0) * (to_ - from_);
}

std::vector<double> Axis::ticks(int wanted) const {
  std::vector<double> out;
  if (logarithmic_ && high_ - low_ >= 1) {
    const int step = std::max(1, static_cast<int>(std::ceil((high_ - low_) / wanted)));
    const int last = static_cast<int>(std::floor(high_ + 1e-9));
    for (int at = static_cast<int>(std::ceil(low_ - 1e-9)); at <= last; at += step) {
      out.push_back(std::pow(10.0, at));
    }
    return out;
  }
  const double raw = (high_ / wanted) - (low_ / wanted);
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw * 0.999) {
      step = factor * power;
      break;
    }
  }
  const double first = std::ceil(low_ / step - 1e-9);
  for (int i = 0; i < 64; ++i) {
    const double at = (first + i) * step;
    if (at > high_ + step * 1e-9) break;
    out.push_back(logarithmic_ ? std::pow(10.0, at) : at);
  }
  if (out.empty()) out.push_back(logarithmic_ ? std::pow(10.0, low_) : low_);
  return out;
}

}  // namespace tocsin::app::report
