// What the latency benchmark puts into `telemetry`: good frames at a rate, and bad ones in between.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "core/record.h"
#include "ingest/ingest.h"

namespace tocsin::bench {

inline constexpr int kFrameRows = 100;

/// One summary frame of kFrameRows tensors; `bad`: one of them has NaN.
core::OutRecord frame_record(const core::RunUid& run, std::uint64_t sequence, bool bad);

/// Publishes good frames of one run from a thread of its own until it is destroyed.
class FrameLoad {
 public:
  /// `per_second` 0: as fast as the broker takes them.
  FrameLoad(ingest::Transport& transport, const core::RunUid& run, double per_second,
            std::uint64_t after);
  /// Ends the thread; every frame is at the broker then. Returns the last sequence number.
  std::uint64_t stop();

 private:
  void work(const std::stop_token& stop);
  ingest::Transport& transport_;
  core::RunUid run_;
  double per_second_;
  std::uint64_t after_;
  std::atomic<std::uint64_t> sent_{0};
  std::jthread thread_;
};

}  // namespace tocsin::bench
