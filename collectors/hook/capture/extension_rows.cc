#include "collectors/hook/capture/extension_rows.h"

#include <algorithm>
#include <cstring>

namespace tocsin::hook {

ExtensionRows::Column& ExtensionRows::column(core::SparseStat stat, Numbers parameters) {
  const auto at = std::find_if(columns_.begin(), columns_.end(), [&](const Column& one) {
    return one.stat == stat && std::ranges::equal(one.parameters, parameters);
  });
  if (at != columns_.end()) return *at;
  const auto place = std::find_if(columns_.begin(), columns_.end(),
                                  [&](const Column& one) { return one.stat > stat; });
  return *columns_.insert(place, {stat, {parameters.begin(), parameters.end()}, {}, {}});
}

void ExtensionRows::bits(core::SparseStat stat, std::uint64_t bits, Numbers parameters) {
  Column& all = column(stat, parameters);
  if (!all.rows.empty() && all.rows.back() == row_) return;  // two requests have it in common
  all.rows.push_back(row_);
  all.bits.push_back(bits);
  bytes_ += sizeof(std::uint32_t) + sizeof(std::uint64_t);
}

void ExtensionRows::vector(core::VectorStat stat, Numbers values, Numbers parameters) {
  vectors_.push_back(
      {stat, row_, {parameters.begin(), parameters.end()}, {values.begin(), values.end()}});
  bytes_ += 24 + 8 * (values.size() + parameters.size());
}

void ExtensionRows::histogram(const collectors::ExponentialHistogram& histogram) {
  histograms_.push_back({row_, histogram});
  bytes_ += 32 + 8 * (histogram.positive.size() + histogram.negative.size());
}

void ExtensionRows::write(ingest::FrameWriter& writer) {
  for (Column& one : columns_) {
    if (one.rows.empty()) continue;
    if (one.parameters.empty()) {
      writer.sparse_bits(one.stat, one.rows, one.bits);
    } else {
      std::vector<double> values(one.bits.size());
      std::memcpy(values.data(), one.bits.data(), values.size() * sizeof(double));
      writer.sparse_column(one.stat, one.parameters, one.rows, values);
    }
    one.rows.clear();
    one.bits.clear();
  }
  for (const Vector& one : vectors_) {
    writer.vector(static_cast<std::uint16_t>(one.stat), one.row, one.parameters, one.values);
  }
  for (const Histogram& one : histograms_) {
    writer.histogram(one.row, one.counts.positive_offset, one.counts.positive,
                     one.counts.negative_offset, one.counts.negative);
  }
  vectors_.clear();
  histograms_.clear();
  bytes_ = 0;
}

}  // namespace tocsin::hook
