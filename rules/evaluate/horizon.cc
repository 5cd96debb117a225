#include "rules/evaluate/horizon.h"

#include <algorithm>
#include <cmath>

#include "rules/contract/selection.h"

namespace tocsin::rules {

void read_patience(config::Reader& in, Horizon& horizon, std::uint32_t least) {
  in.optional("patience", horizon.patience, config::between(least, Horizon::kMost),
              "samples before the first judgement");
  in.optional("patience_seconds", horizon.patience_seconds, config::if_given(config::at_least(0.0)),
              "instead of patience, in seconds of samples");
}

void read_window(config::Reader& in, Horizon& horizon, std::uint32_t least) {
  std::optional<double> seconds;
  in.optional("window", horizon.window, config::between(least, Horizon::kMost),
              least == 0 ? "number of newest samples to judge; 0 = all of the run"
                         : "number of newest samples to judge");
  in.optional("window_seconds", seconds, config::if_given(config::above(0, Horizon::kMost / 2.0)),
              "instead of window, in seconds, at the usual two samples a second");
  if (seconds) horizon.window = std::max(static_cast<std::uint32_t>(*seconds * 2), least);
}

bool Horizon::enough(std::uint64_t samples, std::int64_t first_time,
                     std::int64_t last_time) const noexcept {
  if (!patience_seconds) return samples > patience;
  constexpr double kNanosecondsPerSecond = 1e9;
  return samples > 0 &&
         static_cast<double>(distance(last_time, first_time)) / kNanosecondsPerSecond >=
             *patience_seconds;
}

void Ring::push(double value, std::size_t most) {
  ++seen_;
  if (values_.size() < most) {
    values_.push_back(value);
    return;
  }
  values_[next_] = value;
  next_ = (next_ + 1) % values_.size();
}

std::vector<double> Ring::newest(std::size_t count) const {
  count = std::min(count, values_.size());
  std::vector<double> out;
  out.reserve(count);
  for (std::size_t i = values_.size() - count; i < values_.size(); ++i) {
    out.push_back(values_[(next_ + i) % values_.size()]);
  }
  return out;
}

double quantile(const std::vector<double>& sorted, double q) noexcept {
  const double place = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = place - static_cast<double>(below);
  return sorted[below] + part * (sorted[above] - sorted[below]);
}

}  // namespace tocsin::rules
