// Finds the unit of a row. The order of tensors repeats every step, so it is found by looking one
// place further than the last, and only then by its hash.
#pragma once

#include <cstdint>
#include <span>

#include "rules/engine/partition/turn.h"

namespace tocsin::rules {

class Units {
 public:
  Units(const EngineOptions& options, EngineStats& stats) : options_(options), stats_(stats) {}

  /// Made when it is new.
  Roster& roster(const Turn& turn, Run& run, std::uint32_t worker, core::Mode mode, bool scalars);
  /// `guess`: where it probably is. RowBatch::kSkip: there is no room for another.
  std::uint32_t slot(const Turn& turn, Run& run, Roster& roster, std::uint64_t name,
                     std::uint64_t meta, std::uint32_t guess);
  void resolve(const Turn& turn, Run& run, Roster& roster);
  /// Of all units of the roster.
  static std::span<const std::uint64_t> shapes(const Run& run, Roster& roster);

 private:
  void choose_rows(const Turn& turn, Run& run, Roster& roster, std::size_t unit, std::size_t first);
  void choose_series(const Turn& turn, const Run& run, Roster& roster, std::size_t unit,
                     core::Role role);

  const EngineOptions& options_;
  EngineStats& stats_;
};

}  // namespace tocsin::rules
