// The right to lead on a journal: a row of control.db that expires, and a lock that a dead holder
// cannot keep.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/lease.h"
#include "ingest/journal/database.h"
#include "ingest/journal/directory.h"

namespace tocsin::ingest {

/// The row says who holds the lease and until when (monotonic time, which all processes of a
/// machine share). Every holder also locks a byte of its own in lease.lock, so that whoever finds
/// that byte free knows the holder dead and need not wait for the row to expire.
class JournalLease final : public core::Lease {
 public:
  JournalLease(std::string directory, std::string name, std::function<core::Status()> prepare);
  ~JournalLease() override { release(); }

  core::Status step(core::Duration steady, std::chrono::milliseconds timeout) override;
  [[nodiscard]] std::optional<core::Duration> valid_until() const override { return valid_until_; }
  void release() override;

 private:
  core::Status open();
  core::Result<bool> take(core::Duration steady);
  [[nodiscard]] bool lives(std::int64_t holder) const;

  const std::string directory_;
  const std::string name_;
  const std::function<core::Status()> prepare_;
  const std::int64_t me_;  // positive, and nobody else's
  FileDescriptor lock_;
  std::unique_ptr<JournalDatabase> control_;
  std::optional<core::Duration> valid_until_;
};

}  // namespace tocsin::ingest
