#include "app/loop/record_handling.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace tocsin::app {
namespace {

constexpr core::Duration kOverrun = std::chrono::seconds(5);

}  // namespace

std::optional<Refusal> RecordHandling::hand(const core::RecordView& record,
                                            LoopPartition& partition) {
  if (!now_) {
    now_ = time_.now();
    until_ = now_->steady;
  }
  const core::Duration age = now_->wall - core::wall_time(record.timestamp);
  if (age <= PartitionTable::kFresh && -age <= PartitionTable::kFresh) {
    const core::Duration old = std::max(age, core::Duration::zero());
    partition.saw(record.stream, {now_->steady, now_->steady - old});
  }
  std::optional<Refusal> refusal;
  try {
    refusal = stage_.handle(record, {*now_, partition.phase != LoopPartition::Phase::live});
  } catch (const std::exception& e) {
    refusal = Refusal{"handler_failed", e.what()};
  }
  const core::Duration now = clock_.monotonic();
  const core::Duration took = now - std::exchange(until_, now);
  if (took > kOverrun) {
    probe_.overruns.add();
    if (!refusal) refusal = Refusal{"handler_overrun", "handling took " + core::to_text(took)};
  }
  return refusal;
}

}  // namespace tocsin::app
