// What a run's producers and its way here have lost.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tocsin::insights {

/// Of all workers of a run, by lane and reason. Lane: the queue of the hook; empty: not known.
struct LossLine {
  std::string lane;
  std::string reason;  // as the hook says it; kNeverCame: nobody has said
  std::int64_t workers = 0;
  std::int64_t frames = 0;
  std::int64_t values = 0;
  std::optional<std::int64_t> first_step, last_step;
};

/// The reason of values that were stored and cannot be read any more; a chunk is a frame.
inline constexpr std::string_view kUnreadable = "unreadable";
/// Sequence numbers that were used, never came, and are in no report of the hook.
inline constexpr std::string_view kNeverCame = "never_came";

}  // namespace tocsin::insights
