#include "insights/series/histogram_query.h"

#include <algorithm>

#include "insights/series/step_grid.h"

namespace tocsin::insights {
namespace {

constexpr std::size_t kMostTensorsAdded = 500;
constexpr std::int64_t kMostHistogramsRead = 50'000;

void coarsen_all(std::vector<HistogramColumn>& columns, int scale) {
  for (HistogramColumn& one : columns) one.counts.coarsen_to(scale);
}

// The buckets that any column has, in either sign.
void set_bins(HistogramAnswer& out) {
  out.positive = out.negative = false;
  out.first = out.end = 0;
  for (const HistogramColumn& column : out.columns) {
    const bool none = !out.positive && !out.negative;
    for (const MagnitudeCounts* of : {&column.counts.positive, &column.counts.negative}) {
      if (of->empty()) continue;
      const bool fresh = none && !out.positive && !out.negative;
      out.first = fresh ? of->first : std::min(out.first, of->first);
      out.end = fresh ? of->end() : std::max(out.end, of->end());
      (of == &column.counts.positive ? out.positive : out.negative) = true;
    }
  }
}

std::int64_t bins_of(const HistogramAnswer& of) {
  return (of.end - of.first) * ((of.positive ? 1 : 0) + (of.negative ? 1 : 0)) + 1;
}

void add_histogram_of(HistogramColumn& into, const ExponentialCounts& counts) {
  if (into.histograms++ == 0) {
    into.counts = counts;
    return;
  }
  into.counts.add(counts);
  while (std::max(into.counts.positive.counts.size(), into.counts.negative.counts.size()) >
         kMostBuckets)
    into.counts.coarsen_to(into.counts.scale - 1);
}

}  // namespace

core::Result<HistogramAnswer> ask_histogram(SeriesReader& reader, const HistogramAsk& ask) {
  auto chosen = choose_tensors(reader, ask.of);
  if (!chosen) return chosen.error();
  HistogramAnswer out;
  out.mode = chosen->mode;
  out.modes = chosen->modes;
  out.tensors = static_cast<std::int64_t>(chosen->tensors.size());
  out.gone = reader.histograms_gone(ask.of.run);
  if (chosen->tensors.size() > kMostTensorsAdded) {
    out.left_out = out.tensors - static_cast<std::int64_t>(kMostTensorsAdded);
    chosen->tensors.resize(kMostTensorsAdded);
  }
  const StepGrid grid = grid_of_steps({ask.from, ask.to, ask.columns}, chosen->tensors);
  out.level = grid.level;
  out.from = grid.from;
  out.to = grid.to;
  out.columns.resize(grid.columns());
  std::vector<Stretch> parts;
  for (const NamedFamilies& one : chosen->tensors) {
    for (Stretch& part : stretches(one.families)) {
      if (!part.superseded) parts.push_back(std::move(part));
    }
  }
  const auto cells = static_cast<std::int64_t>(std::max<std::size_t>(1, parts.size()) *
                                               std::max<std::size_t>(1, grid.columns()));
  const std::int64_t most = std::max<std::int64_t>(1, kMostHistogramsRead / cells);
  for (const Stretch& part : parts) {
    const std::int64_t lo = std::max(part.lo, grid.from);
    const std::int64_t hi = std::min(part.hi, grid.to);
    const bool whole = reader.histograms(
        part.family, {lo, hi, grid.width(), most},
        [&](std::int64_t x, const ExponentialCounts& counts) {
          add_histogram_of(out.columns[static_cast<std::size_t>((x - grid.from) >> grid.level)],
                           counts);
        });
    out.thinned = out.thinned || !whole;
  }
  for (const HistogramColumn& one : out.columns) out.scale = std::min(out.scale, one.counts.scale);
  coarsen_all(out.columns, out.scale);
  set_bins(out);
  while (bins_of(out) > ask.rows && out.scale > ExponentialCounts::kCoarsest) {
    coarsen_all(out.columns, --out.scale);
    set_bins(out);
  }
  return out;
}

}  // namespace tocsin::insights
