#include "app/loop/partition_table.h"

#include <algorithm>

namespace tocsin::app {
namespace {

using Seen = LoopPartition::Seen;

/// Of the stream that is furthest behind.
core::Duration least(const std::vector<Seen>& seen, core::Duration Seen::*what) {
  const auto oldest = std::min_element(
      seen.begin(), seen.end(), [&](const Seen& a, const Seen& b) { return a.*what < b.*what; });
  return oldest == seen.end() ? Seen().*what : (*oldest).*what;
}

}  // namespace

void LoopPartition::saw(std::string_view stream, const Seen& what) noexcept {
  for (std::size_t i = 0; i < committed.size(); ++i) {
    if (committed.size() == 1 || committed[i].where.stream == stream) seen[i] = what;
  }
}

core::Duration LoopPartition::fresh() const noexcept { return least(seen, &Seen::fresh_at); }
core::Duration LoopPartition::read_until() const noexcept { return least(seen, &Seen::read_until); }

void LoopPartition::forget(const core::StreamPartition& stream) {
  for (std::size_t i = committed.size(); i-- > 0;) {
    if (committed[i].where != stream) continue;
    committed.erase(committed.begin() + static_cast<std::ptrdiff_t>(i));
    seen.erase(seen.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void PartitionTable::assign(std::span<const core::Position> committed, core::Duration steady) {
  for (const auto& position : committed) {
    LoopPartition& one = partitions_[position.where.partition];
    one.phase = LoopPartition::Phase::assigned;
    one.since = steady;
    one.forget(position.where);
    one.committed.push_back(position);
    one.seen.emplace_back();
  }
}

void PartitionTable::take(std::span<const core::StreamPartition> partitions) {
  for (const auto& gone : partitions) {
    const auto found = partitions_.find(gone.partition);
    if (found == partitions_.end()) continue;
    found->second.forget(gone);
    if (found->second.committed.empty()) partitions_.erase(found);
  }
}

LoopPartition* PartitionTable::find(std::int32_t number) {
  const auto found = partitions_.find(number);
  return found == partitions_.end() ? nullptr : &found->second;
}

bool PartitionTable::live(std::int32_t number, core::Duration steady) const {
  const auto found = partitions_.find(number);
  return found != partitions_.end() && found->second.phase == LoopPartition::Phase::live &&
         found->second.fresh() >= core::Duration::zero() &&
         steady - found->second.fresh() <= kFresh;
}

std::optional<core::Duration> PartitionTable::read_until(std::int32_t number) const {
  const auto found = partitions_.find(number);
  const bool known = found != partitions_.end() &&
                     found->second.phase == LoopPartition::Phase::live &&
                     found->second.read_until() >= core::Duration::zero();
  return known ? std::optional(found->second.read_until()) : std::nullopt;
}

std::optional<core::Duration> PartitionTable::all_read_until() const {
  std::optional<core::Duration> out;
  for (const auto& [number, partition] : partitions_) {
    const core::Duration until = read_until(number).value_or(partition.since);
    out = out ? std::min(*out, until) : until;
  }
  return out;
}

bool PartitionTable::all_live() const {
  return std::all_of(partitions_.begin(), partitions_.end(), [](const auto& entry) {
    return entry.second.phase == LoopPartition::Phase::live;
  });
}

std::vector<core::Position> PartitionTable::live_only(std::vector<core::Position> positions) const {
  std::erase_if(positions, [&](const core::Position& one) {
    const auto found = partitions_.find(one.where.partition);
    return one.next < 0 || found == partitions_.end() ||
           found->second.phase != LoopPartition::Phase::live;
  });
  return positions;
}

std::vector<std::int32_t> PartitionTable::lost(std::span<const core::Position> before,
                                               std::span<const core::Position> now) const {
  const auto had = [](std::span<const core::Position> in, const core::StreamPartition& where) {
    const auto found = std::find_if(in.begin(), in.end(),
                                    [&](const core::Position& one) { return one.where == where; });
    return found == in.end() ? std::int64_t{-1} : found->next;
  };
  std::set<std::int32_t> shown;
  for (const core::Position& one : now) {
    const auto partition = partitions_.find(one.where.partition);
    if (partition == partitions_.end()) continue;
    const bool moved = one.next != had(before, one.where);
    const bool forgotten = one.next < 0 && had(partition->second.committed, one.where) >= 0;
    if (moved || forgotten) shown.insert(one.where.partition);
  }
  std::vector<std::int32_t> out;
  for (const auto& [number, partition] : partitions_) {
    if (partition.phase == LoopPartition::Phase::assigned) continue;
    if (shown.empty() || shown.contains(number)) out.push_back(number);
  }
  return out;
}

bool PartitionTable::reached(const LoopPartition& partition,
                             std::span<const core::Position> positions) {
  return std::all_of(
      partition.committed.begin(), partition.committed.end(), [&](const core::Position& target) {
        if (target.next < 0 || partition.passed.contains(target.where)) return true;
        return std::any_of(positions.begin(), positions.end(), [&](const core::Position& now) {
          return now.where == target.where && now.next >= target.next;
        });
      });
}

}  // namespace tocsin::app
