// From lent tensors to rows of statistics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collectors/hook/capture/capture.h"
#include "collectors/hook/capture/lent_tensor.h"
#include "collectors/hook/capture/statistic_set.h"
#include "collectors/hook/capture/step_counter.h"
#include "collectors/hook/capture/tensor_math.h"
#include "collectors/hook/publish/frame_batcher.h"
#include "collectors/hook/publish/name_table.h"
#include "core/frame.h"

namespace tocsin::hook {

inline constexpr CollectionMask kAnyCollection = ~CollectionMask{0};

/// Reduces each tensor in the call that lends it. Not thread-safe.
class TensorRows {
 public:
  /// Borrows everything.
  TensorRows(const CapturePlan& plan, const NameTable& names, const StepCounter& steps,
             FrameBatcher& frames);

  /// Prepares the statistics that the plan asks for. Call it after each change of the plan.
  void follow_plan() { statistics_.follow(plan_.requests()); }
  /// Before the tensors of one call are added: statistics that keep something per tensor decide
  /// which new ones they take.
  void admit(std::span<const LentTensor> tensors, CollectionMask due);
  /// Writes the row of a tensor. False: it has no elements, and none are expected here.
  bool add(const LentTensor& tensor, const Name& name, CollectionMask due);

  /// Memory that statistics keep between steps.
  [[nodiscard]] std::uint64_t kept_bytes() const { return statistics_.kept_bytes(); }
  /// Tensors for which that memory was too small.
  [[nodiscard]] std::vector<std::string> left_out() const { return statistics_.left_out(); }
  /// Views too large to be gathered.
  [[nodiscard]] std::uint64_t not_gathered() const noexcept { return not_gathered_; }

 private:
  void measure(const LentTensor& tensor, const Name& name, Layout layout, CollectionMask due,
               core::SummaryRow& row);

  const CapturePlan& plan_;
  const NameTable& names_;
  const StepCounter& steps_;
  FrameBatcher& frames_;
  StatisticSet statistics_;
  std::vector<std::byte> gathered_;  // a view as one block, for statistics that need it so
  std::uint64_t not_gathered_ = 0;
};

}  // namespace tocsin::hook
