#include "insights/series/span_query.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>

#include "insights/series/series_query.h"
#include "insights/series/span_fold.h"

namespace tocsin::insights {
namespace {

constexpr std::size_t kMostSpansRead = 1'000'000;  // of one answer
constexpr std::int64_t kMicros = 1'000'000;
constexpr std::int64_t kNearLevel = 6;  // rows of 64 are not told apart
constexpr std::int64_t kLooks = 256;    // buckets of one look for where a range ends

// Before the first row with an end at `from` or behind it, near enough: within a kept bucket.
std::int64_t begin_of_ends(SeriesReader& reader, const FamilyLine& family, double from) {
  std::int64_t lo = family.x_first;
  std::int64_t hi = family.x_last + 1;
  const std::int64_t kept = std::max<std::int64_t>(family.k0, kNearLevel);
  while (true) {
    std::int64_t level = kept;
    while (((hi - lo) >> level) > kLooks) ++level;
    std::int64_t found = -1;
    reader.visit_buckets(family, span_column_of::end, lo, hi, level,
                         [&](std::int64_t at, const Bucket& part) {
                           if (found < 0 && part.n > 0 && part.max >= from) found = at;
                         });
    if (found < 0) return hi;
    lo = std::max(lo, found << level);
    if (level == kept) return lo;
    hi = std::min(hi, (found + 1) << level);
  }
}

// Behind the last row with a start before `to`: spans that hold others come behind these.
std::int64_t end_of_starts(SeriesReader& reader, const FamilyLine& family, std::int64_t lo,
                           double to) {
  std::int64_t hi = family.x_last + 1;
  while (lo < hi) {
    std::int64_t level = 0;
    while (((hi - lo) >> level) > kLooks) ++level;
    const Buckets seen = reader.buckets(family, span_column_of::start, lo, hi, level);
    const auto last = std::find_if(seen.rbegin(), seen.rend(), [&](const auto& entry) {
      return entry.second.n > 0 && entry.second.min < to;
    });
    if (last == seen.rend()) return lo;
    const std::int64_t x = last->first << level;
    if (level == 0) return x + 1;
    hi = std::min(hi, x + (std::int64_t{1} << level));
    lo = std::max(lo, x);
  }
  return hi;
}

struct LaneKey {
  std::string worker, track;
  std::int64_t rank = 0;
};

// Names as they appear.
class NamesSeen {
 public:
  explicit NamesSeen(std::unordered_map<std::int64_t, std::string>&& texts)
      : texts_(std::move(texts)) {}
  std::size_t place(std::uint64_t hash) {
    const auto [found, fresh] = place_.try_emplace(hash, names_.size());
    if (fresh) {
      const auto text = texts_.find(static_cast<std::int64_t>(hash));
      names_.push_back(text == texts_.end() ? "a span without a name" : text->second);
    }
    return found->second;
  }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  std::unordered_map<std::int64_t, std::string> texts_;
  std::unordered_map<std::uint64_t, std::size_t> place_;
  std::vector<std::string> names_;
};

// Bars that are shorter than a column become one while they touch the same column. What lasts longer
// stays itself.
void merge_bars(std::vector<SpanBar>& bars, double column) {
  std::stable_sort(bars.begin(), bars.end(),
                   [](const SpanBar& a, const SpanBar& b) { return a.start < b.start; });
  std::vector<SpanBar> out;
  std::size_t small = 0;  // where in `out` the newest small one is, counted from 1
  std::map<std::size_t, double> times;
  for (SpanBar& bar : bars) {
    const bool tiny = bar.end - bar.start < column;
    const bool near = small > 0 && tiny && bar.end - out[small - 1].start < column;
    if (!near) {
      out.push_back(bar);
      if (tiny) {
        small = out.size();
        times = {{bar.name, bar.end - bar.start}};
      }
      continue;
    }
    SpanBar& into = out[small - 1];
    times[bar.name] += bar.end - bar.start;
    into.end = std::max(into.end, bar.end);
    into.merged += bar.merged;
    into.instant = into.instant && bar.instant;
    for (const auto& one : times) {
      if (one.second > times[into.name]) into.name = one.first;
    }
  }
  bars = std::move(out);
}

struct LaneReading {
  SpanLane lane;
  std::map<std::size_t, std::vector<std::pair<double, double>>> by_name;
};

void read_lane(SeriesReader& reader, const FamilyLine& family, const SpanAnswer& range,
               NamesSeen& names, std::size_t& left, LaneReading& out, bool& cut) {
  const auto from = static_cast<double>(range.from);
  const auto to = static_cast<double>(range.to);
  std::size_t taken = 0;
  cut = !visit_spans(reader, family, from, to, left, [&](const StoredSpan& span) {
    ++taken;
    const std::size_t name = names.place(span.name);
    out.lane.bars.push_back({span.start, span.end, name, span.step, 1, span.nanos < 0});
    out.by_name[name].emplace_back(std::max(span.start, from), std::min(span.end, to));
  }) || cut;
  left -= std::min(left, taken);
  out.lane.spans += static_cast<std::int64_t>(taken);
}

void tell_shares(LaneReading& reading, double seconds) {
  for (auto& [name, parts] : reading.by_name) {
    SpanShare share{name, static_cast<std::int64_t>(parts.size()), 0, 0};
    for (const auto& part : parts) share.seconds += (part.second - part.first) / kMicros;
    share.share = union_seconds(parts) / seconds;
    reading.lane.shares.push_back(share);
  }
  std::stable_sort(reading.lane.shares.begin(), reading.lane.shares.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
}

}  // namespace

double union_seconds(std::vector<std::pair<double, double>>& micros) {
  std::sort(micros.begin(), micros.end());
  double sum = 0;
  double end = -std::numeric_limits<double>::infinity();
  for (const auto& one : micros) {
    sum += std::max(0.0, one.second - std::max(end, one.first));
    end = std::max(end, one.second);
  }
  return sum / kMicros;
}

bool visit_spans(SeriesReader& reader, const FamilyLine& family, double from, double to,
                 std::size_t most, core::FunctionRef<void(const StoredSpan&)> visit) {
  const std::int64_t lo = begin_of_ends(reader, family, from);
  const std::int64_t hi =
      std::isfinite(to) ? end_of_starts(reader, family, lo, to) : family.x_last + 1;
  if (lo >= hi) return true;
  std::size_t seen = 0;
  bool all = true;
  reader.rows(family, lo, hi, [&](const SeriesRows& rows) {
    for (std::size_t at = 0; at < rows.size() && all; ++at) {
      if (rows.x[at] < lo || rows.x[at] >= hi) continue;
      StoredSpan span;
      span.start = rows.columns[span_column_of::start][at];
      span.end = rows.columns[span_column_of::end][at];
      const bool inside = span.start < to && (span.end > from || span.start >= from);
      if (!inside) continue;
      if (++seen > most) {
        all = false;
        return;
      }
      span.nanos = rows.columns[span_column_of::nanos][at];
      span.name = whole_of(rows.columns[span_column_of::name_high][at],
                           rows.columns[span_column_of::name_low][at]);
      span.step = static_cast<std::int64_t>(rows.columns[span_column_of::step][at]);
      visit(span);
    }
  });
  return all;
}

StepWindow last_steps(SeriesReader& reader, const std::string& run, std::int64_t steps) {
  StepWindow out{std::numeric_limits<std::int64_t>::max(), 0};
  reader.all_families(run, FamilyKind::clock, [&](std::int64_t, FamilyLine&& family) {
    if (family.mode != core::Mode::train) return;
    const std::int64_t lo = std::max(family.x_first, family.x_last - steps + 1);
    reader.rows(family, lo, family.x_last + 1, [&](const SeriesRows& rows) {
      for (std::size_t at = 0; at < rows.size(); ++at) {
        if (rows.x[at] < lo) continue;
        const double end = rows.columns[kTimeColumn][at];
        const double seconds = rows.columns[kValueColumn][at];
        out.to = std::max(out.to, static_cast<std::int64_t>(end) + 1);
        out.from = std::min(out.from, static_cast<std::int64_t>(end - seconds * kMicros));
      }
    });
  });
  if (out.to > 0) return out;
  out.from = std::numeric_limits<std::int64_t>::max();
  reader.all_families(run, FamilyKind::span, [&](std::int64_t, FamilyLine&& family) {
    const Buckets ends = reader.buckets(family, span_column_of::end, 0, family.x_last + 1, 52);
    for (const auto& entry : ends)
      if (entry.second.n > 0)
        out.to = std::max(out.to, static_cast<std::int64_t>(entry.second.max) + 1);
  });
  out.from = std::max<std::int64_t>(0, out.to - 10 * kMicros);
  return out;
}

core::Result<SpanAnswer> ask_spans(SeriesReader& reader, const SpanAsk& ask) {
  auto fits_track = name_test("track", ask.track);
  if (!fits_track) return fits_track.error();
  auto fits_worker = name_test("worker", ask.worker);
  if (!fits_worker) return fits_worker.error();
  SpanAnswer out;
  if (ask.from && ask.to) {
    out.from = *ask.from;
    out.to = *ask.to;
  } else {
    const StepWindow window = last_steps(reader, ask.run, ask.steps);
    out.from = ask.from.value_or(window.from);
    out.to = std::max(out.from + 1, ask.to.value_or(window.to));
  }
  const auto tracks = reader.texts(ask.run, static_cast<std::int64_t>(FamilyKind::span));
  NamesSeen names(reader.texts(ask.run, name_kind::kSpanName));
  std::map<std::pair<std::int64_t, std::string>, std::vector<FamilyLine>> lanes;  // rank and track
  std::map<std::string, int> seen_tracks;
  std::map<std::int64_t, std::string> seen_workers;
  reader.all_families(ask.run, FamilyKind::span, [&](std::int64_t track, FamilyLine&& family) {
    const auto text = tracks.find(track);
    const std::string called = text == tracks.end() ? "a track without a name" : text->second;
    seen_tracks[called] = 1;
    seen_workers[family.rank] = family.worker;
    if ((*fits_track)(called) && (*fits_worker)(family.worker))
      lanes[{family.rank, called}].push_back(std::move(family));
  });
  for (const auto& one : seen_tracks) out.tracks.push_back(one.first);
  for (const auto& one : seen_workers) out.workers.push_back(one.second);
  const double column = static_cast<double>(out.to - out.from) / static_cast<double>(ask.columns);
  const double seconds = static_cast<double>(out.to - out.from) / kMicros;
  std::size_t left = kMostSpansRead;
  for (auto& [key, families] : lanes) {
    if (out.lanes.size() >= ask.lanes) {
      ++out.left_out;
      continue;
    }
    LaneReading reading;
    reading.lane.rank = key.first;
    reading.lane.track = key.second;
    reading.lane.worker = families.front().worker;
    for (const FamilyLine& family : families)
      read_lane(reader, family, out, names, left, reading, out.cut);
    tell_shares(reading, seconds);
    merge_bars(reading.lane.bars, column);
    if (reading.lane.spans > 0) out.lanes.push_back(std::move(reading.lane));
  }
  out.names = names.names();
  return out;
}

}  // namespace tocsin::insights
