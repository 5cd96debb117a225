// One aggregate over points that come one after another, in a few numbers. Points whose value is not
// finite are left out: an aggregate speaks of the others.
#pragma once

#include <cstdint>

#include "rules/declared/memory.h"

namespace tocsin::rules::declared {

class Running {
 public:
  static constexpr std::uint32_t kWords = 7;
  struct Where {
    std::int64_t place = 0;  // steps or ns: the axis of a slope
    std::int64_t step = 0;
    std::int64_t time = 0;
  };

  Running(Kind kind, double number) noexcept : kind_(kind), number_(number) {}
  void add(double x, const Where& where, bool boolean) noexcept;
  /// NaN: too few points. `step`: the newest one.
  [[nodiscard]] double result(std::int64_t step) const noexcept;

  void load(const std::uint64_t* words) noexcept;
  void store(std::uint64_t* words) const noexcept;

 private:
  void add_newest(double x) noexcept;
  void add_end(double x, std::int64_t time) noexcept;
  void add_extreme(double x, std::int64_t step) noexcept;
  void add_slope(double x, std::int64_t place) noexcept;

  Kind kind_;
  double number_;
  double n_ = 0;
  double mean_ = 0;  // Welford's mean and sum of squares: of values, or of a slope's axis
  double m2_ = 0;
  double a_ = 0;  // what the kind needs: see add()
  double b_ = 0;
  std::int64_t begin_ = 0;
  std::int64_t end_ = 0;
};

/// Mean of the finite ones of so many values of a ring of bits, the first of them at place `at`: one
/// division for all of them, as distances from the first, so that of equal values it is exactly that
/// value. NaN: there is none.
double ring_mean(const std::uint64_t* ring, std::uint64_t capacity, std::uint64_t at,
                 std::uint64_t points) noexcept;

/// Linear interpolation between neighbours (Hyndman and Fan 1996, type 7) over the finite ones of so
/// many values of a ring of bits, the first of them at place `at`.
double exact_quantile(const std::uint64_t* ring, std::uint64_t capacity, std::uint64_t at,
                      std::uint64_t points, double q);

}  // namespace tocsin::rules::declared
