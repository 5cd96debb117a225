// Time intervals as people write them (docs/time-intervals.md).
#pragma once

#include <string>
#include <vector>

namespace tocsin::routing {

/// A part of a day: from `start` until before `end`, each HH:MM in the local clock, `end` up to 24:00.
struct ClockSpan {
  std::string start;
  std::string end;
  friend bool operator==(const ClockSpan&, const ClockSpan&) = default;
};

/// One alternative of an interval. Each field that is given must hold, and holds when one of its
/// entries does. An entry is one value or a range "first:last", both included.
struct TimeWindow {
  std::vector<ClockSpan> times;
  std::vector<std::string> weekdays;       // monday, monday:friday; weeks begin on Sunday
  std::vector<std::string> days_of_month;  // 1 … 31, or -31 … -1 from the end of the month
  std::vector<std::string> months;         // january or 1
  std::vector<std::string> years;          // 2026
  std::string location;                    // IANA time zone; empty: UTC
  friend bool operator==(const TimeWindow&, const TimeWindow&) = default;
};

/// Holds while one of its windows does.
struct TimeInterval {
  std::string name;
  std::vector<TimeWindow> windows;
  friend bool operator==(const TimeInterval&, const TimeInterval&) = default;
};

}  // namespace tocsin::routing
