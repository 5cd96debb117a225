// Section `capture.raw`: where raw tensors go, and how much of them (docs/raw-tensors.md).
#pragma once

#include <cstdint>
#include <string>

#include "config/config.h"

namespace tocsin::hook {

struct RawConfig {
  static constexpr std::uint64_t kLeastChunk = 4ULL << 10;
  static constexpr std::uint64_t kMostChunk = 768ULL
                                              << 10;  // with its names below a record's limit

  std::string to = "topic";  // that, a directory, or s3://bucket/prefix
  std::string endpoint;      // of the store; empty: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, Amazon
  std::string region;        // empty: AWS_REGION, AWS_DEFAULT_REGION, us-east-1
  std::uint64_t max_bytes = 64ULL << 20;  // of one step, of one process
  std::uint64_t chunk = 512ULL << 10;
  std::uint64_t queue = 128ULL << 20;  // memory for what waits to be sent
  bool on_request = true;              // rules may ask for elements, by command

  [[nodiscard]] bool on_topic() const { return to == "topic"; }
  [[nodiscard]] bool in_store() const { return to.starts_with("s3://"); }
};
void read(config::Reader& in, RawConfig& cfg);

}  // namespace tocsin::hook
