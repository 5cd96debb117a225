// Rows that wait for a commit, of all series in the order in which they came: one costs no allocation.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "insights/series/column_codec.h"

namespace tocsin::insights {

class WaitingRows {
 public:
  /// Those of one series.
  struct Chain {
    std::size_t newest = std::numeric_limits<std::size_t>::max();
    std::size_t rows = 0;
  };

  void add(Chain& chain, std::int64_t x, std::span<const double> values) {
    const std::size_t at = words_.size();
    words_.push_back(chain.newest);
    words_.push_back(static_cast<std::uint64_t>(x));
    for (const double value : values) words_.push_back(std::bit_cast<std::uint64_t>(value));
    chain.newest = at;
    ++chain.rows;
    ++rows_;
  }

  /// `into` is the chain's rows, the oldest first; it has as many columns as these have.
  void copy(const Chain& chain, SeriesRows& into) const {
    into.x.resize(chain.rows);
    for (auto& column : into.columns) column.resize(chain.rows);
    std::size_t at = chain.newest;
    for (std::size_t row = chain.rows; row-- > 0; at = words_[at]) {
      into.x[row] = static_cast<std::int64_t>(words_[at + 1]);
      const std::uint64_t* value = words_.data() + at + 2;
      for (auto& column : into.columns) column[row] = std::bit_cast<double>(*value++);
    }
  }

  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return words_.size() * sizeof words_[0]; }
  /// Chains that are not empty are none any more.
  void clear() {
    rows_ = 0;
    words_.clear();
    if (words_.capacity() > kKeptWords) words_ = {};
  }

 private:
  static constexpr std::size_t kKeptWords = std::size_t{1}
                                            << 17U;  // 1 MiB: a commit of what comes live

  std::vector<std::uint64_t>
      words_;  // of a row: where the one before of its chain is, x, its values
  std::size_t rows_ = 0;
};

}  // namespace tocsin::insights
