// What cpu_bottleneck and io_bottleneck share: the share of snapshots in which a GPU waits while
// something else is at its limit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "rules/evaluate/horizon.h"
#include "rules/evaluate/sample.h"

namespace tocsin::rules {

struct BottleneckConfig : SampleConfig {
  double threshold = 50;      // percent of snapshots
  double gpu_threshold = 10;  // percent
  double limit = 90;          // percent, of what is at its limit
  Horizon horizon{1000, 0, {}};
};

inline void read_bottleneck(config::Reader& in, BottleneckConfig& cfg) {
  in.optional("threshold", cfg.threshold, config::between(0.0, 100.0),
              "largest percentage of snapshots that are bottlenecks");
  in.optional("gpu_threshold", cfg.gpu_threshold, config::between(0.0, 100.0),
              "a GPU waits below this percentage of use");
  read_patience(in, cfg.horizon);
  read_scan_interval(in, cfg);
  read_window(in, cfg.horizon, 0);
}

/// Of one node.
class Bottleneck {
 public:
  static constexpr std::uint32_t kGpu = 1;
  static constexpr std::uint32_t kOther = 2;
  static constexpr std::uint32_t kBoth = kGpu | kOther;

  /// `present` devices of the other kind in the snapshot, of which `beyond` are at their limit.
  std::uint32_t observe(const BottleneckConfig& cfg, const NodeSnapshot& snapshot,
                        std::size_t present, std::uint32_t beyond) {
    const auto gpus = snapshot.of(Metric::gpu);
    const std::uint32_t seen = (gpus.empty() ? 0 : kGpu) | (present == 0 ? 0 : kOther);
    if (seen != kBoth) return seen;
    if (snapshots_ == 0) first_time_ = snapshot.time;
    last_time_ = snapshot.time;
    const auto low =
        static_cast<std::uint32_t>(std::count_if(gpus.begin(), gpus.end(), [&](const Reading& gpu) {
          return gpu.value < cfg.gpu_threshold;
        }));
    const bool here = low > 0 && beyond > 0;
    if (low > 0) ++low_gpu_;
    if (here) {
      gpus_ = std::max(gpus_, low);
      others_ = std::max(others_, beyond);
      active_.moment(snapshot.time);
    }
    push(cfg.horizon.window, here);
    ++snapshots_;
    return seen;
  }

  [[nodiscard]] Verdict judge(const BottleneckConfig& cfg) const {
    if (snapshots_ == 0) return kNotApplicable;
    if (!cfg.horizon.enough(snapshots_, first_time_, last_time_)) return kInsufficient;
    return share(cfg) > cfg.threshold ? hit() : kOk;
  }

  [[nodiscard]] std::uint64_t judged(const BottleneckConfig& cfg) const {
    return cfg.horizon.window == 0 ? snapshots_
                                   : std::min<std::uint64_t>(snapshots_, cfg.horizon.window);
  }
  [[nodiscard]] double share(const BottleneckConfig& cfg) const {
    return 100.0 * static_cast<double>(bottlenecks_) / static_cast<double>(judged(cfg));
  }
  [[nodiscard]] ActiveSpans& active() noexcept { return active_; }
  [[nodiscard]] Finding finding(const BottleneckConfig& cfg, const Scope& scope) const {
    Finding out = Finding::that("bottleneck_percent", share(cfg));
    out.is(">", "threshold", cfg.threshold)
        .with("bottlenecks", bottlenecks_)
        .with("snapshots", judged(cfg))
        .with("snapshots_with_low_gpu", low_gpu_)
        .with("gpus", std::uint64_t{gpus_})
        .with("cores", std::uint64_t{others_});
    out.points = judged(cfg);
    active_.tell(scope, out);
    return out;
  }

  template <typename A>
  friend void io(A& a, Bottleneck& b) {
    io_all(a, b.snapshots_, b.bottlenecks_, b.low_gpu_, b.first_time_, b.last_time_, b.gpus_,
           b.others_, b.window_, b.active_);
  }

 private:
  void push(std::uint32_t window, bool here) {
    if (window != 0) {
      window_.resize(window);
      std::uint8_t& cell = window_[snapshots_ % window];
      bottlenecks_ -= cell;
      cell = here ? 1 : 0;
    }
    if (here) ++bottlenecks_;
  }

  std::uint64_t snapshots_ = 0;
  std::uint64_t bottlenecks_ = 0;  // in the window, or of all
  std::uint64_t low_gpu_ = 0;
  std::int64_t first_time_ = 0;
  std::int64_t last_time_ = 0;
  std::uint32_t gpus_ = 0;    // most GPUs below the limit in one bottleneck
  std::uint32_t others_ = 0;  // most of the others beyond theirs
  std::vector<std::uint8_t> window_;
  ActiveSpans active_;  // at the bottlenecks since the start
};

}  // namespace tocsin::rules
