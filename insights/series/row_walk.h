// Every value of the series that are asked for, slice by slice: as much as a table of any length needs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "insights/series/series_query.h"
#include "insights/series/series_reader.h"

namespace tocsin::insights {

/// What a slice is of.
struct WalkedSeries {
  NameLine name;
  Stretch part;
};

struct WalkedRow {
  std::int64_t x = 0;
  double value = 0;
  double time = 0;  // microseconds, UTC
};

/// Goes through what was stored when it began: what comes later is not told.
class RowWalk {
 public:
  using Open = std::function<core::Result<std::unique_ptr<SeriesReader>>()>;

  /// Of `ask` all but points, smooth, together and most. invalid_argument: not a regular expression, and why.
  /// failed_precondition: single values are gone by their age, and from which step on they are there.
  static core::Result<RowWalk> begin(Open open, const SeriesAsk& ask);

  /// The series of the next slice, and up to kMostRows of its values in `out`; nullptr: that was all. data_loss:
  /// the rest is not there any more. Any other error: the file cannot be read.
  core::Result<const WalkedSeries*> next(std::vector<WalkedRow>& out);
  /// Lets go of the file until the next slice: a reader that stays for minutes lets the file's log grow as long.
  void rest();

  static constexpr std::size_t kMostRows = 4096;

 private:
  RowWalk(Open open, std::string run, std::size_t column)
      : open_(std::move(open)), run_(std::move(run)), column_(column) {}
  void choose(SeriesReader& reader, const SeriesAsk& ask, const NamedFamilies& named);
  [[nodiscard]] core::Status all_there() const;
  core::Status look_up(const WalkedSeries& series);
  void fill(const WalkedSeries& series, std::vector<WalkedRow>& out);

  Open open_;
  std::string run_;
  std::size_t column_;
  std::vector<WalkedSeries> series_;
  std::size_t at_ = 0;                    // in series_
  std::int64_t x_ = 0;                    // the next one of it, if it is behind its beginning
  std::int64_t width_ = kMostRows;        // of x that a slice looks at
  std::unique_ptr<SeriesReader> reader_;  // null: it rests
  std::optional<FamilyLine> family_;      // of series_[at_], as the reader sees it
};

}  // namespace tocsin::insights
