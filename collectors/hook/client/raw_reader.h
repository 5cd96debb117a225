// Raw tensors read back: from the topic, or from where it says that they lie.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collectors/hook/client/raw_endpoint.h"
#include "core/codes.h"
#include "core/frame.h"
#include "core/result.h"
#include "core/value.h"
#include "ingest/ingest.h"

namespace tocsin::hook {

struct RawQuery {
  std::uint64_t name = 0;    // hash
  std::uint64_t worker = 0;  // hash of its name; 0: the first that has it
  core::Mode mode = core::Mode::train;
  std::int64_t step = 0;  // of the mode
};

struct RawValue {
  core::Dtype dtype = core::Dtype::unknown;
  std::vector<std::int64_t> dims;
  std::vector<std::byte> data;  // row major
  std::uint64_t meta = 0;
  std::int64_t step = 0;
  std::int64_t global_step = 0;
};

/// Keeps where each tensor lies, not what it holds. Not thread-safe.
class RawReader {
 public:
  static constexpr std::size_t kMostTensors = 200'000;  // that are known; the oldest are forgotten

  /// `raw`: how to reach a store that references name.
  RawReader(TensorSource source, core::RunUid run, RawConfig raw);

  /// The newest tensor of this name, worker and step. Waits at most `timeout` for it to come.
  /// Errors: not_found (it did not come; the message says what is missing of it), data_loss
  /// (chunks that contradict each other, or that are gone), those of the source and of the store.
  core::Result<RawValue> read(const RawQuery& query, std::chrono::milliseconds timeout);

  /// {records_total, tensors, duplicates_total, contradicting_total, refused_total {code: n}}
  [[nodiscard]] core::ValueMap counters() const;

 private:
  struct Key {
    std::uint64_t name = 0;
    core::Mode mode{};
    std::int64_t step = 0;
    std::uint64_t worker = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  /// Which measurement of a step: a later launch, or a later publication, takes the place.
  struct Version {
    std::uint32_t attempt = 0;
    std::uint64_t incarnation = 0;
    std::int64_t time = 0;
    friend auto operator<=>(const Version&, const Version&) = default;
  };
  struct Entry {
    Version version;
    std::int64_t global_step = 0;
    std::uint64_t meta = 0;
    std::uint32_t chunks = 0;
    std::vector<bool> seen;
    std::uint32_t count = 0;  // of those seen
    std::int64_t first = 0;   // offsets of the records
    std::int64_t last = 0;
    std::string uri;  // not empty: elsewhere
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;

    [[nodiscard]] bool whole() const { return !uri.empty() || (chunks > 0 && count == chunks); }
  };

  core::Status poll(std::chrono::milliseconds timeout);
  void take(const core::RecordView& record);
  void note(const core::FrameView& frame, const ingest::TensorChunk& chunk, std::int64_t offset);
  [[nodiscard]] const Entry* find(const RawQuery& query, Key& found) const;
  core::Result<RawValue> from_topic(const Key& key, const Entry& entry);
  core::Result<RawValue> from_object(const Key& key, const Entry& entry);
  static core::Result<RawValue> value_of(const ingest::TensorAssembly& parts, const Entry& entry);
  bool assemble(const core::FrameView& frame, const Key& key, const Version& version,
                ingest::TensorAssembly& parts);

  TensorSource source_;
  const core::RunUid run_;
  const RawConfig raw_;
  std::map<Key, Entry> entries_;
  std::deque<Key> order_;  // of their coming
  core::StreamPartition where_;
  std::int64_t next_ = 0;  // offset behind what was looked at
  std::map<std::string, std::unique_ptr<BlobStore>> stores_;
  std::uint64_t records_ = 0;
  std::uint64_t duplicates_ = 0;
  std::uint64_t contradicting_ = 0;
  std::map<std::string, std::uint64_t> refused_;
};

}  // namespace tocsin::hook
