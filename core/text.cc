#include "core/text.h"

#include <utf8.h>

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

// A byte of UTF-8 that goes on with a character.
bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

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

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  const auto bad = utf8::find_invalid(text.begin(), text.end());
  if (bad == text.end()) return std::nullopt;
  return static_cast<std::size_t>(bad - text.begin());
}

std::size_t count_code_points(std::string_view text) noexcept {
  return text.size() - static_cast<std::size_t>(std::count_if(text.begin(), text.end(), continues));
}

std::string_view cut_utf8(std::string_view text, std::size_t bytes) noexcept {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && continues(text[bytes])) --bytes;
  return text.substr(0, bytes);
}

}  // namespace tocsin::core
