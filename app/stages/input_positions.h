// Where a stage reads on after a crash that works off some of its records later.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/record.h"

namespace tocsin::app {

class InputPositions {
 public:
  /// This record was handed to the stage; where it stands.
  core::StreamPartition read(const core::RecordView& record) {
    core::StreamPartition where{std::string(record.stream), record.partition};
    std::int64_t& next = next_[where];
    next = std::max(next, record.offset + 1);
    return where;
  }

  /// Behind what was read, and before what still waits (a range of things with `where` and
  /// `offset`). Only those that moved since the last call: a stage that has nothing new says nothing,
  /// or its loop would commit for ever.
  template <typename Waiting>
  std::vector<core::Position> take(const Waiting& waiting) {
    std::vector<core::Position> out;
    for (const auto& [where, next] : next_) {
      std::int64_t from = next;
      for (const auto& one : waiting) {
        if (one.where == where) from = std::min(from, one.offset);
      }
      const auto [told, first] = told_.try_emplace(where, from);
      if (!first && std::exchange(told->second, from) == from) continue;
      out.push_back({where, from});
    }
    return out;
  }

  void forget(std::span<const core::StreamPartition> partitions) {
    for (const core::StreamPartition& gone : partitions) {
      next_.erase(gone);
      told_.erase(gone);
    }
  }
  void clear() {
    next_.clear();
    told_.clear();
  }

 private:
  std::map<core::StreamPartition, std::int64_t> next_;  // what was read
  std::map<core::StreamPartition, std::int64_t> told_;  // what the loop has been given
};

}  // namespace tocsin::app
