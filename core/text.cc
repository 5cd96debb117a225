#include "core/text.h"

#include <algorithm>
#include <numeric>

namespace tocsin::core {
namespace {

// Optimal string alignment: a swap of neighbours counts one.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> rows(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  std::iota(rows[0].begin(), rows[0].end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    rows[i][0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
      }
    }
  }
  return rows[a.size()][b.size()];
}

}  // namespace

std::string nearest(std::string_view wanted, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t least = std::max<std::size_t>(1, wanted.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t gap = candidate.size() > wanted.size() ? candidate.size() - wanted.size()
                                                             : wanted.size() - candidate.size();
    if (gap >= least) continue;
    if (const std::size_t found = distance(wanted, candidate); found < least) {
      least = found;
      best = candidate;
    }
  }
  if (!best.empty() || wanted.size() < 4) return best;
  for (const std::string& candidate : candidates) {
    if (!candidate.starts_with(wanted)) continue;
    if (!best.empty()) return {};  // several go on so
    best = candidate;
  }
  return best;
}

}  // namespace tocsin::core
