#include "insights/series/past_samples.h"

#include <algorithm>
#include <optional>

namespace tocsin::insights {
namespace {

constexpr std::int64_t kLookBack = 60'000;     // milliseconds; a sample is rarely further away
constexpr std::int64_t kSearchLevel = 16;      // buckets of 66 s: where the newest one is
constexpr std::int64_t kAllSamplesAsOne = 52;  // level

// Where the last bucket begins that holds something of [lo, hi).
std::optional<std::int64_t> last_bucket(SeriesReader& reader, const FamilyLine& family,
                                        std::int64_t lo, std::int64_t hi, std::int64_t level) {
  std::optional<std::int64_t> out;
  reader.visit_buckets(family, kValueColumn, lo, hi, level,
                       [&](std::int64_t bucket, const Bucket& part) {
                         if (!part.empty()) out = bucket << level;
                       });
  return out;
}

// The newest sample of [lo, until].
std::optional<std::int64_t> newest_from(SeriesReader& reader, const FamilyLine& family,
                                        std::int64_t lo, std::int64_t until) {
  if (!family.rows_gone(lo)) return last_bucket(reader, family, lo, until + 1, 0);
  const std::int64_t kept = family.kept_from[kRowsPart];
  if (kept <= until) {
    if (const auto found = last_bucket(reader, family, kept, until + 1, 0)) return found;
  }
  // A bucket says where it begins, not where its last sample lies.
  const std::int64_t level = family.least_level(lo);
  const auto found = last_bucket(reader, family, lo, std::min(kept, until + 1), level);
  if (!found) return std::nullopt;
  return std::min({*found + (std::int64_t{1} << level) - 1, until, kept - 1});
}

std::optional<std::int64_t> newest_sample(SeriesReader& reader, const FamilyLine& family,
                                          std::int64_t until) {
  if (family.rows == 0 || family.x_first > until) return std::nullopt;
  const std::int64_t near = std::max(family.x_first, until - kLookBack);
  if (const auto found = newest_from(reader, family, near, until)) return found;
  const std::int64_t level = std::max(kSearchLevel, family.least_level(family.x_first));
  const auto wide = last_bucket(reader, family, family.x_first, until + 1, level);
  if (!wide) return std::nullopt;
  return newest_from(reader, family, std::max(family.x_first, *wide), until);
}

}  // namespace

bool cut_samples(SeriesReader& reader, std::int64_t until, FamilyLine& family) {
  if (family.x_last <= until) return family.rows > 0;
  const auto newest = newest_sample(reader, family, until);
  if (!newest) return false;
  family.x_last = *newest;
  family.rows = 0;
  reader.visit_buckets(
      family, kValueColumn, family.x_first, family.x_last + 1, kAllSamplesAsOne,
      [&](std::int64_t, const Bucket& part) { family.rows += part.n + part.bad(); });
  if (family.bad_x > family.x_last) family.bad_x = -1;
  return family.rows > 0;
}

}  // namespace tocsin::insights
