// Where each remembered event stands: a table of numbers, for a million events without an allocation of
// each.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tocsin::routing {

/// From a hash to the number of the newest event that has it. The table keeps half of the hash and half
/// of the number; whoever asks says whether an event of the table is the one that is looked for.
class SeenIndex {
 public:
  /// Room for so many.
  void reserve(std::size_t count) {
    if (2 * count > slots_.size()) grow(std::bit_ceil(2 * count));
  }
  /// The number of this hash, made `fresh` where there is none. `is_it(number)`: the event of that
  /// number has this hash.
  template <typename IsIt>
  std::uint32_t& find_or_add(std::uint64_t hash, std::uint32_t fresh, IsIt&& is_it) {
    reserve(size_ + 1);
    const std::uint32_t mark = mark_of(hash);
    std::size_t at = place_of(mark);
    for (; slots_[at].mark != 0; at = next(at)) {
      if (slots_[at].mark == mark && is_it(slots_[at].number)) return slots_[at].number;
    }
    ++size_;
    slots_[at] = {mark, fresh};
    return slots_[at].number;
  }
  /// False: there is none of this hash and number.
  bool erase(std::uint64_t hash, std::uint32_t number) {
    if (size_ == 0) return false;
    const std::uint32_t mark = mark_of(hash);
    std::size_t at = place_of(mark);
    for (; slots_[at].mark != mark || slots_[at].number != number; at = next(at)) {
      if (slots_[at].mark == 0) return false;
    }
    --size_;
    close_gap(at);
    return true;
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  struct Slot {
    std::uint32_t mark = 0;  // 0: free
    std::uint32_t number = 0;
  };

  static std::uint32_t mark_of(std::uint64_t hash) noexcept {
    const auto mark = static_cast<std::uint32_t>(hash);
    return mark == 0 ? 1 : mark;
  }
  [[nodiscard]] std::size_t place_of(std::uint32_t mark) const noexcept {
    return mark & (slots_.size() - 1);
  }
  [[nodiscard]] std::size_t next(std::size_t at) const noexcept {
    return (at + 1) & (slots_.size() - 1);
  }
  /// What stands behind moves up, so that a search never ends at a gap that was made.
  void close_gap(std::size_t gap) {
    for (std::size_t at = next(gap); slots_[at].mark != 0; at = next(at)) {
      const std::size_t wanted = place_of(slots_[at].mark);
      const std::size_t mask = slots_.size() - 1;
      if (((at - wanted) & mask) < ((at - gap) & mask)) continue;
      slots_[gap] = slots_[at];
      gap = at;
    }
    slots_[gap] = {};
  }
  void grow(std::size_t count) {
    std::vector<Slot> before(std::max<std::size_t>(count, 64));
    before.swap(slots_);
    for (const Slot& one : before) {
      if (one.mark == 0) continue;
      std::size_t at = place_of(one.mark);
      while (slots_[at].mark != 0) at = next(at);
      slots_[at] = one;
    }
  }

  std::vector<Slot> slots_;  // a power of two, at least half of them free
  std::size_t size_ = 0;
};

}  // namespace tocsin::routing
