#include "app/loop/partition_lives.h"

#include <algorithm>
#include <chrono>
#include <string>

namespace tocsin::app {
namespace {

using Phase = LoopPartition::Phase;

}  // namespace

void PartitionLives::clear() {
  table_.clear();
  state_.clear();
  assigned_ = false;
}

void PartitionLives::assign(std::span<const core::Position> committed) {
  table_.assign(committed, time_.steady());
  assigned_ = true;
}

void PartitionLives::take(std::span<const core::StreamPartition> partitions) {
  table_.take(partitions);
}

core::Status PartitionLives::restore_assigned() {
  std::size_t count = 0;
  for (auto& [number, partition] : table_) {
    ++count;
    if (partition.phase != Phase::assigned) continue;
    const auto status = restore(number, partition);
    if (status) continue;
    log_.warn("restore_failed", {{"stage", wiring_.name},
                                 {"partition", std::int64_t{number}},
                                 {"error", status.error().message}});
    return status;
  }
  probe_.partitions.set(static_cast<double>(count));
  return core::ok();
}

core::Status PartitionLives::restore(std::int32_t number, LoopPartition& partition) {
  core::RecordSource& source = input_.source();
  const auto read = state_.read(number, source, time_.now(),
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
    if (const auto status = source.seek(*at); !status) return status;
    replays = true;
  }
  if (const auto status = source.resume(streams); !status) return status;
  partition.phase = Phase::replaying;
  partition.passed.clear();
  if (!replays) go_live(number, partition);
  return core::ok();
}

void PartitionLives::fault(std::int32_t number, const core::Error& error) {
  probe_.faults.add();
  log_.error(
      "state_incomplete",
      {{"stage", wiring_.name}, {"partition", std::int64_t{number}}, {"error", error.message}});
  stage_.state_fault(number, error, time_.now());
}

void PartitionLives::input_gone(const PollOutcome& gap) {
  for (const std::int32_t number : table_.lost(gap.before, gap.now)) fault(number, gap.error);
}

bool PartitionLives::hold_back(const core::RecordView& record, LoopPartition& partition) {
  const core::StreamPartition where{std::string(record.stream), record.partition};
  for (const auto& target : partition.committed) {
    if (target.where != where || target.next < 0 || record.offset < target.next) continue;
    const bool first = partition.passed.insert(where).second;
    if (!PartitionTable::reached(partition, input_.source().positions())) return true;
    // The first live one of its stream is handled now. Behind others that were held back it is read
    // again with them.
    if (first) partition.passed.erase(where);
    advance_replays();
    if (partition.phase == Phase::live) return !first;
    partition.passed.insert(where);
    return true;
  }
  return false;
}

void PartitionLives::advance_replays() {
  core::RecordSource& source = input_.source();
  for (auto& [number, partition] : table_) {
    if (partition.phase != Phase::replaying) continue;
    const bool at_end = std::all_of(partition.committed.begin(), partition.committed.end(),
                                    [&](const auto& one) { return source.at_end(one.where); });
    if (!at_end && !PartitionTable::reached(partition, source.positions())) continue;
    // What was handed out too early, of streams that were quicker than others, is read again.
    for (const auto& target : partition.committed) {
      if (!partition.passed.contains(target.where)) continue;
      if (const auto status = source.seek(target); !status) {
        log_.warn("seek_failed", {{"stage", wiring_.name}, {"error", status.error().message}});
        return;
      }
    }
    partition.passed.clear();
    go_live(number, partition);
  }
}

void PartitionLives::go_live(std::int32_t number, LoopPartition& partition) {
  const Instant now = time_.now();
  partition.phase = Phase::live;
  stage_.started(number, now);
  const double seconds = std::chrono::duration<double>(now.steady - partition.since).count();
  probe_.restore_seconds.observe(seconds);
  log_.debug("partition_live",
             {{"stage", wiring_.name}, {"partition", std::int64_t{number}}, {"seconds", seconds}});
}

void PartitionLives::look_for_ends(bool polled, core::Duration steady) {
  std::size_t behind = 0;
  for (auto& [number, partition] : table_) {
    for (const auto& one : partition.committed) {
      if (polled && partition.phase == Phase::live && input_.source().at_end(one.where)) {
        partition.saw(one.where.stream, {steady, steady});
      }
    }
    if (!table_.live(number, steady)) ++behind;
  }
  probe_.behind.set(static_cast<double>(behind));
}

}  // namespace tocsin::app
