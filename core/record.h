// One record of a topic, as read (borrowed) and as written (owned), and where a reader stands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tocsin::core {

/// Where a reader is: stream = topic; on the journal there is one partition, 0.
struct StreamPartition {
  std::string stream;
  std::int32_t partition = 0;
  friend auto operator<=>(const StreamPartition&, const StreamPartition&) = default;
};

struct Position {
  StreamPartition where;
  std::int64_t next = 0;  // Kafka offset or journal sequence of the record to read next
  friend auto operator<=>(const Position&, const Position&) = default;
};

/// A record being read. Everything borrowed is valid only inside the handler it is passed to.
struct RecordView {
  std::string_view topic;   // name without prefix and version: "telemetry", "issues", …
  std::string_view stream;  // see StreamPartition
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  std::int64_t timestamp = 0;  // UTC nanoseconds (Kafka: milliseconds · 10⁶)
  std::optional<std::string_view> key;
  std::span<const std::byte> value;
  bool tombstone = false;  // null value

  /// Headers are parsed only when asked for. Set by the adapter that made the view.
  using HeaderLookup = std::optional<std::string_view> (*)(const void* native,
                                                           std::string_view name);
  const void* native = nullptr;
  HeaderLookup find_header = nullptr;

  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const {
    return find_header == nullptr ? std::nullopt : find_header(native, name);
  }
  [[nodiscard]] std::string_view text() const {
    return {reinterpret_cast<const char*>(value.data()), value.size()};
  }
};

/// A record to be written. The adapter adds prefix and version to the topic's short name.
struct OutRecord {
  std::string topic;  // short name
  std::string key;
  std::optional<std::string> value;  // nullopt = tombstone
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::int64_t timestamp = 0;                  // UTC ns; 0 = now
  std::string partition_key = {};              // what the partition is computed from; empty = key
  std::optional<std::int32_t> partition = {};  // explicit; wins over partition_key
};

}  // namespace tocsin::core
