// What the broker does not take, on the disk, until it does: a journal like any other, which also
// `tocsin sync` can send.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/function_ref.h"
#include "core/record.h"
#include "core/record_publisher.h"
#include "core/record_source.h"
#include "core/result.h"

namespace tocsin::hook {

/// Copies of records that a publisher has taken and not confirmed. Beyond the bound the oldest go:
/// they are the likeliest to have arrived. Lives on one thread.
class Unconfirmed {
 public:
  static constexpr std::uint64_t kMostBytes = 24ULL << 20;  // more than a publisher may hold

  void keep(const core::OutRecord& record);
  void confirmed();
  /// Oldest first; empties it.
  std::deque<core::OutRecord> take();

 private:
  std::deque<core::OutRecord> records_;
  std::uint64_t bytes_ = 0;
};

/// Where a spool lies. All functions may block; without `write` there is none.
struct SpoolPlace {
  static constexpr std::uint64_t kMostBytes = 1ULL << 30;

  std::string directory;
  std::function<core::Result<std::unique_ptr<core::RecordPublisher>>()> write;
  /// All of its telemetry, from the beginning.
  std::function<core::Result<std::unique_ptr<core::RecordSource>>()> read;
  /// Takes it away. What `write` and `read` have given is gone before.
  std::function<void()> remove;
  std::uint64_t most_bytes = kMostBytes;
};

/// One directory of one client: records wait there in their order, are published from there, and
/// when all of them are confirmed it is gone. Lives on one thread, but for the counters.
class Spool {
 public:
  using Publish = core::FunctionRef<core::Status(const core::OutRecord&)>;

  /// Makes nothing until the first record.
  explicit Spool(SpoolPlace place);

  [[nodiscard]] bool there() const noexcept { return place_.write != nullptr; }
  /// Appends, a frame with the flag "from a spool". False: there is no room, or the directory cannot
  /// be written (trouble() says why); then nothing more is taken.
  bool add(const core::OutRecord& record);
  /// What was added is on the disk; false: not in time.
  bool flush(std::chrono::milliseconds timeout);

  /// Hands out what waits, oldest first, until `publish` refuses. True: nothing is left to hand out.
  /// Errors: those of the directory.
  core::Result<bool> replay(Publish publish);
  /// What was handed out is confirmed. The directory goes when that was everything.
  void confirmed();
  /// What was handed out since is to be handed out again. How many records that are.
  std::uint64_t rewind();
  /// The directory cannot be read: it stays as it is. How many records stay with it.
  std::uint64_t abandon();
  /// Nothing more is added or handed out; what waits stays on the disk, and in waiting().
  void release();

  /// Added and not confirmed. Any thread, as the next two.
  [[nodiscard]] std::uint64_t waiting() const noexcept { return added_ - confirmed_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint64_t added_ever() const noexcept { return added_ever_; }
  [[nodiscard]] const std::string& directory() const noexcept { return place_.directory; }
  [[nodiscard]] const std::string& trouble() const noexcept { return trouble_; }

 private:
  void forget();

  SpoolPlace place_;
  std::unique_ptr<core::RecordPublisher> publisher_;
  std::unique_ptr<core::RecordSource> source_;
  std::atomic<std::uint64_t> added_{0};
  std::atomic<std::uint64_t> confirmed_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> added_ever_{0};
  std::uint64_t handed_out_ = 0;
  std::int64_t next_ = 0;            // offset behind what was handed out
  std::int64_t confirmed_next_ = 0;  // and confirmed
  std::string trouble_;
};

}  // namespace tocsin::hook
