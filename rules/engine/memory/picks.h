// Which units of a roster a rule looks at, and which rows of a frame are theirs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rules/contract/row.h"
#include "rules/contract/selection.h"

namespace tocsin::rules {

/// Slots of which a rule's answer is Match::yes, ascending. Follows from the answers, so it is in no
/// snapshot.
class Picks {
 public:
  void clear() noexcept { slots_.clear(); }
  /// `slot` is larger than all there are.
  void add(std::uint32_t slot) { slots_.push_back(slot); }
  void find(std::span<const Match> answers) {
    slots_.clear();
    for (std::uint32_t i = 0; i < answers.size(); ++i) {
      if (answers[i] == Match::yes) slots_.push_back(i);
    }
  }
  [[nodiscard]] bool empty() const noexcept { return slots_.empty(); }

  /// Numbers of the rows whose units are picked. `units`: of each row, kSkip where there is none;
  /// `first`: the first of them where they stand side by side, else kSkip.
  void rows(std::span<const std::uint32_t> units, std::uint32_t first,
            std::span<const Match> answers, std::vector<std::uint32_t>& out) const {
    if (first == RowBatch::kSkip || units.size() == 1) {
      out.clear();
      for (std::uint32_t i = 0; i < units.size(); ++i) {
        if (units[i] != RowBatch::kSkip && answers[units[i]] == Match::yes) out.push_back(i);
      }
      return;
    }
    auto from = slots_.begin();
    auto to = slots_.end();
    if (slots_.size() == answers.size()) {  // all
      from += first;
      to = from + static_cast<std::ptrdiff_t>(units.size());
    } else {
      from = std::lower_bound(from, to, first);
      to = std::lower_bound(from, to, first + static_cast<std::uint32_t>(units.size()));
    }
    out.resize(static_cast<std::size_t>(to - from));
    std::transform(from, to, out.begin(), [first](std::uint32_t slot) { return slot - first; });
  }

 private:
  std::vector<std::uint32_t> slots_;
};

}  // namespace tocsin::rules
