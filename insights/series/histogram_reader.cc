// Stored histograms of tensors.
#include <algorithm>

#include "insights/series/exponential_counts.h"
#include "insights/series/series_reader.h"
#include "insights/store/database.h"

namespace tocsin::insights {

bool SeriesReader::histograms(
    const FamilyLine& family, const HistogramPart& part,
    core::FunctionRef<void(std::int64_t x, const ExponentialCounts& counts)> visit) {
  StoreStatement get = database_->prepare(
      "SELECT x, data FROM histogram WHERE family = ? AND x >= ? AND x < ? ORDER BY x LIMIT ?");
  bool whole = true;
  const std::int64_t end = std::min(part.hi, family.x_last + 1);
  for (std::int64_t lo = std::max(part.lo, family.x_first); lo < end;) {
    const std::int64_t hi = std::min(end, (lo / part.width + 1) * part.width);
    get.bind(1, family.id).bind(2, lo).bind(3, hi).bind(4, part.most + 1);
    std::int64_t read = 0;
    while (get.next()) {
      if (++read > part.most) {
        whole = false;
        break;
      }
      if (const auto counts = decode_counts(get.text(1))) {
        visit(get.integer(0), *counts);
      } else {
        damaged_ = true;
      }
    }
    get.reset();
    lo = hi;
  }
  return whole;
}

bool SeriesReader::histograms_gone(const std::string& run) {
  StoreStatement get = database_->prepare("SELECT histograms_gone FROM run WHERE uid = ?");
  get.bind(1, std::string_view(run));
  return get.next() && get.integer(0) != 0;
}

}  // namespace tocsin::insights
