// What the node agent sends to one run, or about a node that serves none: sequence and dictionary
// are per target, because each is a stream of its own.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "collectors/collectors.h"
#include "core/frame.h"
#include "core/lifecycle.h"
#include "core/record.h"
#include "ingest/ingest.h"

namespace tocsin::app {

class NodeTarget {
 public:
  /// A node that serves no run: `run` is nil. `incarnation`: of the agent, wall ns when it opened.
  NodeTarget(core::RunUid run, std::string node, std::uint64_t incarnation);

  void set_attempt(std::uint32_t attempt) { header_.attempt = attempt; }
  [[nodiscard]] std::uint32_t attempt() const { return header_.attempt; }

  /// The records of one sweep, names first where they are new or five minutes old.
  std::vector<core::OutRecord> sweep(const collectors::Sweep& sweep);
  /// A worker's process ended; `death.event` is `died`.
  core::OutRecord died(const core::Lifecycle& death, core::WallTime now);

 private:
  void name(const collectors::Sweep& sweep, std::vector<core::OutRecord>& out);
  core::OutRecord record(std::span<const std::byte> frame, core::WallTime time) const;

  std::string node_;
  std::string key_;
  core::FrameHeader header_;
  ingest::FrameWriter writer_;
  std::vector<core::SystemRow> rows_;
  std::unordered_set<std::uint64_t> named_;
  core::Duration named_since_{};
};

}  // namespace tocsin::app
