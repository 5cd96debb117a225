// How much of its nodes a run has used: least, percentiles and greatest over all samples.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "insights/series/system_query.h"

namespace tocsin::insights {

/// A value, and how long it held.
using WeightedValues = std::vector<std::pair<double, double>>;
/// Percentiles of values that hold for as long as their weights say, linear between them: with equal
/// weights those of NumPy. `values` get sorted. Empty: NaN.
std::vector<double> weighted_percentiles(WeightedValues& values,
                                         const std::vector<double>& percents);

struct UsageLine {
  std::string node;
  std::string what;  // total_cpu, total_gpu, cpu_memory, gpu_memory, io_wait, network
  std::string unit;  // "1": a share; "By": bytes between two samples
  std::int64_t samples = 0;
  std::int64_t width = 1;  // milliseconds of a value: more than 1, percentiles are of means
  double min = 0, mean = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0, max = 0;
};
/// In the order of the nodes. Of `ask` run, node, from and to count.
core::Result<std::vector<UsageLine>> ask_usage(SeriesReader& reader, const SystemAsk& ask);

}  // namespace tocsin::insights
