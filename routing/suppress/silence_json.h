// The fields of a silence in `router-control` and in the router's state.
#pragma once

#include <string>
#include <string_view>

#include "core/fields/archive.h"
#include "core/time.h"
#include "routing/suppress/silence.h"

namespace tocsin::routing {

template <typename A>
void fields(A& io, core::Of<A, ClockSpan>& span) {
  io.field("start", span.start, "HH:MM, included", core::How::required);
  io.field("end", span.end, "HH:MM, not included", core::How::required);
}

template <typename A>
void fields(A& io, core::Of<A, TimeWindow>& window) {
  using core::How;
  io.field("times", window.times, "parts of a day", How::omit_if_empty);
  io.field("weekdays", window.weekdays, "monday:friday", How::omit_if_empty);
  io.field("days_of_month", window.days_of_month, "1:7, -1", How::omit_if_empty);
  io.field("months", window.months, "june, 6", How::omit_if_empty);
  io.field("years", window.years, "2026", How::omit_if_empty);
  io.field("location", window.location, "time zone; UTC", How::omit_if_empty);
}

template <typename A>
void fields(A& io, core::Of<A, Recurrence>& recurrence) {
  io.field("time_interval", recurrence.time_interval, "whose windows these are",
           core::How::omit_if_empty);
  io.field("intervals", recurrence.windows, "alternatives");
}

/// A duration as its text ("10m"); 0s is left out.
template <typename A, typename D>
void duration_field(A& io, std::string_view name, D& value, std::string_view meaning) {
  std::string text = value == core::Duration::zero() ? std::string() : core::to_text(value);
  if constexpr (A::kReading) text.clear();
  io.field(name, text, meaning, core::How::omit_if_empty);
  if constexpr (A::kReading) {
    if (text.empty()) return;
    const auto read = core::parse_duration(text);
    if (read) {
      value = *read;
    } else {
      io.wrong(name, "a duration such as 10m");
    }
  }
}

template <typename A>
void fields(A& io, core::Of<A, Silence>& silence) {
  using core::How;
  io.field("id", silence.id, "its name in commands", How::required);
  io.field("matchers", silence.matchers, "all of them hold for an issue that it silences",
           How::omit_if_empty);
  io.field("matcher_sets", silence.matcher_sets, "several of these, of which one must hold",
           How::omit_if_empty);
  io.field("starts_at", silence.starts_at, "from when on");
  io.field("ends_at", silence.ends_at, "until when");
  io.field("created_at", silence.created_at, "when it was asked for");
  io.field("created_by", silence.created_by, "by whom");
  io.field("comment", silence.comment, "why");
  io.field("actions", silence.actions, "what it holds back: notify, stop_training; else both",
           How::omit_if_empty);
  io.field("annotations", silence.annotations, "texts of your own", How::omit_if_empty);
  io.field("recurrence", silence.recurrence, "within begin and end only at these times",
           How::omit_if_empty);
  io.field("until_resolved", silence.until_resolved, "ends once all it matched is over",
           How::omit_if_empty);
  duration_field(io, "quiet_for", silence.quiet_for, "for so long");
  duration_field(io, "auto_expire_unmatched", silence.auto_expire_unmatched,
                 "ends once nothing matched for so long");
  io.field("announce_on_unmute", silence.announce_on_unmute,
           "reminder: what was told and still fires is told again at its end", How::omit_if_empty);
  io.field("replaces", silence.replaces, "the silence whose place it took", How::omit_if_empty);
  io.field("ended_by", silence.ended_by, "why the router ended it: resolved, unmatched",
           How::omit_if_empty);
  io.field("version", silence.version, "counts its changes", How::omit_if_empty);
  io.field("updated_at", silence.updated_at, "when this version was written");
}

}  // namespace tocsin::routing
