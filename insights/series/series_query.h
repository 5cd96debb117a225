// Curves of a run as they are drawn: at most so many points, extremes and missing numbers kept.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "insights/series/series_reader.h"

namespace tocsin::insights {

/// How the workers' series of one name become one.
enum class Together { each, min, max, mean, sum, spread };

struct SeriesAsk {
  std::string run;
  std::vector<FamilyKind> kinds{FamilyKind::scalar, FamilyKind::clock};
  std::size_t column = kValueColumn;
  std::string name = ".*";    // regular expression, of the whole name
  std::string worker = ".*";  // the same
  std::optional<core::Mode> mode;
  std::optional<std::int64_t> from, to;            // steps: [from, to)
  std::optional<std::int64_t> from_time, to_time;  // the same as times, in microseconds
  std::optional<std::int64_t> until;               // microseconds: as if nothing had come later
  std::int64_t points = 1000;
  std::int64_t smooth = 0;  // span in steps; 0: not
  Together together = Together::each;
  std::size_t most = 64;  // series
};

struct SeriesPoint {
  std::int64_t x = 0;  // the bucket's first
  Bucket value;
  std::optional<double> time;    // of its first row, microseconds
  std::optional<double> smooth;  // at its end
};

struct SeriesLine {
  NameLine name;
  FamilyLine of;            // of several workers: of one of them
  std::int64_t stored = 0;  // values, of all together
  std::int64_t workers = 1;
  bool superseded = false;  // a later attempt of the worker went over these steps again
  std::vector<SeriesPoint> points;
};

struct SeriesAnswer {
  std::int64_t level = 0;  // a bucket holds 2^level steps
  std::int64_t from = 0, to = 0;
  std::int64_t rows_from =
      0;  // single values of the range before it are gone by their age; 0: none are
  std::size_t left_out = 0;  // series beyond `most`
  bool settled = false;      // the newest segment of each worker has chunks behind `to`
  std::vector<SeriesLine> lines;
};

/// invalid_argument: not a regular expression, and why.
core::Result<SeriesAnswer> ask_series(SeriesReader& reader, const SeriesAsk& ask);

/// Names that fit `name` and have values, with their series.
struct NamedFamilies {
  NameLine name;
  std::vector<FamilyLine> families;
};
core::Result<std::vector<NamedFamilies>> ask_names(SeriesReader& reader, const SeriesAsk& ask);

/// Whether a whole name fits. `field`: whose words an error begins with.
core::Result<std::function<bool(const std::string&)>> name_test(const std::string& field,
                                                                const std::string& expression);

/// A part of a segment: what is drawn of it.
struct Stretch {
  FamilyLine family;
  std::int64_t lo = 0, hi = 0;
  bool superseded = false;
};
/// The newer client of a worker has the line from its first step on. Families: of one name.
std::vector<Stretch> stretches(const std::vector<FamilyLine>& families);

/// The level, or the least greater one of whose buckets every one is kept that an answer from `from` on takes: of
/// what is old single values are gone (FamilyLine::least_level).
std::int64_t kept_level(const std::vector<NamedFamilies>& all, std::int64_t from,
                        std::int64_t level);

/// How wide the buckets are of which [from, to) has at most `points`: 2^level.
std::int64_t level_of(std::int64_t from, std::int64_t to, std::int64_t points);

}  // namespace tocsin::insights
