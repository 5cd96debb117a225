// What a run's dictionaries said about its names: found by hash, kept in the order in which they
// came, so that snapshots can write them range by range.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rules/contract/selection.h"
#include "rules/engine/memory/flat_index.h"

namespace tocsin::rules {

class NameTable {
 public:
  struct Entry {
    std::uint64_t hash = 0;
    Name name;
    bool lasting = false;  // of a node or its series: holds beyond one launch
  };

  /// nullptr: no dictionary named it.
  [[nodiscard]] const Name* find(std::uint64_t hash) const noexcept {
    const std::uint32_t number = index_.find(hash);
    return number == FlatIndex::kNone ? nullptr : &entries_[number].name;
  }
  /// Place that `hash` has or, when it is new, will get.
  [[nodiscard]] std::uint32_t index_of(std::uint64_t hash) const noexcept {
    const std::uint32_t number = index_.find(hash);
    return number == FlatIndex::kNone ? static_cast<std::uint32_t>(entries_.size()) : number;
  }
  void set(std::uint64_t hash, Name name, bool lasting) {
    const std::uint32_t number = index_of(hash);
    if (number == entries_.size()) {
      index_.insert(hash, number);
      entries_.emplace_back();
    }
    entries_[number] = {hash, std::move(name), lasting};
  }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] std::vector<Entry>& entries() noexcept { return entries_; }
  [[nodiscard]] const std::vector<Entry>& entries() const noexcept { return entries_; }

 private:
  std::vector<Entry> entries_;
  FlatIndex index_;
};

}  // namespace tocsin::rules
