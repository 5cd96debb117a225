// The attempts of a run as its job events tell them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/issue.h"
#include "core/time.h"
#include "core/value.h"

namespace tocsin::app {

/// What was told of one attempt so far.
struct AttemptFacts {
  std::int64_t world_size = 0;  // 0: nobody has said
  std::optional<core::WallTime> started;
  std::optional<core::WallTime> ended;
  std::string outcome;  // empty: it has not ended, or nobody has said how
  std::optional<int> exit_code;
};

class AttemptLog {
 public:
  void saw(const core::JobEvent& job);

  /// By the attempt as frames name it.
  [[nodiscard]] const std::map<std::int64_t, AttemptFacts>& attempts() const { return attempts_; }
  /// How a person counts: as its launcher has numbered it, else by what came before, from 1. 0: not known.
  [[nodiscard]] std::int64_t number_of(std::int64_t attempt) const;
  /// {attempt, number, started_at, ended_at, world_size, outcome, exit_code}, oldest first. Null: nobody has said.
  [[nodiscard]] core::ValueList rows() const;

 private:
  std::map<std::int64_t, AttemptFacts> attempts_;
};

}  // namespace tocsin::app
