// Whether a tensor of one run is that of another: what is kept of both, and how they compare.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/identity.h"
#include "rules/contract/archive.h"

namespace tocsin::rules {

struct SimilarConfig {
  core::RunUid other;
  double rtol = 1e-5;
  double atol = 1e-8;
  bool equal_nan = true;
  std::string missing = "ignore";
};

inline constexpr std::uint64_t kNoIndex = UINT64_MAX;

/// What is kept of a tensor or scalar of a step.
struct SavedRow {
  std::uint64_t name = 0;
  std::uint64_t count = 0;
  std::uint64_t nan = 0;
  std::uint64_t posinf = 0;
  std::uint64_t neginf = 0;
  std::uint64_t shape = 0;  // hash; 0: not known
  std::uint64_t digest = 0;
  std::uint64_t first_bad = kNoIndex;  // element that is no finite number
  double min = 0;
  double max = 0;
  double mean = 0;
  double std = 0;
  double l2 = 0;
  std::uint8_t has_digest = 0;
  std::uint8_t scalar = 0;
  std::uint8_t dtype = 0;
};

struct SavedStep {
  std::int64_t global_step = 0;
  std::int64_t time = 0;
  std::uint32_t worker = 0;
  std::vector<SavedRow> rows;

  template <typename A>
  friend void io(A& a, SavedStep& s) {
    io_all(a, s.global_step, s.time, s.worker, s.rows);
  }
};

/// Of one worker in one mode.
struct Aligned {
  std::int64_t ended = INT64_MIN;  // newest step that is over
  std::int64_t told = INT64_MIN;   // of the other run: newest step that partitions elsewhere know
  std::int64_t first = INT64_MAX;  // step that was compared, or could not be
  std::int64_t last = INT64_MIN;
  std::uint64_t compared = 0;
  std::uint64_t only_here = 0;  // steps that the other run has passed without

  template <typename A>
  friend void io(A& a, Aligned& w) {
    io_all(a, w.ended, w.told, w.first, w.last, w.compared, w.only_here);
  }
};

struct SimilarState {
  using Who = std::pair<std::uint64_t, std::uint8_t>;  // hash of the worker's name, mode
  using Key = std::pair<Who, std::int64_t>;            // step
  std::map<Key, SavedStep> steps;  // of the other run all, of a judged one those that wait
  std::map<Who, Aligned> workers;
  std::map<std::uint64_t, std::string> names;  // of the other run: what one alone has is called so
  std::uint64_t rows = 0;
  std::int64_t dropped_to = INT64_MIN;  // steps up to here are not kept any more
  std::uint64_t dropped = 0;
  bool over = false;
  bool told_over = false;      // to partitions elsewhere
  std::vector<Key> withdrawn;  // dropped, and told before: they may forget them too
  std::uint64_t same = 0;      // by digest, or a single value
  std::uint64_t similar = 0;   // by their statistics
  std::uint64_t different = 0;
  std::uint64_t missing = 0;
  std::uint64_t left_out = 0;  // steps that the other run does not hold any more

  template <typename A>
  friend void io(A& a, SimilarState& s) {
    io_all(a, s.steps, s.workers, s.names, s.rows, s.dropped_to, s.dropped, s.over, s.told_over,
           s.withdrawn, s.same, s.similar, s.different, s.missing, s.left_out);
  }
};

/// What two rows come to.
struct Likeness {
  enum class Is : std::uint8_t { same, similar, different } is = Is::same;
  std::string_view by;  // digest, value, shape, nan, infinities, min, …
  double here = 0;
  double there = 0;
  std::uint64_t first_index = kNoIndex;  // of an element that surely differs, where one is known
};

/// The first element that is no finite number here or there is one that differs, where it is not in both.
inline std::uint64_t bad_on_one_side(const SavedRow& a, const SavedRow& b) {
  const auto known = [](const SavedRow& row) {
    return row.nan + row.posinf + row.neginf == 0 || row.first_bad != kNoIndex;
  };
  if (!known(a) || !known(b) || a.first_bad == b.first_bad) return kNoIndex;
  return std::min(a.first_bad, b.first_bad);
}

inline Likeness different_by(std::string_view by, double here, double there) {
  return {Likeness::Is::different, by, here, there};
}

/// What surely differs: shapes, or how many elements are no finite numbers. nullopt: none of these.
inline std::optional<Likeness> differs_in_counts(const SimilarConfig& config, const SavedRow& a,
                                                 const SavedRow& b) {
  const auto differ = [](std::string_view by, std::uint64_t here, std::uint64_t there) {
    return different_by(by, static_cast<double>(here), static_cast<double>(there));
  };
  const auto differ_in_bad = [&](std::string_view by, std::uint64_t here, std::uint64_t there) {
    Likeness out = differ(by, here, there);
    out.first_index = a.count == 1 ? 0 : bad_on_one_side(a, b);
    return out;
  };
  const bool shapes = a.shape != 0 && b.shape != 0 && a.shape != b.shape;
  if (a.count != b.count || shapes) return differ("shape", a.count, b.count);
  if (a.nan != b.nan || (a.nan > 0 && !config.equal_nan)) return differ_in_bad("nan", a.nan, b.nan);
  if (a.posinf != b.posinf) return differ_in_bad("infinities", a.posinf, b.posinf);
  if (a.neginf != b.neginf) return differ_in_bad("infinities", a.neginf, b.neginf);
  return std::nullopt;
}

/// The statistic that lies furthest beyond what may differ.
inline Likeness compared_by_statistics(const SimilarConfig& config, const SavedRow& a,
                                       const SavedRow& b) {
  const std::array numbers{std::tuple{"min", a.min, b.min}, std::tuple{"max", a.max, b.max},
                           std::tuple{"mean", a.mean, b.mean}, std::tuple{"std", a.std, b.std},
                           std::tuple{"l2", a.l2, b.l2}};
  Likeness worst{Likeness::Is::similar, "statistics", 0, 0};
  double most = 0;
  for (const auto& [name, here, there] : numbers) {
    if (here == there || (std::isnan(here) && std::isnan(there))) continue;
    const double off = std::fabs(here - there) - (config.atol + config.rtol * std::fabs(there));
    if (off <= 0) continue;
    // Not a number on one side, or an infinity: no difference is larger.
    const double size = std::isfinite(off) ? off : HUGE_VAL;
    if (worst.is == Likeness::Is::different && size <= most) continue;
    most = size;
    worst = different_by(a.count == 1 ? "value" : name, here, there);
    if (a.count == 1) worst.first_index = 0;
  }
  return worst;
}

inline Likeness compared(const SimilarConfig& config, const SavedRow& a, const SavedRow& b) {
  using Is = Likeness::Is;
  if (const auto differs = differs_in_counts(config, a, b)) return *differs;
  const bool digests = a.has_digest != 0 && b.has_digest != 0;
  if (digests && a.digest == b.digest) return {Is::same, "digest", 0, 0};
  const bool exact = config.rtol == 0 && config.atol == 0;
  if (digests && exact && a.dtype == b.dtype) return different_by("digest", 0, 0);
  const Likeness worst = compared_by_statistics(config, a, b);
  if (worst.is == Is::similar && a.count == 1) return {Is::same, "value", a.mean, b.mean};
  return worst;
}

}  // namespace tocsin::rules
