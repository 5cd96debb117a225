// `patience` and `window` of the rules of system metrics: counted in samples, or given in seconds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "config/config.h"
#include "rules/contract/archive.h"

namespace tocsin::rules {

/// How much must have been seen before a judgement, and how much of it counts.
struct Horizon {
  std::uint32_t patience = 1000;  // samples
  std::uint32_t window = 500;     // newest samples that count; 0 = all, where a rule allows it
  std::optional<double> patience_seconds;

  static constexpr std::uint32_t kMost = 1'000'000;

  /// Whether more than `patience` samples were seen, or samples of as many seconds.
  [[nodiscard]] bool enough(std::uint64_t samples, std::int64_t first_time,
                            std::int64_t last_time) const noexcept;
};

/// Declares `patience` and `patience_seconds`.
void read_patience(config::Reader& in, Horizon& horizon, std::uint32_t least = 0);
/// Declares `window` and `window_seconds`; `least` 0: all of the run may be meant.
void read_window(config::Reader& in, Horizon& horizon, std::uint32_t least);

/// The newest values of a series, at most `most` of them, oldest first when copied out.
class Ring {
 public:
  void push(double value, std::size_t most);
  [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
  [[nodiscard]] std::uint64_t seen() const noexcept { return seen_; }
  /// In the order in which they came; the last `count` of them.
  [[nodiscard]] std::vector<double> newest(std::size_t count) const;

  template <typename A>
  friend void io(A& a, Ring& r) {
    io_all(a, r.values_, r.next_, r.seen_);
  }

 private:
  std::vector<double> values_;
  std::uint64_t next_ = 0;  // place of the oldest once the ring is full
  std::uint64_t seen_ = 0;
};

/// Linear interpolation between neighbours (Hyndman and Fan 1996, type 7). `sorted` is not empty.
double quantile(const std::vector<double>& sorted, double q) noexcept;

}  // namespace tocsin::rules
