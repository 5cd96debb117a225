#include "insights/series/series_query.h"

#include <re2/re2.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "insights/series/past_family.h"

namespace tocsin::insights {
namespace {

constexpr std::int64_t kWarmUpSpans = 8;   // of what is smoothed, before the range
constexpr std::int64_t kStepsOfASpan = 8;  // at least, in buckets of what is smoothed
constexpr std::int64_t kMostLevel = 52;

// Exponential, of span S, corrected for its beginning: a constant stays what it is. Over buckets of
// one width whatever is asked for, so that a value does not depend on the view.
std::map<std::int64_t, double> smoothed(SeriesReader& reader, const Stretch& of,
                                        const SeriesAsk& ask, std::int64_t lo, std::int64_t hi,
                                        std::int64_t& level) {
  const std::int64_t span = ask.smooth;
  level = span < kStepsOfASpan ? 0
                               : static_cast<std::int64_t>(std::bit_width(
                                     static_cast<std::uint64_t>(span / kStepsOfASpan))) -
                                     1;
  const std::int64_t width = std::int64_t{1} << level;
  const std::int64_t begin =
      std::max(of.family.x_first, (lo - kWarmUpSpans * span) / width * width);
  const Buckets some =
      reader.buckets(of.family, ask.column, begin, (hi + width - 1) / width * width, level);
  std::map<std::int64_t, double> out;
  double sum = 0;
  double weight = 0;
  std::int64_t before = begin;
  for (const auto& entry : some) {
    if (entry.second.n == 0) continue;
    const std::int64_t x = entry.first << level;
    const double decay = std::exp(-static_cast<double>(x - before) / static_cast<double>(span));
    sum = sum * decay + entry.second.sum;
    weight = weight * decay + entry.second.n;
    before = x;
    out[entry.first] = sum / weight;
  }
  return out;
}

SeriesLine line_of(SeriesReader& reader, const NameLine& name, const Stretch& part,
                   const SeriesAnswer& range, const SeriesAsk& ask) {
  SeriesLine out{name, part.family, part.family.rows, 1, part.superseded, {}};
  const std::int64_t lo = std::max(part.lo, range.from);
  const std::int64_t hi = std::min(part.hi, range.to);
  if (lo >= hi) return out;
  const Buckets values = reader.buckets(part.family, ask.column, lo, hi, range.level);
  const Buckets times = reader.buckets(part.family, kTimeColumn, lo, hi, range.level);
  for (const auto& entry : values) {
    SeriesPoint point{entry.first << range.level, entry.second, {}, {}};
    const auto time = times.find(entry.first);
    if (time != times.end() && time->second.n > 0) point.time = time->second.first;
    out.points.push_back(point);
  }
  if (ask.smooth <= 1) return out;
  std::int64_t level = 0;
  const auto soft = smoothed(reader, part, ask, lo, hi, level);
  for (SeriesPoint& point : out.points) {
    const std::int64_t last = point.x + (std::int64_t{1} << range.level) - 1;
    const auto at = soft.upper_bound(last >> level);
    if (at != soft.begin()) point.smooth = std::prev(at)->second;
  }
  return out;
}

// Bucket by bucket over workers. The mean is weighted by the number of values; spread is how far the
// workers' means lie apart.
Bucket together(const std::vector<Bucket>& workers, Together how) {
  Bucket all;
  double least = std::numeric_limits<double>::infinity();
  double most = -least;
  double sum_of_means = 0;
  for (const Bucket& one : workers) {
    all.append(one);
    if (one.n == 0) continue;
    least = std::min(least, one.mean());
    most = std::max(most, one.mean());
    sum_of_means += one.mean();
  }
  if (all.n == 0 || how == Together::mean) return all;
  double value = 0;
  if (how == Together::min) value = all.min;
  if (how == Together::max) value = all.max;
  if (how == Together::sum) value = sum_of_means;
  if (how == Together::spread) value = most - least;
  all.min = all.max = all.first = all.last = value;
  all.sum = value * all.n;
  return all;
}

std::vector<SeriesLine> joined(std::vector<SeriesLine>&& lines, Together how) {
  std::map<std::pair<std::string, core::Mode>, std::vector<SeriesLine>> of;
  for (SeriesLine& line : lines) {
    if (!line.superseded) of[{line.name.text, line.of.mode}].push_back(std::move(line));
  }
  std::vector<SeriesLine> out;
  for (auto& group : of) {
    std::map<std::int64_t, std::vector<SeriesPoint>> at;
    std::map<std::string, int> workers;
    SeriesLine line{group.second.front().name, group.second.front().of, 0, 0, false, {}};
    for (const SeriesLine& one : group.second) {
      line.stored += one.stored;
      workers[one.of.worker] = 1;
      for (const SeriesPoint& point : one.points) at[point.x].push_back(point);
    }
    line.workers = static_cast<std::int64_t>(workers.size());
    for (const auto& entry : at) {
      std::vector<Bucket> values;
      for (const SeriesPoint& point : entry.second) values.push_back(point.value);
      line.points.push_back({entry.first, together(values, how), entry.second.front().time, {}});
    }
    out.push_back(std::move(line));
  }
  return out;
}

core::Result<std::unique_ptr<RE2>> expression(const std::string& field, const std::string& text) {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(1 << 20);
  auto out = std::make_unique<RE2>(text, options);
  if (!out->ok())
    return core::invalid_argument(field + ": not a regular expression: " + out->error());
  return out;
}

// The range that is asked for, out to the bounds of buckets.
void set_range(SeriesReader& reader, const SeriesAsk& ask, const std::vector<NamedFamilies>& found,
               SeriesAnswer& out) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = 0;
  std::int64_t from_time = first;
  std::int64_t to_time = 0;
  for (const NamedFamilies& one : found) {
    for (const FamilyLine& family : one.families) {
      first = std::min(first, family.x_first);
      end = std::max(end, family.x_last + 1);
      if (ask.from_time)
        from_time = std::min(from_time,
                             reader.x_at(family, kTimeColumn, static_cast<double>(*ask.from_time)));
      if (ask.to_time)
        to_time =
            std::max(to_time, reader.x_at(family, kTimeColumn, static_cast<double>(*ask.to_time)));
    }
  }
  if (end == 0) first = 0;
  if (ask.from_time) first = std::min(from_time, end);
  if (ask.to_time) end = to_time;
  out.from = ask.from.value_or(first);
  out.to = std::max(out.from, ask.to.value_or(end));
  out.level = kept_level(found, out.from, level_of(out.from, out.to, ask.points));
  const std::int64_t width = std::int64_t{1} << out.level;
  out.from = out.from / width * width;
  out.to = (out.to + width - 1) / width * width;
  for (const NamedFamilies& one : found) {
    for (const FamilyLine& family : one.families) {
      const std::int64_t lo = std::max(out.from, family.x_first);
      if (lo < out.to && family.x_last >= lo && family.rows_gone(lo))
        out.rows_from = std::max(out.rows_from, family.kept_from[kRowsPart]);
    }
  }
}

// Steps of a segment only grow: behind its newest chunk no row comes that lies before it.
bool are_settled(const std::vector<NamedFamilies>& found, std::int64_t to) {
  for (const NamedFamilies& one : found) {
    std::map<std::pair<core::Mode, std::string>, const FamilyLine*> newest;
    for (const FamilyLine& family : one.families) {
      const FamilyLine*& seen = newest[{family.mode, family.worker}];
      const auto age = [](const FamilyLine& of) { return std::tie(of.incarnation, of.attempt); };
      if (seen == nullptr || age(*seen) < age(family)) seen = &family;
    }
    for (const auto& entry : newest) {
      if (entry.second->x_chunked < to) return false;
    }
  }
  return !found.empty();
}

}  // namespace

std::vector<Stretch> stretches(const std::vector<FamilyLine>& families) {
  std::map<std::pair<core::Mode, std::string>, std::vector<FamilyLine>> of;
  for (const FamilyLine& one : families) of[{one.mode, one.worker}].push_back(one);
  std::vector<Stretch> out;
  for (auto& entry : of) {
    auto& segments = entry.second;
    std::stable_sort(segments.begin(), segments.end(), [](const auto& a, const auto& b) {
      return std::tie(a.incarnation, a.attempt) < std::tie(b.incarnation, b.attempt);
    });
    std::vector<Stretch> backwards;
    std::int64_t cut = std::numeric_limits<std::int64_t>::max();
    for (auto at = segments.rbegin(); at != segments.rend(); ++at) {
      const std::int64_t end = at->x_last + 1;
      if (end > cut) backwards.push_back({*at, std::max(cut, at->x_first), end, true});
      if (at->x_first < cut) backwards.push_back({*at, at->x_first, std::min(cut, end), false});
      cut = std::min(cut, at->x_first);
    }
    out.insert(out.end(), backwards.rbegin(), backwards.rend());
  }
  return out;
}

std::int64_t kept_level(const std::vector<NamedFamilies>& all, std::int64_t from,
                        std::int64_t level) {
  // Wider buckets begin earlier, where less may be kept.
  for (std::int64_t before = -1; before != level;) {
    before = level;
    const std::int64_t begin = from >> level << level;
    for (const NamedFamilies& one : all) {
      for (const FamilyLine& family : one.families) {
        if (family.x_last >= begin) level = std::max(level, family.least_level(begin));
      }
    }
  }
  return level;
}

std::int64_t level_of(std::int64_t from, std::int64_t to, std::int64_t points) {
  std::int64_t level = 0;
  while (level < kMostLevel && ((to - from - 1) >> level) + 1 > points) ++level;
  return level;
}

core::Result<std::function<bool(const std::string&)>> name_test(const std::string& field,
                                                                const std::string& text) {
  auto made = expression(field, text);
  if (!made) return made.error();
  const std::shared_ptr<RE2> fits = std::move(*made);
  return std::function<bool(const std::string&)>(
      [fits](const std::string& name) { return RE2::FullMatch(name, *fits); });
}

core::Result<std::vector<NamedFamilies>> ask_names(SeriesReader& reader, const SeriesAsk& ask) {
  auto name = expression("name", ask.name);
  if (!name) return name.error();
  auto worker = expression("worker", ask.worker);
  if (!worker) return worker.error();
  std::vector<NamedFamilies> out;
  for (NameLine& line : reader.names(ask.run, ask.kinds)) {
    if (!RE2::FullMatch(line.text, **name)) continue;
    NamedFamilies one{std::move(line), {}};
    for (FamilyLine& family : reader.families(ask.run, one.name.kind, one.name.hash)) {
      if (ask.mode && family.mode != *ask.mode) continue;
      if (ask.until && !cut_family(reader, *ask.until, family)) continue;
      if (RE2::FullMatch(family.worker, **worker)) one.families.push_back(std::move(family));
    }
    if (!one.families.empty()) out.push_back(std::move(one));
  }
  return out;
}

core::Result<SeriesAnswer> ask_series(SeriesReader& reader, const SeriesAsk& ask) {
  const auto found = ask_names(reader, ask);
  if (!found) return found.error();
  SeriesAnswer out;
  set_range(reader, ask, *found, out);
  out.settled = are_settled(*found, out.to);
  std::size_t taken = 0;
  for (const NamedFamilies& one : *found) {
    for (const Stretch& part : stretches(one.families)) {
      if (taken >= ask.most) {
        ++out.left_out;
        continue;
      }
      ++taken;
      out.lines.push_back(line_of(reader, one.name, part, out, ask));
    }
  }
  if (ask.together != Together::each) out.lines = joined(std::move(out.lines), ask.together);
  return out;
}

}  // namespace tocsin::insights
