// What tells an issue that is only said again from one that says something else, read without decoding
// the event (docs/routing.md, Life of an issue).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/record.h"
#include "core/time.h"
#include "ingest/events/events.h"

namespace tocsin::ingest {

/// Two events of equal `rest`: when decode_event() takes one of them as an issue, it takes the other
/// one too, and what it gives differs at most in the members here, in texts of annotations, and in the
/// steps, times, counts and measured numbers of what was found. All else is in `rest`.
struct EventOutline {
  std::array<std::uint64_t, 2> rest{};  // XXH3; who makes two that are equal deceives himself only
  std::string_view source;              // borrowed from the record
  std::string_view id;
  std::uint64_t sequence = 0;
  std::optional<core::WallTime> time;
  std::optional<core::WallTime> starts_at;
};

/// nullopt: no issue in binary mode, one with an end, or one that needs care. decode_event() judges it.
std::optional<EventOutline> outline_of(const core::RecordView& record,
                                       const EventLimits& limits = {});

}  // namespace tocsin::ingest
