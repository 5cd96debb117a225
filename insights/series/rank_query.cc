#include "insights/series/rank_query.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>

#include "insights/series/series_query.h"
#include "insights/series/span_query.h"

namespace tocsin::insights {
namespace {

constexpr std::int64_t kMicrosOfASecond = 1'000'000;
constexpr std::size_t kMostSpansOfARank = 200'000;
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kForever = std::numeric_limits<double>::infinity();

enum class Spent : std::size_t { compute, communication, data_wait, other };
constexpr std::size_t kSpentKinds = 4;
using Intervals = std::vector<std::pair<double, double>>;  // microseconds

// One step of one rank.
struct RankStep {
  double start = 0, end = -1;  // microseconds; end < 0: it was not ended
  std::array<Intervals, kSpentKinds> phases;
  Intervals gpu;
  std::map<std::string, double> named;  // seconds of phases, summed
  [[nodiscard]] bool ended() const { return end >= 0; }
  [[nodiscard]] double seconds() const { return (end - start) / kMicrosOfASecond; }
};
struct RankSteps {
  std::int64_t rank = 0;
  std::string worker;
  std::vector<RankStep> steps;  // from `from` on
  bool gpu = false;             // spans of op.gpu are there
  bool naming = false;          // phases are wanted by name
  double begin = kForever;      // of its first step
};
struct RankReading {
  std::int64_t from = 0, to = 0;
  bool spans = false;
  std::vector<RankSteps> ranks;
};

Spent spent_on(const std::string& phase) {
  if (phase == "forward" || phase == "backward" || phase == "optimizer") return Spent::compute;
  if (phase == "communication") return Spent::communication;
  return phase == "data_wait" ? Spent::data_wait : Spent::other;
}

// The newest client of a worker has its steps from its first one on.
void read_clocks(SeriesReader& reader, const RankAsk& ask,
                 const std::function<bool(const std::string&)>& fits, bool naming,
                 RankReading& out) {
  std::map<std::int64_t, std::vector<FamilyLine>> clocks;
  std::int64_t last = -1;
  reader.all_families(ask.run, FamilyKind::clock, [&](std::int64_t, FamilyLine&& family) {
    if (family.mode != core::Mode::train || !fits(family.worker)) return;
    last = std::max(last, family.x_last);
    clocks[family.rank].push_back(std::move(family));
  });
  out.to = ask.to.value_or(last + 1);
  out.from = std::max<std::int64_t>(0, ask.from.value_or(out.to - ask.steps));
  out.to = std::max(out.to, out.from);
  for (const auto& [rank, families] : clocks) {
    RankSteps one;
    one.rank = rank;
    one.naming = naming;
    one.steps.resize(static_cast<std::size_t>(out.to - out.from));
    for (const Stretch& part : stretches(families)) {
      if (part.superseded) continue;
      one.worker = part.family.worker;
      const std::int64_t lo = std::max(part.lo, out.from);
      const std::int64_t hi = std::min(part.hi, out.to);
      if (lo >= hi) continue;
      reader.rows(
          part.family, lo, hi,
          [&](const SeriesRows& rows) {
            for (std::size_t at = 0; at < rows.size(); ++at) {
              if (rows.x[at] < lo || rows.x[at] >= hi) continue;
              RankStep& step = one.steps[static_cast<std::size_t>(rows.x[at] - out.from)];
              step.end = rows.columns[kTimeColumn][at];
              step.start = step.end - rows.columns[kValueColumn][at] * kMicrosOfASecond;
              one.begin = std::min(one.begin, step.start);
            }
          },
          3);
    }
    if (!one.worker.empty()) out.ranks.push_back(std::move(one));
  }
}

void take_span(RankSteps& rank, std::int64_t from, const StoredSpan& span, const std::string& track,
               const std::string& name) {
  const std::int64_t at = span.step - from;
  if (span.nanos < 0 || at < 0 || at >= static_cast<std::int64_t>(rank.steps.size())) return;
  RankStep& step = rank.steps[static_cast<std::size_t>(at)];
  if (!step.ended()) return;
  const std::pair<double, double> part{std::max(span.start, step.start),
                                       std::min(span.end, step.end)};
  if (rank.naming && track == "phase") step.named[name] += span.nanos / 1e9;
  if (part.first >= part.second) return;
  if (track.starts_with("op.gpu")) {
    rank.gpu = true;
    step.gpu.push_back(part);
  } else {
    const Spent on = track == "communication" ? Spent::communication : spent_on(name);
    step.phases[static_cast<std::size_t>(on)].push_back(part);
  }
}

void read_rank_spans(SeriesReader& reader, const std::string& run, RankReading& out) {
  const auto tracks = reader.texts(run, static_cast<std::int64_t>(FamilyKind::span));
  const auto texts = reader.texts(run, name_kind::kSpanName);
  static const std::string kNameless = "a span without a name";
  std::unordered_map<std::int64_t, RankSteps*> ranks;
  double end = 0;
  for (RankSteps& one : out.ranks) {
    ranks.emplace(one.rank, &one);
    for (const RankStep& step : one.steps) end = std::max(end, step.end);
  }
  std::vector<std::pair<std::string, FamilyLine>> families;
  std::int64_t newest = 0;
  reader.all_families(run, FamilyKind::clock, [&](std::int64_t, FamilyLine&& family) {
    newest = std::max(newest, family.x_last);
  });
  reader.all_families(run, FamilyKind::span, [&](std::int64_t track, FamilyLine&& family) {
    const auto text = tracks.find(track);
    if (text == tracks.end() || family.mode != core::Mode::train) return;
    const bool counts = text->second == "phase" || text->second == "communication" ||
                        text->second.starts_with("op.gpu");
    if (counts && ranks.contains(family.rank))
      families.emplace_back(text->second, std::move(family));
  });
  // At the end of the run everything behind the first step is wanted.
  double to = end;
  if (out.to > newest) to = kForever;
  for (const auto& [track, family] : families) {
    RankSteps& rank = *ranks.at(family.rank);
    if (!std::isfinite(rank.begin)) continue;
    out.spans = true;
    (void)visit_spans(reader, family, rank.begin, to, kMostSpansOfARank,
                      [&, called = &track](const StoredSpan& span) {
                        const auto text = texts.find(static_cast<std::int64_t>(span.name));
                        take_span(rank, out.from, span, *called,
                                  text == texts.end() ? kNameless : text->second);
                      });
  }
}

core::Result<RankReading> read_ranks(SeriesReader& reader, const RankAsk& ask,
                                     const std::string& worker, bool naming) {
  auto fits = name_test("worker", worker);
  if (!fits) return fits.error();
  RankReading out;
  read_clocks(reader, ask, *fits, naming, out);
  read_rank_spans(reader, ask.run, out);
  return out;
}

// What each kind adds to what those before it have taken, in seconds.
struct StepSpent {
  std::array<double, kSpentKinds> seconds{};
  double idle = 0;
  double overlapped = 0, communication = 0;  // all of it, and what ran beside computing
};
StepSpent spent_of(const RankStep& step, bool gpu) {
  // Kernels tell what was computed. Without them only phases do, and what a phase holds is not itself.
  const Intervals& computing = gpu ? step.gpu : step.phases[0];
  static constexpr std::array<Spent, kSpentKinds> kByKernels{Spent::compute, Spent::communication,
                                                             Spent::data_wait, Spent::other};
  static constexpr std::array<Spent, kSpentKinds> kByPhases{Spent::communication, Spent::data_wait,
                                                            Spent::compute, Spent::other};
  StepSpent out;
  Intervals taken;
  double before = 0;
  for (const Spent one : gpu ? kByKernels : kByPhases) {
    const auto at = static_cast<std::size_t>(one);
    const Intervals& added = one == Spent::compute ? computing : step.phases[at];
    if (added.empty()) continue;
    taken.insert(taken.end(), added.begin(), added.end());
    const double now = union_seconds(taken);
    out.seconds[at] = now - std::exchange(before, now);
  }
  out.idle = std::max(0.0, step.seconds() - before);
  if (!gpu) return out;
  Intervals communication = step.phases[static_cast<std::size_t>(Spent::communication)];
  Intervals compute = computing;
  Intervals both = communication;
  both.insert(both.end(), compute.begin(), compute.end());
  out.communication = union_seconds(communication);
  out.overlapped = out.communication + union_seconds(compute) - union_seconds(both);
  return out;
}

// Of each step the greatest own time of all ranks, and of all but the one that has it.
struct OwnTimes {
  double greatest = 0, second = 0;
  std::size_t whose = 0;
  void add(std::size_t rank, double seconds) {
    if (seconds > greatest) {
      second = greatest;
      greatest = seconds;
      whose = rank;
    } else {
      second = std::max(second, seconds);
    }
  }
};

struct Lateness {
  double sum = 0;
  std::int64_t of = 0;
};

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

StepLine line_of_step(const RankReading& reading, std::size_t at, std::int64_t step) {
  StepLine out;
  out.step = step;
  std::vector<double> lengths;
  std::vector<double> rests;
  std::map<std::string, std::vector<double>> phases;
  for (const RankSteps& rank : reading.ranks) {
    const RankStep& one = rank.steps[at];
    if (!one.ended()) continue;
    for (const auto& phase : one.named) phases[phase.first].resize(lengths.size(), 0.0);
    for (auto& [name, seconds] : phases) {
      const auto found = one.named.find(name);
      seconds.resize(lengths.size(), 0.0);
      seconds.push_back(found == one.named.end() ? 0 : found->second);
    }
    Intervals all;
    for (const Intervals& some : one.phases) all.insert(all.end(), some.begin(), some.end());
    lengths.push_back(one.seconds());
    rests.push_back(std::max(0.0, one.seconds() - union_seconds(all)));
  }
  out.ranks = static_cast<std::int64_t>(lengths.size());
  if (lengths.empty()) return out;
  phases[""] = rests;
  out.seconds = median_of(lengths);
  for (const auto& [name, seconds] : phases)
    out.phases.push_back({name, median_of(seconds),
                          *std::min_element(seconds.begin(), seconds.end()),
                          *std::max_element(seconds.begin(), seconds.end())});
  return out;
}

}  // namespace

core::Result<RankAnswer> ask_ranks(SeriesReader& reader, const RankAsk& ask) {
  const auto reading = read_ranks(reader, ask, ".*", false);
  if (!reading) return reading.error();
  RankAnswer out;
  out.from = reading->from;
  out.to = reading->to;
  out.spans = reading->spans;
  const std::size_t count = reading->ranks.size();
  const auto length = static_cast<std::size_t>(out.to - out.from);
  out.late.assign(count, std::vector<double>(length, kNoNumber));
  std::vector<OwnTimes> own(length);
  std::vector<Lateness> late(count);
  for (std::size_t r = 0; r < count; ++r) {
    const RankSteps& rank = reading->ranks[r];
    RankLine line;
    line.rank = rank.rank;
    line.worker = rank.worker;
    double overlapped = 0;
    double communication = 0;
    for (std::size_t at = 0; at < length; ++at) {
      const RankStep& step = rank.steps[at];
      if (!step.ended()) continue;
      const StepSpent spent = spent_of(step, rank.gpu);
      ++line.steps;
      line.seconds += step.seconds();
      line.compute += spent.seconds[0];
      line.communication += spent.seconds[1];
      line.data_wait += spent.seconds[2];
      line.other += spent.seconds[3];
      line.idle += spent.idle;
      overlapped += spent.overlapped;
      communication += spent.communication;
      own[at].add(r, step.seconds() - spent.seconds[1]);
    }
    if (communication > 0 && rank.gpu) line.overlap = overlapped / communication;
    out.ranks.push_back(std::move(line));
  }
  double real = 0;
  std::vector<double> saved(count, 0);
  for (std::size_t at = 0; at < length; ++at) {
    double first = kForever;
    double last = 0;
    std::size_t ended = 0;
    for (const RankSteps& rank : reading->ranks) {
      if (!rank.steps[at].ended()) continue;
      ++ended;
      first = std::min(first, rank.steps[at].end);
      last = std::max(last, rank.steps[at].end);
    }
    if (ended == 0 || ended < count) continue;
    ++out.common;
    real += own[at].greatest;
    saved[own[at].whose] += own[at].greatest - own[at].second;
    for (std::size_t r = 0; r < count; ++r) {
      const double behind = (reading->ranks[r].steps[at].end - first) / kMicrosOfASecond;
      out.late[r][at] = behind;
      late[r].sum += behind;
      ++late[r].of;
      out.ranks[r].most_late = std::max(out.ranks[r].most_late, behind);
      if (count > 1 && last > first && reading->ranks[r].steps[at].end == last)
        ++out.ranks[r].last_of;
    }
  }
  for (std::size_t r = 0; r < count; ++r) {
    if (late[r].of > 0) out.ranks[r].lateness = late[r].sum / static_cast<double>(late[r].of);
    if (count > 1 && real > 0) out.ranks[r].without = saved[r] / real;
  }
  return out;
}

core::Result<std::vector<StepLine>> ask_steps(SeriesReader& reader, const std::string& run,
                                              const std::string& worker, std::int64_t steps) {
  RankAsk ask;
  ask.run = run;
  ask.steps = steps;
  const auto reading = read_ranks(reader, ask, worker, true);
  if (!reading) return reading.error();
  std::vector<StepLine> out;
  for (std::int64_t step = reading->from; step < reading->to; ++step) {
    StepLine line = line_of_step(*reading, static_cast<std::size_t>(step - reading->from), step);
    if (line.ranks > 0) out.push_back(std::move(line));
  }
  return out;
}

}  // namespace tocsin::insights
