// Finds the unit of a row. The order of tensors repeats every step, so it is found by looking one
// place further than the last, and only then by its hash.
#pragma once

#include <cstdint>
#include <span>

#include "rules/engine/partition/context.h"

namespace tocsin::rules {

class Units {
 public:
  explicit Units(Context& ctx) : ctx_(ctx) {}

  /// Made when it is new.
  Roster& roster(Run& run, std::uint32_t worker, core::Mode mode, bool scalars);
  /// `guess`: where it probably is. RowBatch::kSkip: there is no room for another.
  std::uint32_t slot(Run& run, Roster& roster, std::uint64_t name, std::uint64_t meta,
                     std::uint32_t guess);
  void resolve(Run& run, Roster& roster);
  /// Of all units of the roster.
  static std::span<const std::uint64_t> shapes(const Run& run, Roster& roster);

 private:
  void choose_rows(Run& run, Roster& roster, std::size_t unit, std::size_t first);
  void choose_series(const Run& run, Roster& roster, std::size_t unit, core::Role role);

  Context& ctx_;
};

}  // namespace tocsin::rules
