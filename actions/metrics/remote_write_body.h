// The bytes of Prometheus remote write, 1.0 and 2.0. Pure. Internal to actions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actions/message/issue_series.h"

namespace tocsin::actions {

/// One series with its only sample.
struct RemoteSample {
  std::vector<std::pair<std::string, std::string>> labels;  // sorted, with __name__
  double value = 0;                                         // stale_marker(): the series has ended
  const IssueFamily* family = nullptr;
};

/// The NaN by which a series ends; it equals no number, so compare its bits.
double stale_marker();

/// One sample of each family.
void add_samples(const IssueSeries& series, bool ended, std::vector<RemoteSample>& out);

/// prometheus.WriteRequest.
std::string write_request_1(std::span<const RemoteSample> samples, std::int64_t milliseconds);
/// io.prometheus.write.v2.Request.
std::string write_request_2(std::span<const RemoteSample> samples, std::int64_t milliseconds);

/// Snappy's block format.
std::string snappy_block(const std::string& bytes);

}  // namespace tocsin::actions
