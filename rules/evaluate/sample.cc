#include "rules/evaluate/sample.h"

#include <limits>

namespace tocsin::rules {

void read_scan_interval(config::Reader& in, SampleConfig& config) {
  std::int64_t microseconds = 60'000'000;
  in.optional("scan_interval_us", microseconds,
              config::between(std::int64_t{1}, std::int64_t{86'400'000'000}),
              "time between two evaluations, in microseconds of event time");
  config.scan_interval = std::chrono::microseconds(microseconds);
}

void SampleReport::evaluated(std::string_view device, Verdict verdict, Explain explain) {
  const auto labels = [&]() -> Labels {
    Labels out{{"node", std::string(node_)}};
    if (!device.empty()) out.emplace_back("device", device);
    return out;
  };
  Subject subject;
  subject.name = node_;
  scope_.judged(unit_number({std::to_string(number_), device}), Scope::kNoWorker, verdict, place_,
                subject, labels, explain);
}

std::int64_t interval_end(std::int64_t time, core::Duration period) noexcept {
  std::int64_t number = time / period.count();
  if (time % period.count() < 0) --number;
  std::int64_t end = 0;
  return __builtin_mul_overflow(number + 1, period.count(), &end)
             ? std::numeric_limits<std::int64_t>::max()
             : end;
}

}  // namespace tocsin::rules
