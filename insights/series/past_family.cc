#include "insights/series/past_family.h"

namespace tocsin::insights {
namespace {

constexpr std::int64_t kAllAsOne = 52;  // level

}  // namespace

bool cut_family(SeriesReader& reader, std::int64_t until, FamilyLine& family) {
  const std::int64_t end = reader.x_at(family, kTimeColumn, static_cast<double>(until) + 1);
  if (end > family.x_last) return true;
  if (end <= family.x_first) return false;
  family.x_last = end - 1;
  family.rows = 0;
  reader.visit_buckets(family, kTimeColumn, family.x_first, end, kAllAsOne,
                       [&](std::int64_t, const Bucket& part) { family.rows += part.n; });
  if (family.bad_x > family.x_last) family.bad_x = -1;
  return family.rows > 0;
}

}  // namespace tocsin::insights
