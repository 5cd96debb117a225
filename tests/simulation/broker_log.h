// One partition of the broker in memory: entries in the order of their offsets, with gaps where
// something was compacted, aborted, or where the end of a transaction stands.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>

#include "core/record_source.h"
#include "tests/simulation/broker.h"

namespace tocsin::simulation {

class Log {
 public:
  struct Entry {
    StoredRecord stored;
    std::uint64_t transaction = 0;  // 0: written outside of any
  };

  std::int64_t append(core::OutRecord record, std::int32_t partition, std::uint64_t transaction);
  /// The transaction is over: its records become visible or vanish.
  void decide(std::uint64_t transaction, bool committed, bool marker);
  void trim(std::int64_t offset);
  void compact(double share, bool tombstones);

  [[nodiscard]] std::int64_t first() const { return first_; }
  [[nodiscard]] std::int64_t end() const { return end_; }
  /// Readers of committed records see nothing from here on.
  [[nodiscard]] std::int64_t stable() const;
  /// The first readable record at `offset` or behind it.
  [[nodiscard]] std::optional<std::int64_t> first_readable(std::int64_t offset) const;
  [[nodiscard]] bool readable(std::int64_t offset) const {
    return first_readable(offset).has_value();
  }
  /// Readable records from `offset` on, until `visit` says false.
  void read(std::int64_t offset, const std::function<bool(const StoredRecord&)>& visit) const;

 private:
  [[nodiscard]] std::deque<Entry>::const_iterator at(std::int64_t offset) const;

  std::int64_t first_ = 0;
  std::int64_t end_ = 0;
  std::deque<Entry> entries_;
  std::map<std::uint64_t, std::int64_t> open_;  // transaction → its first offset here
};

/// Borrows from `stored`.
core::RecordView view_of(const StoredRecord& stored);

}  // namespace tocsin::simulation
