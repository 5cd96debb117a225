#include "insights/series/system_query.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <tuple>
#include <unordered_map>

#include "insights/series/past_samples.h"
#include "insights/series/series_query.h"
#include "insights/series/system_fold.h"

namespace tocsin::insights {
namespace {

constexpr std::size_t kMostCoresRead = 20'000;

// "cpu3", "gpu GPU-0e…": what a row is called; what has no number comes behind those that have one.
std::tuple<int, std::int64_t, std::string> place_of(const std::string& text) {
  const auto [metric, labels] = split_series(text);
  const std::string_view number = label_of(labels, "cpu.logical_number");
  std::int64_t core = std::numeric_limits<std::int64_t>::max();
  std::from_chars(number.data(), number.data() + number.size(), core);
  const int kind = labels == "mean" || labels == "total" ? 0 : !number.empty() ? 1 : 2;
  return {kind, core, std::string(labels)};
}

void put_cores_in_order(std::vector<NamedFamilies>& series) {
  std::stable_sort(series.begin(), series.end(), [](const auto& a, const auto& b) {
    const auto metric_a = split_series(a.name.text).metric;
    const auto metric_b = split_series(b.name.text).metric;
    if (metric_a != metric_b) return metric_a < metric_b;
    return place_of(a.name.text) < place_of(b.name.text);
  });
}

struct SampleRange {
  std::int64_t from = 0, to = 0;
};

SampleRange range_of(const SystemAsk& ask, const std::vector<NodeSeries>& nodes) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = 0;
  for (const NodeSeries& one : nodes) {
    first = std::min(first, one.node.x_first);
    end = std::max(end, one.node.x_last + 1);
  }
  if (end == 0) first = 0;
  const std::int64_t from = ask.from.value_or(first);
  return {from, std::max(from + 1, ask.to.value_or(end))};
}

// A wider level of one node may reach before what another one keeps.
std::int64_t kept_level_of(const std::vector<NodeSeries>& nodes, std::int64_t from,
                           std::int64_t level) {
  for (std::int64_t before = -1; before != level;) {
    before = level;
    for (const NodeSeries& node : nodes) level = kept_level(node.series, from, level);
  }
  return level;
}

// False: the node had not served the run yet.
bool cut_node(const SystemAsk& ask, ServedNode& node) {
  if (!ask.until) return true;
  node.x_last = std::min(node.x_last, *ask.until);
  return node.x_first <= node.x_last;
}

SampleRange aligned(SampleRange range, std::int64_t level) {
  const std::int64_t width = std::int64_t{1} << level;
  return {range.from / width * width, (range.to + width - 1) / width * width};
}

bool are_samples_settled(const std::vector<NodeSeries>& nodes, std::int64_t to) {
  bool any = false;
  for (const NodeSeries& node : nodes) {
    for (const NamedFamilies& one : node.series) {
      any = true;
      if (one.families.back().x_chunked < to) return false;
    }
  }
  return any;
}

std::int64_t least_stride(const std::vector<NodeSeries>& nodes) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const NodeSeries& node : nodes) {
    for (const NamedFamilies& one : node.series) {
      for (const FamilyLine& family : one.families) {
        if (family.rows > 1)
          least = std::min(least, (family.x_last - family.x_first) / (family.rows - 1));
      }
    }
  }
  return least == std::numeric_limits<std::int64_t>::max() ? 1 : std::max<std::int64_t>(1, least);
}

}  // namespace

core::Result<std::vector<NodeSeries>> choose_samples(SeriesReader& reader, const SystemAsk& ask) {
  auto fits_node = name_test("node", ask.node);
  if (!fits_node) return fits_node.error();
  auto fits_name = name_test("name", ask.name);
  if (!fits_name) return fits_name.error();
  constexpr FamilyKind kKind[] = {FamilyKind::system};
  std::vector<NodeSeries> out;
  for (ServedNode& node : reader.nodes(ask.run)) {
    if (!(*fits_node)(node.name) || !cut_node(ask, node)) continue;
    NodeSeries one{std::move(node), {}};
    std::unordered_map<std::int64_t, std::size_t> place;
    for (NameLine& line : reader.names(one.node.owner, kKind)) {
      if (!(*fits_name)(line.text)) continue;
      place.emplace(line.hash, one.series.size());
      one.series.push_back({std::move(line), {}});
    }
    if (!place.empty()) {
      reader.all_families(
          one.node.owner, FamilyKind::system, [&](std::int64_t name, FamilyLine&& family) {
            const auto at = place.find(name);
            if (at != place.end() && (!ask.until || cut_samples(reader, *ask.until, family)))
              one.series[at->second].families.push_back(std::move(family));
          });
    }
    std::erase_if(one.series, [](const NamedFamilies& series) { return series.families.empty(); });
    for (NamedFamilies& series : one.series)
      std::sort(series.families.begin(), series.families.end(),
                [](const auto& a, const auto& b) { return a.incarnation < b.incarnation; });
    put_cores_in_order(one.series);
    out.push_back(std::move(one));
  }
  return out;
}

core::Result<SystemAnswer> ask_system(SeriesReader& reader, const SystemAsk& ask) {
  const auto nodes = choose_samples(reader, ask);
  if (!nodes) return nodes.error();
  SystemAnswer out;
  const SampleRange range = range_of(ask, *nodes);
  out.level = kept_level_of(*nodes, range.from, level_of(range.from, range.to, ask.points));
  std::tie(out.from, out.to) =
      std::pair(aligned(range, out.level).from, aligned(range, out.level).to);
  out.settled = are_samples_settled(*nodes, out.to);
  for (const NodeSeries& node : *nodes) {
    for (const NamedFamilies& one : node.series) {
      if (out.lines.size() >= ask.most) {
        ++out.left_out;
        continue;
      }
      SystemLine line{node.node.name, one.name, 0, {}};
      Buckets all;
      for (const FamilyLine& family : one.families) {
        line.stored += family.rows;
        for (const auto& entry : reader.buckets(family, kValueColumn, out.from, out.to, out.level))
          all[entry.first].append(entry.second);
      }
      for (const auto& entry : all)
        line.points.emplace_back(entry.first << out.level, entry.second);
      out.lines.push_back(std::move(line));
    }
  }
  return out;
}

core::Result<HeatAnswer> ask_cores(SeriesReader& reader, const CoreAsk& ask) {
  const auto nodes = choose_samples(reader, ask.of);
  if (!nodes) return nodes.error();
  HeatAnswer out;
  const SampleRange range = range_of(ask.of, *nodes);
  std::int64_t level = 0;  // not narrower than samples lie apart
  while (least_stride(*nodes) >> (level + 1) > 0) ++level;
  out.level = kept_level_of(*nodes, range.from,
                            std::max(level_of(range.from, range.to, ask.columns), level));
  std::tie(out.from, out.to) =
      std::pair(aligned(range, out.level).from, aligned(range, out.level).to);
  std::vector<std::pair<std::string, const NamedFamilies*>> rows;
  for (const NodeSeries& node : *nodes) {
    for (const NamedFamilies& one : node.series) rows.emplace_back(node.node.name, &one);
  }
  out.tensors = static_cast<std::int64_t>(rows.size());
  if (rows.size() > kMostCoresRead) {
    out.left_out = out.tensors - static_cast<std::int64_t>(kMostCoresRead);
    rows.resize(kMostCoresRead);
  }
  const auto most = static_cast<std::size_t>(ask.rows);
  const std::size_t fold = std::max<std::size_t>(1, (rows.size() + most - 1) / most);
  const std::int64_t first = out.from >> out.level;
  std::vector<Bucket> cells(static_cast<std::size_t>((out.to - out.from) >> out.level));
  for (std::size_t at = 0; at < rows.size(); at += fold) {
    const std::size_t end = std::min(at + fold, rows.size());
    std::fill(cells.begin(), cells.end(), Bucket());
    for (std::size_t one = at; one < end; ++one) {
      for (const FamilyLine& family : rows[one].second->families)
        reader.visit_buckets(family, kValueColumn, out.from, out.to, out.level,
                             [&](std::int64_t bucket, const Bucket& some) {
                               cells[static_cast<std::size_t>(bucket - first)].append(some);
                             });
    }
    HeatRow row = row_of_cells(cells, ask.value);
    row.first = rows[at].second->name;
    row.last = rows[end - 1].second->name;
    row.first.shape = rows[at].first;  // the node
    row.folded = static_cast<std::int64_t>(end - at);
    out.rows.push_back(std::move(row));
  }
  return out;
}

}  // namespace tocsin::insights
