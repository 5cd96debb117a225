#include "collectors/hook/capture/raw_config.h"

#include <algorithm>

namespace tocsin::hook {
namespace {

// Characters that mean themselves in a path, so that nothing needs an escape that a signature could
// see otherwise than a server.
bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._~/").find(c) != std::string_view::npos;
  });
}

bool is_destination(const std::string& to) {
  if (to.empty()) return false;
  if (!to.starts_with("s3://")) return to.find("://") == std::string::npos;
  const std::string_view place = std::string_view(to).substr(5);
  return !place.empty() && place.front() != '/' && is_plain(place);
}

bool is_endpoint(const std::string& text) {
  return text.empty() || text.starts_with("https://") || text.starts_with("http://");
}

}  // namespace

void read(config::Reader& in, RawConfig& cfg) {
  config::Check<std::string> destination;
  destination.ok = is_destination;
  destination.expected = "topic, a directory, or s3://bucket/prefix of letters, digits and -._~/";
  in.optional("to", cfg.to, destination,
              "where elements go: topic (the topic `tensors`), a directory, or s3://bucket/prefix");
  config::Check<std::string> endpoint;
  endpoint.ok = is_endpoint;
  endpoint.expected = "https://host[:port]";
  in.optional(
      "endpoint", cfg.endpoint, endpoint,
      "of an S3-compatible store; default: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, Amazon's");
  in.optional("region", cfg.region,
              "of the store; default: AWS_REGION, AWS_DEFAULT_REGION, us-east-1");
  const auto size = [&](std::string_view key, std::uint64_t& out, std::uint64_t least,
                        std::uint64_t most, std::string_view range, std::string_view help) {
    config::Bytes bytes{out};
    config::Check<config::Bytes> check;
    check.ok = [least, most](const config::Bytes& given) {
      return given.count >= least && given.count <= most;
    };
    check.expected = range;
    in.optional(key, bytes, check, help);
    out = bytes.count;
  };
  constexpr std::uint64_t kMost = 1ULL << 40;
  size("max_bytes", cfg.max_bytes, 1, kMost, "1 B … 1 TiB",
       "most of one step, of one process; what is beyond it is skipped and counted");
  size("chunk", cfg.chunk, RawConfig::kLeastChunk, RawConfig::kMostChunk, "4KiB … 768KiB",
       "bytes of a tensor in one record");
  size("queue", cfg.queue, 1ULL << 20, kMost, "1MiB … 1TiB",
       "memory for tensors that wait to be sent; what finds no room is dropped and counted");
  in.optional("on_request", cfg.on_request,
              "rules may ask for elements of a collection; false: they are refused them");
}

}  // namespace tocsin::hook
