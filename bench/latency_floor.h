// What the broker and the client library cost by themselves: the product's three links as bare
// librdkafka loops with the same guarantees and record sizes, and nothing else in them.
//   telemetry → issues           one record per bad frame and the group's offsets
//   issues → router-outbox       one record per issue and the group's offsets, one transaction
//   router-outbox → commands     a plain produce
#pragma once

#include <memory>
#include <string>

#include "bench/latency_watch.h"

namespace tocsin::bench {

struct FloorOptions {
  std::string bootstrap;
  std::string prefix;        // of the topics, which exist
  bool transactions = true;  // of the first link; else produce, flush, commit the offsets
  std::string good_key;      // records of `telemetry` with this key are no bad frames
  RecordSizes sizes;
};

/// Runs on three threads until it is destroyed. Ends the process when a client cannot be made or a
/// commit fails: a floor with a hole in it is none.
class Floor {
 public:
  explicit Floor(const FloorOptions& options);
  ~Floor();
  /// Every link has its partitions.
  [[nodiscard]] bool ready() const;

 private:
  class Link;
  std::unique_ptr<Link> links_[3];
};

}  // namespace tocsin::bench
