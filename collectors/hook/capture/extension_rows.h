// What waits for a summary frame beyond the columns of its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectors/collectors.h"
#include "core/frame.h"
#include "ingest/ingest.h"

namespace tocsin::hook {

/// Takes the statistics of one row after the other. Not thread-safe.
class ExtensionRows final : public collectors::StatisticSink {
 public:
  /// What comes from here on belongs to this row; rows ascend.
  void begin(std::uint32_t row) {
    row_ = row;
    approximate_ = false;
  }

  void bits(core::SparseStat stat, std::uint64_t bits, Numbers parameters) override;
  void vector(core::VectorStat stat, Numbers values, Numbers parameters) override;
  void histogram(const collectors::ExponentialHistogram& histogram) override;
  void approximate() override { approximate_ = true; }

  /// Whether something of the present row is.
  [[nodiscard]] bool is_approximate() const noexcept { return approximate_; }
  /// What it will add to the frame, about.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// Adds all to the frame that the writer has begun, and forgets it.
  void write(ingest::FrameWriter& writer);

 private:
  struct Column {
    core::SparseStat stat{};
    std::vector<double> parameters;
    std::vector<std::uint32_t> rows;
    std::vector<std::uint64_t> bits;
  };
  struct Vector {
    core::VectorStat stat{};
    std::uint32_t row = 0;
    std::vector<double> parameters;
    std::vector<double> values;
  };
  struct Histogram {
    std::uint32_t row = 0;
    collectors::ExponentialHistogram counts;
  };
  Column& column(core::SparseStat stat, Numbers parameters);

  std::vector<Column> columns_;  // by statistic; grows to those that are given
  std::vector<Vector> vectors_;
  std::vector<Histogram> histograms_;
  std::uint32_t row_ = 0;
  bool approximate_ = false;
  std::size_t bytes_ = 0;
};

}  // namespace tocsin::hook
