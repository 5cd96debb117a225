// Issues by what their newest event said, so that one that is only said again is known by it, without
// its event being decoded (docs/routing.md, Life of an issue).
#pragma once

#include <cstddef>
#include <vector>

#include "routing/routing.h"
#include "routing/tables/state.h"

namespace tocsin::routing {

/// Nothing here is stored: after a start the next report of each issue is read whole.
class Repeats {
 public:
  /// null: its next report is to be read whole.
  [[nodiscard]] IssueState* find(const Outline& outline) const;
  /// The state is what a report of this outline made of it. It stays where it is until forget().
  void remember(IssueState& state, const Outline& outline);
  /// What was remembered of this issue, if anything was.
  void forget(IssueState& state);
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  struct Slot {
    Outline outline{};
    IssueState* state = nullptr;  // null: free
  };

  [[nodiscard]] std::size_t place_of(std::uint64_t low) const noexcept {
    return low & (slots_.size() - 1);
  }
  [[nodiscard]] std::size_t next(std::size_t at) const noexcept {
    return (at + 1) & (slots_.size() - 1);
  }
  void put(const Slot& one);
  void close_gap(std::size_t gap);
  void grow();

  std::vector<Slot> slots_;  // a power of two, at least a quarter of them free
  std::size_t size_ = 0;
};

}  // namespace tocsin::routing
