#include "insights/series/loop_query.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "insights/series/span_query.h"

namespace tocsin::insights {
namespace {

constexpr std::size_t kMostOperations = 1'000'000;  // spans of one answer
constexpr double kMicrosOfOneSecond = 1e6;

// By device and name: calls and own microseconds.
using OperationSums = std::map<std::pair<bool, std::uint64_t>, std::pair<std::int64_t, double>>;

// What lies inside a span is not its own.
void add_own_times(std::vector<StoredSpan>& spans, bool gpu, OperationSums& out) {
  std::sort(spans.begin(), spans.end(), [](const StoredSpan& a, const StoredSpan& b) {
    return a.start != b.start ? a.start < b.start : a.end > b.end;
  });
  std::vector<const StoredSpan*> holding;
  for (const StoredSpan& span : spans) {
    while (!holding.empty() && holding.back()->end <= span.start) holding.pop_back();
    auto& [calls, own] = out[{!gpu, span.name}];
    ++calls;
    own += span.end - span.start;
    if (!holding.empty() && span.end <= holding.back()->end)
      out[{!gpu, holding.back()->name}].second -= span.end - span.start;
    holding.push_back(&span);
  }
}

}  // namespace

std::vector<LoopPart> ask_loop(SeriesReader& reader, const std::string& run) {
  std::map<std::int64_t, LoopPart> attempts;
  reader.all_families(run, FamilyKind::clock, [&](std::int64_t, FamilyLine&& family) {
    const auto ended = reader.first(family, kTimeColumn);
    const auto seconds = reader.first(family, kValueColumn);
    const auto end = reader.last(family, kTimeColumn);
    if (!ended || !seconds || !end) return;
    const double begin = *ended - *seconds * kMicrosOfOneSecond;
    if (begin <= 0) return;
    const auto [found, fresh] =
        attempts.try_emplace(family.attempt, LoopPart{family.attempt, begin, *end});
    found->second.begin = std::min(found->second.begin, begin);
    found->second.end = std::max(found->second.end, *end);
  });
  std::vector<LoopPart> out;
  out.reserve(attempts.size());
  for (const auto& one : attempts) out.push_back(one.second);
  std::sort(out.begin(), out.end(),
            [](const LoopPart& a, const LoopPart& b) { return a.begin < b.begin; });
  return out;
}

OperationAnswer ask_operations(SeriesReader& reader, const std::string& run, std::size_t most) {
  const auto tracks = reader.texts(run, static_cast<std::int64_t>(FamilyKind::span));
  const auto texts = reader.texts(run, name_kind::kSpanName);
  std::vector<std::pair<bool, FamilyLine>> families;
  reader.all_families(run, FamilyKind::span, [&](std::int64_t track, FamilyLine&& family) {
    const auto text = tracks.find(track);
    if (text == tracks.end()) return;
    const bool gpu = text->second.starts_with("op.gpu");
    if (gpu || text->second.starts_with("op.cpu")) families.emplace_back(gpu, std::move(family));
  });
  OperationAnswer out;
  OperationSums sums;
  for (const auto& one : families) {
    std::vector<StoredSpan> spans;
    const std::size_t left = kMostOperations - static_cast<std::size_t>(out.spans);
    const bool all = visit_spans(reader, one.second, 0, std::numeric_limits<double>::infinity(),
                                 left, [&](const StoredSpan& span) {
                                   if (span.nanos >= 0) spans.push_back(span);
                                 });
    out.cut = out.cut || !all;
    out.spans += static_cast<std::int64_t>(spans.size());
    add_own_times(spans, one.first, sums);
  }
  std::map<bool, double> whole;
  for (const auto& sum : sums) whole[sum.first.first] += sum.second.second;
  for (const auto& sum : sums) {
    const auto text = texts.find(static_cast<std::int64_t>(sum.first.second));
    const double all = whole[sum.first.first];
    out.lines.push_back({sum.first.first ? "CPU" : "GPU",
                         text == texts.end() ? "a span without a name" : text->second,
                         sum.second.first, sum.second.second / kMicrosOfOneSecond,
                         all > 0 ? sum.second.second / all : 0});
  }
  std::stable_sort(out.lines.begin(), out.lines.end(), [](const auto& a, const auto& b) {
    return a.device != b.device ? a.device > b.device : a.seconds > b.seconds;
  });
  std::map<std::string, std::size_t> taken;
  std::erase_if(out.lines, [&](const OperationLine& line) { return ++taken[line.device] > most; });
  return out;
}

}  // namespace tocsin::insights
