// Which of the latest steps had a point: one bit each, the newest step's first. Of a window of the last N
// steps nothing else is asked of a step, and a point that had to make room lies behind the window: in
// place of two numbers per point, its step and its time, there is a bit.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace tocsin::rules::declared {

/// Borrows the words of a unit's memory; `capacity`: steps that are remembered.
template <typename Word>
class MarksOf {
 public:
  static constexpr std::uint32_t kBits = 64;
  static constexpr std::uint32_t words(std::uint32_t capacity) {
    return (capacity + kBits - 1) / kBits;
  }

  MarksOf(Word* at, std::uint32_t capacity) noexcept : at_(at), capacity_(capacity) {}

  /// The newest step is so many behind the one before; of a first point any number.
  void add(std::uint64_t steps) noexcept {
    if (capacity_ <= kBits) {  // as most are
      at_[0] =
          ((steps < kBits ? at_[0] << steps : 0) | 1) & (~std::uint64_t{0} >> (kBits - capacity_));
      return;
    }
    shift(std::min<std::uint64_t>(steps, capacity_));
    at_[0] |= 1;
    if (capacity_ % kBits != 0)
      at_[words(capacity_) - 1] &= (std::uint64_t{1} << capacity_ % kBits) - 1;
  }
  /// Points among the steps that are `from` to `to` behind the newest one, `to` exclusive.
  [[nodiscard]] std::uint64_t count(std::uint32_t from, std::uint32_t to) const noexcept {
    std::uint64_t points = 0;
    for (std::uint32_t word = from / kBits; word < words(to); ++word) {
      points += static_cast<std::uint64_t>(std::popcount(within(word, from, to)));
    }
    return points;
  }
  /// How far the oldest of them is behind; there is one.
  [[nodiscard]] std::uint32_t oldest(std::uint32_t from, std::uint32_t to) const noexcept {
    std::uint32_t word = words(to) - 1;
    while (word > from / kBits && within(word, from, to) == 0) --word;
    return word * kBits + kBits - 1 -
           static_cast<std::uint32_t>(std::countl_zero(within(word, from, to)));
  }
  /// Calls visit(how far behind) for each of them, the oldest first.
  template <typename Visit>
  void each(std::uint32_t from, std::uint32_t to, Visit visit) const {
    for (std::uint32_t word = words(to); word-- > from / kBits;) {
      for (std::uint64_t left = within(word, from, to); left != 0;) {
        const auto bit = kBits - 1 - static_cast<std::uint32_t>(std::countl_zero(left));
        visit(word * kBits + bit);
        left ^= std::uint64_t{1} << bit;
      }
    }
  }

 private:
  [[nodiscard]] std::uint64_t within(std::uint32_t word, std::uint32_t from,
                                     std::uint32_t to) const noexcept {
    std::uint64_t bits = at_[word];
    const std::uint32_t first = word * kBits;
    if (from > first) bits &= ~std::uint64_t{0} << (from - first);
    if (to < first + kBits) bits &= ~std::uint64_t{0} >> (first + kBits - to);
    return bits;
  }
  void shift(std::uint64_t steps) noexcept {
    const std::uint32_t all = words(capacity_);
    const auto whole = static_cast<std::uint32_t>(steps / kBits);
    const auto part = static_cast<std::uint32_t>(steps % kBits);
    for (std::uint32_t i = all; i-- > 0;) {
      std::uint64_t bits = i >= whole ? at_[i - whole] << part : 0;
      if (part != 0 && i > whole) bits |= at_[i - whole - 1] >> (kBits - part);
      at_[i] = bits;
    }
  }

  Word* at_;
  std::uint32_t capacity_;
};

using Marks = MarksOf<std::uint64_t>;
using MarksSeen = MarksOf<const std::uint64_t>;

}  // namespace tocsin::rules::declared
