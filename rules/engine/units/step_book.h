// Completed steps and evaluation passes in the order of training, whatever the order in which
// workers' records came (docs/launches.md).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rules/engine/partition/turn.h"
#include "rules/engine/units/evaluations.h"

namespace tocsin::rules {

class StepBook {
 public:
  StepBook(EngineStats& stats, Evaluations& evaluations)
      : stats_(stats), evaluations_(evaluations) {}

  /// A value that waits until its step is complete.
  void add(const Turn& turn, Run& run, std::uint32_t worker, const core::FrameHeader& header,
           std::int64_t step, std::int64_t global_step, std::int64_t time, std::uint64_t name,
           double value, core::Role role);
  /// A step that a worker has ended. Of evaluations it may be the last of its pass, whatever it brought.
  void ended(const Turn& turn, Run& run, std::uint32_t worker, const core::FrameHeader& header,
             std::int64_t step, std::int64_t global_step, std::int64_t time);
  /// Judges what is complete; `everything`: the run is over.
  void advance(const Turn& turn, Run& run, bool everything = false);

 private:
  void advance_modes(const Turn& turn, Run& run, bool everything);
  void gather_ready(Run& run);
  void tell_closed(const Turn& turn, Run& run, bool trains, bool all);
  void release(const Turn& turn, Run& run, std::vector<PendingScalar>& items);
  void judge_group(const Turn& turn, Run& run, std::span<const PendingScalar> items,
                   std::optional<std::size_t> only);
  void judge_step(const Turn& turn, Run& run, std::span<const PendingScalar> items,
                  std::optional<std::size_t> only);
  void judge_pass(const Turn& turn, Run& run, std::span<const PendingScalar> items,
                  std::optional<std::size_t> only);
  void read_names(const Run& run);
  void run_series(const Turn& turn, Run& run, const StepPoint& point, bool pass, const Place& place,
                  std::optional<std::size_t> only);

  EngineStats& stats_;
  Evaluations& evaluations_;
  struct ValueName {
    const Name* known = nullptr;
    std::string made;  // of a name that was never stated
  };
  // What a step or pass is judged from; kept, so that steps need no memory of their own.
  std::vector<PendingScalar> items_;
  std::vector<PendingScalar> chosen_items_;
  std::vector<SeriesValue> values_;
  std::vector<ValueName> names_;
  std::vector<SeriesValue> chosen_;
  std::vector<PassValue> pass_;
};

}  // namespace tocsin::rules
