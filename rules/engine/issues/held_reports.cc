#include "rules/engine/issues/held_reports.h"

#include <algorithm>

namespace tocsin::rules {

bool HeldReports::come_before(const OpenKey& key, std::int64_t global_step) const {
  return std::any_of(held_.begin(), held_.end(), [&](const HeldReport& one) {
    return one.key == key || one.at.global_step < global_step;
  });
}

std::vector<HeldReport> HeldReports::take() {
  std::vector<HeldReport> out = std::exchange(held_, {});
  std::stable_sort(out.begin(), out.end(),
                   [](const HeldReport& a, const HeldReport& b) { return a.at < b.at; });
  return out;
}

}  // namespace tocsin::rules
