#include "insights/series/node_health.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "insights/series/past_samples.h"
#include "insights/series/system_fold.h"

namespace tocsin::insights {
namespace {

constexpr std::int64_t kLastMinute = 60'000;  // milliseconds
constexpr std::int64_t kWholeLevel = 40;      // buckets of 34 years: all is one
constexpr std::string_view kCpuSeries = "system.cpu.busy{mean}";

const FamilyLine& newest_of(const std::vector<FamilyLine>& families) {
  return *std::max_element(families.begin(), families.end(),
                           [](const auto& a, const auto& b) { return a.x_last < b.x_last; });
}

std::optional<std::int64_t> interval_of(SeriesReader& reader, const FamilyLine& family) {
  std::vector<std::int64_t> at;
  const std::int64_t from = family.x_last - kLastMinute;
  reader.rows(family, from, family.x_last + 1, [&](const SeriesRows& rows) {
    for (std::size_t row = 0; row < rows.size(); ++row)
      if (rows.x[row] >= from) at.push_back(rows.x[row]);
  });
  if (at.size() < 2) return std::nullopt;
  std::vector<std::int64_t> apart;
  for (std::size_t row = 1; row < at.size(); ++row) apart.push_back(at[row] - at[row - 1]);
  const auto middle = apart.begin() + static_cast<std::ptrdiff_t>(apart.size() / 2);
  std::nth_element(apart.begin(), middle, apart.end());
  return *middle;
}

Bucket all_since(SeriesReader& reader, const std::vector<FamilyLine>& families,
                 std::int64_t since) {
  Bucket out;
  for (const FamilyLine& family : families) {
    if (family.x_last < since) continue;
    for (const auto& entry :
         reader.buckets(family, kValueColumn, since, family.x_last + 1, kWholeLevel))
      out.append(entry.second);
  }
  return out;
}

void add_errors(std::optional<double>& sum, const Bucket& some) {
  sum = sum.value_or(0) + (some.n > 0 ? some.sum : 0);
}

void read_series(SeriesReader& reader, std::string_view name,
                 const std::vector<FamilyLine>& families, std::int64_t since, NodeHealth& out) {
  const FamilyLine& newest = newest_of(families);
  out.heard = std::max(out.heard, newest.x_last);
  const auto [metric, labels] = split_series(name);
  if (name == kCpuSeries) {
    out.cpu = reader.last(newest, kValueColumn);
    out.interval = interval_of(reader, newest);
  }
  if (name == "hw.gpu.utilization{mean}") out.gpu = reader.last(newest, kValueColumn);
  if (name == "system.memory.utilization{system.memory.state=used}")
    out.memory = reader.last(newest, kValueColumn);
  if (metric == "hw.errors") {
    const std::string_view type = label_of(labels, "error.type");
    const Bucket errors = all_since(reader, families, since);
    if (type == "xid") add_errors(out.xids, errors);
    if (type == "corrected") add_errors(out.corrected, errors);
    if (type == "uncorrected") add_errors(out.uncorrected, errors);
  }
  if (metric == "tocsin.gpu.throttled") {
    const Bucket held = all_since(reader, families, since);
    if (held.n > 0) out.throttled = std::max(out.throttled.value_or(0), held.mean());
  }
}

}  // namespace

std::optional<NodeHealth> ask_node_health(SeriesReader& reader, const std::string& owner,
                                          const HealthTimes& times) {
  constexpr FamilyKind kKind[] = {FamilyKind::system};
  std::unordered_map<std::int64_t, std::string> texts;
  for (NameLine& line : reader.names(owner, kKind)) texts.emplace(line.hash, std::move(line.text));
  std::unordered_map<std::int64_t, std::vector<FamilyLine>> of;
  reader.all_families(owner, FamilyKind::system, [&](std::int64_t name, FamilyLine&& family) {
    if (times.until ? cut_samples(reader, *times.until, family) : family.rows > 0)
      of[name].push_back(std::move(family));
  });
  if (of.empty()) return std::nullopt;
  NodeHealth out;
  for (const auto& [name, families] : of) {
    const auto text = texts.find(name);
    if (text != texts.end()) read_series(reader, text->second, families, times.since, out);
  }
  return out;
}

}  // namespace tocsin::insights
