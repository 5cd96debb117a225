// The loop's partitions: state read back, replayed up to what was committed, handed over.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "app/loop/topic_loop_impl.h"

namespace tocsin::app {
namespace {

using Phase = LoopPartition::Phase;

}  // namespace

void TopicLoop::Impl::assigned(std::span<const core::Position> committed) {
  partitions_.assign(committed, clock_.monotonic());
  assigned_ = true;
  ready_ = false;
}

void TopicLoop::Impl::restore_assigned() {
  if (read_backoff_.waits(clock_.monotonic())) return;
  std::size_t count = 0;
  for (auto& [number, partition] : partitions_) {
    ++count;
    if (partition.phase != Phase::assigned) continue;
    const auto status = restore(number, partition);
    if (status) continue;
    log_.warn("restore_failed", {{"stage", wiring_.name},
                                 {"partition", std::int64_t{number}},
                                 {"error", status.error().message}});
    if (status.error().code == core::Code::failed_precondition) {
      broken_ = status.error();
    } else {
      stumble("reading its state fails", status.error());
      read_backoff_.grow(clock_.monotonic());  // the partition stays paused
    }
    return;
  }
  probe_.partitions.set(static_cast<double>(count));
}

core::Status TopicLoop::Impl::restore(std::int32_t number, LoopPartition& partition) {
  const auto read = state_.read(number, *source_, time_.now(),
                                [&](const core::Error& error) { fault(number, error); });
  if (!read) return read;
  const auto from = stage_.restored(number, partition.committed, time_.now());
  if (!from) fault(number, from.error());
  bool replays = false;
  std::vector<core::StreamPartition> streams;
  for (const auto& committed : partition.committed) {
    streams.push_back(committed.where);
    if (!from || committed.next < 0) continue;
    const auto at = std::find_if(from->begin(), from->end(), [&](const core::Position& position) {
      return position.where == committed.where;
    });
    if (at == from->end() || at->next >= committed.next) continue;
    if (const auto status = source_->seek(*at); !status) return status;
    replays = true;
  }
  if (const auto status = source_->resume(streams); !status) return status;
  partition.phase = Phase::replaying;
  partition.passed.clear();
  if (!replays) go_live(number, partition);
  return core::ok();
}

void TopicLoop::Impl::fault(std::int32_t number, const core::Error& error) {
  probe_.faults.add();
  log_.error(
      "state_incomplete",
      {{"stage", wiring_.name}, {"partition", std::int64_t{number}}, {"error", error.message}});
  stage_.state_fault(number, error, time_.now());
}

void TopicLoop::Impl::advance_replays() {
  for (auto& [number, partition] : partitions_) {
    if (partition.phase != Phase::replaying) continue;
    const bool at_end = std::all_of(partition.committed.begin(), partition.committed.end(),
                                    [this](const auto& one) { return source_->at_end(one.where); });
    if (!at_end && !PartitionTable::reached(partition, source_->positions())) continue;
    // What was handed out too early, of streams that were quicker than others, is read again.
    for (const auto& target : partition.committed) {
      if (!partition.passed.contains(target.where)) continue;
      if (const auto status = source_->seek(target); !status) {
        log_.warn("seek_failed", {{"stage", wiring_.name}, {"error", status.error().message}});
        return;
      }
    }
    partition.passed.clear();
    go_live(number, partition);
  }
  if (assigned_ && partitions_.all_live() && !needs_proof_ && !queue_.backoff().failing() &&
      !read_backoff_.failing()) {
    open_backoff_ = {};
    get_ready();
  }
}

void TopicLoop::Impl::go_live(std::int32_t number, LoopPartition& partition) {
  const Instant now = time_.now();
  partition.phase = Phase::live;
  stage_.started(number, now);
  const double seconds = std::chrono::duration<double>(now.steady - partition.since).count();
  probe_.restore_seconds.observe(seconds);
  log_.debug("partition_live",
             {{"stage", wiring_.name}, {"partition", std::int64_t{number}}, {"seconds", seconds}});
}

void TopicLoop::Impl::revoked(std::span<const core::StreamPartition> partitions) {
  gather();
  commit_now();
  take_away(partitions);
  stage_.revoked(partitions);
}

void TopicLoop::Impl::lost(std::span<const core::StreamPartition> partitions) {
  settle(queue_.wait(clock_.monotonic()));
  take_away(partitions);
  stage_.lost(partitions);
}

/// A partition takes only its own pending output along.
void TopicLoop::Impl::take_away(std::span<const core::StreamPartition> partitions) {
  if (wiring_.state == StateScope::whole && !partitions.empty()) {
    broken_ = core::Error{core::Code::failed_precondition, "partitions of its state were taken"};
  }
  partitions_.take(partitions);
  queue_.take_away([this](std::int32_t number) { return partitions_.find(number) == nullptr; });
}

}  // namespace tocsin::app
