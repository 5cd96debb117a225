// Where a run was asked for more captures, for a trace or for another setting, by its steps.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/command.h"
#include "core/record.h"
#include "core/value.h"

namespace tocsin::app {

/// Sees the commands to one run and the answers of its ranks, in the order of time.
class ChangeMarks {
 public:
  void saw(const core::RecordView& record);
  /// What at least one rank applied: {command_id, kind, step, text, by, time}, in order of step. `step`
  /// is the first for which it holds, on the rank that was first.
  [[nodiscard]] core::ValueList rows() const;

 private:
  void saw_ack(const core::Ack& ack);
  struct Change {
    std::string action, by, value;
    core::WallTime at{};
    std::optional<std::int64_t> step;  // nobody has applied it
  };
  std::map<std::string, Change> changes_;  // by command id
};

}  // namespace tocsin::app
