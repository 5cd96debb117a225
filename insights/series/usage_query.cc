#include "insights/series/usage_query.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace tocsin::insights {
namespace {

struct UsageForm {
  std::string_view series, what, unit;
};
constexpr std::array<UsageForm, 7> kUsageForms{
    {{"system.cpu.busy{mean}", "total_cpu", "1"},
     {"hw.gpu.utilization{mean}", "total_gpu", "1"},
     {"system.memory.utilization{system.memory.state=used}", "cpu_memory", "1"},
     {"hw.gpu.memory.utilization{mean}", "gpu_memory", "1"},
     {"system.cpu.iowait{mean}", "io_wait", "1"},
     {"system.network.io{total}", "network", "By"},
     {"system.network.io.rate{total}", "network_rate", "By/s"}}};
constexpr std::int64_t kMostSamplesRead = 3'000'000;  // beyond it percentiles are of buckets
constexpr double kLongestHold = 60'000;  // milliseconds that one sample stands for, at most

struct UsageReading {
  WeightedValues values;
  Bucket all;
};

void add_exactly(SeriesReader& reader, const FamilyLine& family, std::int64_t lo, std::int64_t hi,
                 UsageReading& out) {
  const std::size_t begin = out.values.size();
  std::int64_t before = -1;
  reader.rows(family, lo, hi, [&](const SeriesRows& rows) {
    for (std::size_t at = 0; at < rows.size(); ++at) {
      const std::int64_t x = rows.x[at];
      const double value = rows.columns[kValueColumn][at];
      if (x < lo || x >= hi) continue;
      out.all.add(x, value);
      const double held = before < 0 ? 0 : static_cast<double>(x - before);
      before = x;
      if (std::isfinite(value)) out.values.emplace_back(value, std::min(held, kLongestHold));
    }
  });
  // Nobody knows how long the first one held: as long as the second.
  if (begin < out.values.size())
    out.values[begin].second = begin + 1 < out.values.size() ? out.values[begin + 1].second : 1;
}

UsageLine usage_of(SeriesReader& reader, const NodeSeries& node, const NamedFamilies& one,
                   const UsageForm& form, const SystemAsk& ask, bool exactly) {
  UsageLine out;
  out.node = node.node.name;
  out.what = form.what;
  out.unit = form.unit;
  const std::int64_t lo = ask.from.value_or(node.node.x_first);
  std::int64_t hi = ask.to.value_or(node.node.x_last + 1);
  if (ask.until) hi = std::min(hi, *ask.until + 1);
  UsageReading reading;
  for (const FamilyLine& family : one.families) {
    if ((exactly && family.least_level(lo) == 0) || family.k0 < 0) {
      add_exactly(reader, family, lo, hi, reading);
      continue;
    }
    const std::int64_t level = std::max(family.k0, family.least_level(lo));
    out.width = std::max(out.width, std::int64_t{1} << level);
    reader.visit_buckets(family, kValueColumn, lo, hi, level,
                         [&](std::int64_t, const Bucket& part) {
                           reading.all.append(part);
                           if (part.n > 0) reading.values.emplace_back(part.mean(), part.n);
                         });
  }
  double sum = 0;
  double weight = 0;
  for (const auto& [value, held] : reading.values) {
    sum += value * held;
    weight += held;
  }
  const std::vector<double> at = weighted_percentiles(reading.values, {50, 90, 95, 99});
  out.samples = reading.all.n;
  out.min = reading.all.n > 0 ? reading.all.min : at[0];
  out.max = reading.all.n > 0 ? reading.all.max : at[0];
  out.mean = sum / weight;
  out.p50 = at[0];
  out.p90 = at[1];
  out.p95 = at[2];
  out.p99 = at[3];
  return out;
}

}  // namespace

// The k-th value lies at the weight before it, as a share of the weight before the last one.
std::vector<double> weighted_percentiles(WeightedValues& values,
                                         const std::vector<double>& percents) {
  std::sort(values.begin(), values.end());
  std::vector<double> out(percents.size(), std::numeric_limits<double>::quiet_NaN());
  if (values.empty()) return out;
  double whole = 0;
  for (std::size_t at = 0; at + 1 < values.size(); ++at) whole += values[at].second;
  for (std::size_t which = 0; which < percents.size(); ++which) {
    const double wanted = whole * percents[which] / 100;
    double before = 0;
    std::size_t at = 0;
    while (at + 1 < values.size() && before + values[at].second <= wanted)
      before += values[at++].second;
    const bool last = at + 1 >= values.size() || values[at].second <= 0;
    const double part = last ? 0 : (wanted - before) / values[at].second;
    const double next = last ? values[at].first : values[at + 1].first;
    out[which] = values[at].first + (next - values[at].first) * part;
  }
  return out;
}

core::Result<std::vector<UsageLine>> ask_usage(SeriesReader& reader, const SystemAsk& ask) {
  SystemAsk of = ask;
  of.name = ".*";
  const auto nodes = choose_samples(reader, of);
  if (!nodes) return nodes.error();
  const auto form_of = [](const NamedFamilies& one) -> const UsageForm* {
    const auto* const found =
        std::find_if(kUsageForms.begin(), kUsageForms.end(),
                     [&](const UsageForm& form) { return form.series == one.name.text; });
    return found == kUsageForms.end() ? nullptr : found;
  };
  std::int64_t samples = 0;
  for (const NodeSeries& node : *nodes) {
    for (const NamedFamilies& one : node.series) {
      for (const FamilyLine& family : one.families) samples += form_of(one) ? family.rows : 0;
    }
  }
  std::vector<UsageLine> out;
  for (const NodeSeries& node : *nodes) {
    for (const UsageForm& form : kUsageForms) {
      for (const NamedFamilies& one : node.series) {
        if (form_of(one) != &form) continue;
        out.push_back(usage_of(reader, node, one, form, ask, samples <= kMostSamplesRead));
        if (out.back().samples == 0) out.pop_back();
      }
    }
  }
  return out;
}

}  // namespace tocsin::insights
