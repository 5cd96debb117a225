// How long is left: librdkafka takes time-outs, we promise deadlines.
#pragma once

#include <algorithm>
#include <chrono>

namespace tocsin::ingest {

/// Asking a cluster what topics and partitions it has.
inline constexpr std::chrono::milliseconds kMetadataTimeout{5'000};

inline std::chrono::steady_clock::time_point deadline_in(std::chrono::milliseconds wait) {
  return std::chrono::steady_clock::now() + wait;
}

/// Never negative.
inline std::chrono::milliseconds left_until(std::chrono::steady_clock::time_point deadline) {
  return std::max(std::chrono::milliseconds{0},
                  std::chrono::duration_cast<std::chrono::milliseconds>(
                      deadline - std::chrono::steady_clock::now()));
}

/// The same as librdkafka's functions take it.
inline int ms_until(std::chrono::steady_clock::time_point deadline) {
  return static_cast<int>(left_until(deadline).count());
}

}  // namespace tocsin::ingest
