// The telemetry that bench/pipeline_kafka reads: several healthy runs, frame by frame, the same at every
// call.
#pragma once

#include <cstdint>
#include <string>

#include "core/value.h"
#include "ingest/ingest.h"

namespace tocsin::bench {

/// What a topic holds, and how its producer lays it out.
struct FeedOf {
  std::string name;
  int rows = 100;     // per frame
  int tensors = 500;  // per step of a run
  int steps = 2000;
  core::ValueMap producer = {};  // librdkafka properties beside ours

  static constexpr int kRuns = 8;
  [[nodiscard]] std::uint64_t total_rows() const {
    return std::uint64_t{kRuns} * static_cast<std::uint64_t>(steps * tensors);
  }
  [[nodiscard]] std::uint64_t total_records() const {
    return total_rows() / static_cast<std::uint64_t>(rows) +
           std::uint64_t{kRuns} * static_cast<std::uint64_t>(steps);  // their step-ends
  }
};

/// Exits with a message when the broker does not take them.
void feed(const FeedOf& what, const std::string& bootstrap, const ingest::TopicsConfig& topics);

/// A transport on the broker, its topics made. Exits with a message when it cannot be opened.
std::unique_ptr<ingest::Transport> open_topics(const std::string& bootstrap,
                                               const ingest::TopicsConfig& topics,
                                               core::ValueMap producer = {});

}  // namespace tocsin::bench
