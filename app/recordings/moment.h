// `--at`: a view as it was at a past moment. Topics keep what was written since, so it is read up to there.
#pragma once

#include <optional>
#include <string>

#include "core/record.h"
#include "core/result.h"
#include "core/time.h"

namespace tocsin::app {

struct Moment {
  std::optional<core::WallTime> at;  // nothing: the present

  /// Whether the record was there by then.
  [[nodiscard]] bool holds(const core::RecordView& record) const {
    return !at || record.timestamp <= core::nanoseconds(*at);
  }
  [[nodiscard]] core::WallTime now(core::WallTime present) const { return at.value_or(present); }
  /// " as of 2026-11-22T14:00:00Z"; of the present nothing.
  [[nodiscard]] std::string text() const {
    return at ? " as of " + core::to_rfc3339(*at) : std::string();
  }
};

/// A time, a date, or a span back from now, as bounds of a replay are (replay/recording.h); empty: the present.
/// invalid_argument: anything else, and what is yet to come.
core::Result<Moment> parse_moment(const std::string& text, core::WallTime present);

}  // namespace tocsin::app
