// Rules of rows: judged as the rows arrive or, with a minimum fraction, when their worker has ended
// the step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rules/engine/issues/issue_book.h"
#include "rules/engine/partition/turn.h"

namespace tocsin::rules {

class RowJudge {
 public:
  explicit RowJudge(IssueBook& book) : book_(book) {}

  /// Rows of one roster whose units are known.
  void judge(const Turn& turn, Run& run, std::uint32_t roster_number, RowBatch& batch, Place place);
  void end_step(const Turn& turn, Run& run, std::uint32_t worker, core::Mode mode,
                std::int64_t step, const Place& place);
  void end_step(const Turn& turn, Run& run, std::uint32_t roster_number, std::int64_t step,
                const Place& place);
  void flush(const Turn& turn, Run& run);

 private:
  void apply(const Turn& turn, Run& run, std::uint32_t roster_number, std::size_t row_rule,
             std::span<const RowHit> hits, const RowBatch* batch, const Place& place);

  IssueBook& book_;
  // To keep rows free of allocation:
  std::vector<RowHit> noted_;
  std::vector<std::uint32_t> rows_;
};

}  // namespace tocsin::rules
