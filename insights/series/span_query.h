// Spans of a run within a time: lanes of bars, and which share of the time each name has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "insights/series/series_reader.h"

namespace tocsin::insights {

/// Times are microseconds, UTC.
struct SpanAsk {
  std::string run;
  std::string track = ".*";              // regular expression, of the whole name
  std::string worker = ".*";             // the same
  std::optional<std::int64_t> from, to;  // [from, to); not given: the last `steps`
  std::int64_t steps = 30;
  std::int64_t columns =
      1000;  // what is shorter than one of so many becomes one bar with its neighbours
  std::size_t lanes = 64;  // at most
};

struct SpanBar {
  double start = 0, end = 0;  // microseconds
  std::size_t name = 0;       // of SpanAnswer::names; of several: the one with most time
  std::int64_t step = 0;
  std::int64_t merged = 1;  // spans
  bool instant = false;
};

/// What one name has in the time that is asked for, cut at its edges.
struct SpanShare {
  std::size_t name = 0;
  std::int64_t calls = 0;
  double seconds = 0;  // summed
  double share = 0;    // of the time, in which at least one is: at most 1
};

struct SpanLane {
  std::string worker, track;
  std::int64_t rank = 0;
  std::int64_t spans = 0;  // in the time
  std::vector<SpanBar> bars;
  std::vector<SpanShare> shares;  // greatest first
};

struct SpanAnswer {
  std::int64_t from = 0, to = 0;
  std::vector<std::string> names, tracks, workers;
  std::vector<SpanLane> lanes;
  std::size_t left_out = 0;  // lanes beyond the limit
  bool cut = false;          // too many spans: those behind are not there
};
core::Result<SpanAnswer> ask_spans(SeriesReader& reader, const SpanAsk& ask);

/// When the last `steps` of training were: from the step clock, else from the spans.
struct StepWindow {
  std::int64_t from = 0, to = 0;  // microseconds
};
StepWindow last_steps(SeriesReader& reader, const std::string& run, std::int64_t steps);

/// One span as it is stored.
struct StoredSpan {
  double start = 0, end = 0;  // microseconds
  double nanos = 0;           // -1: an instant
  std::uint64_t name = 0;
  std::int64_t step = 0;
};
/// Those of a family that touch [from, to), in order of arrival. False: `most` were not enough.
bool visit_spans(SeriesReader& reader, const FamilyLine& family, double from, double to,
                 std::size_t most, core::FunctionRef<void(const StoredSpan&)> visit);

/// Seconds in which at least one of these is. Sorts them.
double union_seconds(std::vector<std::pair<double, double>>& micros);

}  // namespace tocsin::insights
