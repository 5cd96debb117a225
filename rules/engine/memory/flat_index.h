// Hash table from 64-bit name hashes to dense numbers: open addressing, no allocation while it does
// not grow. Keys are hashes already, so their low bits choose the place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tocsin::rules {

class FlatIndex {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFU;

  [[nodiscard]] std::uint32_t find(std::uint64_t key) const noexcept {
    if (cells_.empty()) return kNone;
    for (std::size_t at = spread(key) & mask_;; at = (at + 1) & mask_) {
      if (cells_[at].number == kNone) return kNone;
      if (cells_[at].key == key) return cells_[at].number;
    }
  }
  /// `key` must not be in the table.
  void insert(std::uint64_t key, std::uint32_t number) {
    if ((used_ + 1) * 2 > cells_.size()) grow();
    put(key, number);
    ++used_;
  }
  [[nodiscard]] std::size_t size() const noexcept { return used_; }

 private:
  struct Cell {
    std::uint64_t key = 0;
    std::uint32_t number = kNone;
  };

  // Whoever writes frames chooses the hashes: a multiplication keeps runs of neighbours apart.
  static std::size_t spread(std::uint64_t key) noexcept {
    return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15ULL) >> 20);
  }
  void put(std::uint64_t key, std::uint32_t number) {
    std::size_t at = spread(key) & mask_;
    while (cells_[at].number != kNone) at = (at + 1) & mask_;
    cells_[at] = {key, number};
  }
  void grow() {
    std::vector<Cell> old(cells_.empty() ? 16 : cells_.size() * 2);
    old.swap(cells_);
    mask_ = cells_.size() - 1;
    for (const Cell& cell : old) {
      if (cell.number != kNone) put(cell.key, cell.number);
    }
  }

  std::vector<Cell> cells_;
  std::size_t mask_ = 0;
  std::size_t used_ = 0;
};

}  // namespace tocsin::rules
