// What could not be delivered when the training ended, kept in a directory for `tocsin sync`.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "core/record.h"
#include "core/record_publisher.h"
#include "core/result.h"

namespace tocsin::app::client {

/// Copies of records that a publisher has taken and not confirmed. Beyond the bound the oldest go:
/// they are the likeliest to have arrived. Lives on one thread.
class Unconfirmed {
 public:
  static constexpr std::uint64_t kMostBytes = 16ULL << 20;

  void keep(const core::OutRecord& record);
  void confirmed();
  /// Oldest first; empties it.
  std::deque<core::OutRecord> take();

 private:
  std::deque<core::OutRecord> records_;
  std::uint64_t bytes_ = 0;
};

/// One directory of one client, a journal like any other. Lives on one thread.
class Spool {
 public:
  using Open = std::function<core::Result<std::unique_ptr<core::RecordPublisher>>()>;

  /// Makes nothing until the first record. `open` may block.
  Spool(std::string directory, Open open);
  /// False: there is no room, or the directory cannot be written (trouble() says why).
  bool add(const core::OutRecord& record);
  /// What was added is on the disk; false: not in time.
  bool flush(std::chrono::milliseconds timeout);
  /// Of topic telemetry: acks of a run that is over concern nobody.
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
  [[nodiscard]] const std::string& directory() const noexcept { return directory_; }
  [[nodiscard]] const std::string& trouble() const noexcept { return trouble_; }

 private:
  const std::string directory_;
  Open open_;
  std::unique_ptr<core::RecordPublisher> publisher_;
  std::uint64_t records_ = 0;
  std::string trouble_;
};

}  // namespace tocsin::app::client
