// From lent tensors to copies on the queue of raw tensors.
#pragma once

#include "collectors/hook/capture/capture.h"
#include "collectors/hook/capture/lent_tensor.h"
#include "collectors/hook/capture/step_counter.h"
#include "collectors/hook/publish/announcer.h"
#include "collectors/hook/publish/frame_batcher.h"
#include "collectors/hook/publish/name_table.h"
#include "collectors/hook/raw/raw_queue.h"

namespace tocsin::hook {

/// Not thread-safe.
class RawCapture {
 public:
  /// Borrows everything. `queue`: null: no elements are sent.
  RawCapture(RawQueue* queue, const FrameBatcher& frames, const StepCounter& steps,
             Announcer& announcer)
      : queue_(queue), frames_(frames), steps_(steps), announcer_(announcer) {}

  /// Those of these collections whose elements go out.
  [[nodiscard]] CollectionMask of(const CapturePlan& plan, CollectionMask collections) const {
    return queue_ == nullptr || collections == 0 ? 0 : plan.raw_of(collections);
  }
  [[nodiscard]] bool on() const noexcept { return queue_ != nullptr; }
  /// Copies the tensor, whole or not at all: half of it is of no use. What is skipped is counted. Bytes
  /// that were copied.
  std::uint64_t copy(const LentTensor& tensor, const Name& name);
  /// After the last copy() of a call: has them sent, and says what was skipped for the first time.
  void sent();

 private:
  RawQueue* const queue_;
  const FrameBatcher& frames_;
  const StepCounter& steps_;
  Announcer& announcer_;
  bool copied_ = false;
};

}  // namespace tocsin::hook
