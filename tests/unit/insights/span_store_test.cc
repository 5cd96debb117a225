// Spans: kept by track whatever holds whatever, found by time, summed by phase, and told by rank.
#include <algorithm>
#include <cmath>

#include "tests/unit/insights/fold_folder.h"

namespace tocsin::insights {
namespace {

constexpr std::int64_t kSpansBegin = 1'700'000'000'000'000'000;  // nanoseconds
constexpr std::int64_t kMilli = 1'000'000;

class SpanStoreTest : public FoldFolder {
 protected:
  void tell(std::uint32_t rank = 0) {
    using core::DictionaryType;
    dictionary(worker(rank), {{DictionaryType::worker, "worker_" + std::to_string(rank)},
                              {DictionaryType::span_name, "forward"},
                              {DictionaryType::span_name, "backward"},
                              {DictionaryType::span_name, "data_wait"},
                              {DictionaryType::span_name, "communication"},
                              {DictionaryType::span_name, "gemm"},
                              {DictionaryType::track, "phase"},
                              {DictionaryType::track, "communication"},
                              {DictionaryType::track, "op.gpu/0"}});
  }
  // A step of 10 ms: 1 ms of waiting, twice 2 ms forward, `backward` ms, the rest is nobody's.
  void train(std::uint32_t rank, std::int64_t step, std::int64_t backward,
             std::int64_t length = 10) {
    const std::int64_t start = kSpansBegin + step * 20 * kMilli;
    spans(worker(rank), {span("data_wait", "phase", start, kMilli, step),
                         span("forward", "phase", start + kMilli, 2 * kMilli, step),
                         span("forward", "phase", start + 3 * kMilli, 2 * kMilli, step),
                         span("backward", "phase", start + 5 * kMilli, backward * kMilli, step)});
    step_end(worker(rank), step, start, start + length * kMilli);
  }
  [[nodiscard]] SpanAnswer lanes(std::int64_t from, std::int64_t to,
                                 std::int64_t columns = 100'000) {
    SpanAsk ask;
    ask.run = core::to_text(run());
    ask.from = kSpansBegin / 1000 + from * 1000;  // milliseconds from the beginning on
    ask.to = kSpansBegin / 1000 + to * 1000;
    ask.columns = columns;
    auto answer = ask_spans(*reader(), ask);
    EXPECT_TRUE(answer);
    return answer ? *answer : SpanAnswer();
  }
};

TEST_F(SpanStoreTest, PhasesOfAStepAreSummedWhenItIsOver) {
  tell();
  for (std::int64_t step = 0; step < 6; ++step) {
    train(0, step, 3);
    commit();
    restart();  // in the middle of the run, with steps that were begun
  }
  spans(worker(),
        {span("forward", "phase", kSpansBegin + 6 * 20 * kMilli, kMilli, 6)});  // not over
  commit();
  SeriesAsk ask = asked();
  ask.name = "phase/.*";
  const auto answer = ask_series(*reader(), ask);
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->lines.size(), 3u);
  for (const SeriesLine& line : answer->lines) {
    ASSERT_EQ(line.points.size(), 6u) << line.name.text;
    const double seconds = line.name.text == "phase/forward"    ? 0.004
                           : line.name.text == "phase/backward" ? 0.003
                                                                : 0.001;
    for (const SeriesPoint& point : line.points) EXPECT_NEAR(point.value.sum, seconds, 1e-12);
  }
}

TEST_F(SpanStoreTest, AStepThatWasBegunBeforeKill9IsSummedWhole) {
  tell();
  spans(worker(), {span("forward", "phase", kSpansBegin, kMilli, 3)});
  commit();
  restart();
  spans(worker(), {span("forward", "phase", kSpansBegin + 2 * kMilli, 2 * kMilli, 3)});
  spans(worker(), {span("forward", "phase", kSpansBegin + 5 * kMilli, kMilli, 4)});
  commit();
  SeriesAsk ask = asked();
  ask.name = "phase/forward";
  const auto answer = ask_series(*reader(), ask);
  ASSERT_EQ(answer->lines.size(), 1u);
  ASSERT_EQ(answer->lines[0].points.size(), 1u);
  EXPECT_EQ(answer->lines[0].points[0].x, 3);
  EXPECT_NEAR(answer->lines[0].points[0].value.sum, 0.003, 1e-12);
}

TEST_F(SpanStoreTest, EverySpanThatTouchesATimeIsFoundAlsoOneThatHoldsOthers) {
  tell();
  std::vector<core::SpanRow> all;
  for (std::int64_t at = 0; at < 3000; ++at) {
    all.push_back(span("gemm", "op.gpu/0", kSpansBegin + at * kMilli, kMilli / 2, at / 10));
    // What holds the ten before it comes behind them.
    if (at % 10 == 9)
      all.push_back(
          span("backward", "op.gpu/0", kSpansBegin + (at - 9) * kMilli, 10 * kMilli, at / 10));
    // One is there for a second, and comes last.
    if (at == 2999) all.push_back(span("forward", "op.gpu/0", kSpansBegin, 1000 * kMilli, 0));
  }
  for (std::size_t at = 0; at < all.size(); at += 97) {
    spans(worker(), {all.begin() + static_cast<std::ptrdiff_t>(at),
                     all.begin() + static_cast<std::ptrdiff_t>(std::min(at + 97, all.size()))});
    if (at % 5 == 0) commit();
  }
  commit();
  for (const auto& [from, to] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {0, 3000}, {500, 501}, {995, 1005}, {1500, 1777}, {2990, 4000}, {0, 1}, {5000, 6000}}) {
    const double lo = static_cast<double>(from) * 1000;
    const double hi = static_cast<double>(to) * 1000;
    std::size_t truth = 0;
    double gemm = 0;
    for (const core::SpanRow& row : all) {
      const double start = static_cast<double>(row.start - kSpansBegin) / 1000;
      const double end = start + static_cast<double>(row.duration) / 1000;
      if (start >= hi || end <= lo) continue;
      ++truth;
      if (row.name == core::name_hash("gemm"))
        gemm += (std::min(end, hi) - std::max(start, lo)) / 1e6;
    }
    const auto answer = lanes(from, to);
    if (truth == 0) {
      EXPECT_TRUE(answer.lanes.empty());
      continue;
    }
    ASSERT_EQ(answer.lanes.size(), 1u) << from;
    EXPECT_EQ(answer.lanes[0].spans, static_cast<std::int64_t>(truth)) << from << ' ' << to;
    for (const SpanShare& share : answer.lanes[0].shares) {
      if (answer.names[share.name] == "gemm") {
        EXPECT_NEAR(share.seconds, gemm, 1e-9);
      }
    }
  }
}

TEST_F(SpanStoreTest, WhatIsBelowAColumnBecomesOneBarAndIsCounted) {
  tell();
  std::vector<core::SpanRow> all;
  for (std::int64_t at = 0; at < 1000; ++at)
    all.push_back(span("gemm", "op.gpu/0", kSpansBegin + at * kMilli, kMilli / 2, 0));
  spans(worker(), all);
  commit();
  const auto answer = lanes(0, 1000, 100);
  ASSERT_EQ(answer.lanes.size(), 1u);
  EXPECT_LE(answer.lanes[0].bars.size(), 101u);
  std::int64_t sum = 0;
  for (const SpanBar& bar : answer.lanes[0].bars) sum += bar.merged;
  EXPECT_EQ(sum, 1000);
  EXPECT_EQ(answer.lanes[0].spans, 1000);
  EXPECT_NEAR(answer.lanes[0].shares[0].share, 0.5, 1e-9);
}

TEST_F(SpanStoreTest, RanksAreToldWhatTheirTimeWentIntoAndWhoIsLate) {
  for (std::uint32_t rank = 0; rank < 3; ++rank) tell(rank);
  for (std::int64_t step = 0; step < 50; ++step) {
    for (std::uint32_t rank = 0; rank < 3; ++rank)
      train(rank, step, 3, rank == 1 ? 14 : 10);  // rank 1 ends each step 4 ms behind
    if (step % 7 == 0) commit();
  }
  commit();
  RankAsk ask;
  ask.run = core::to_text(run());
  ask.steps = 20;
  const auto answer = ask_ranks(*reader(), ask);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->from, 30);
  EXPECT_EQ(answer->to, 50);
  EXPECT_EQ(answer->common, 20);
  ASSERT_EQ(answer->ranks.size(), 3u);
  for (const RankLine& rank : answer->ranks) {
    EXPECT_EQ(rank.steps, 20);
    EXPECT_NEAR(rank.seconds, rank.rank == 1 ? 0.28 : 0.2, 1e-6);
    EXPECT_NEAR(rank.compute, 20 * 0.007, 1e-6);
    EXPECT_NEAR(rank.data_wait, 20 * 0.001, 1e-6);
    EXPECT_NEAR(rank.idle, 20 * (rank.rank == 1 ? 0.006 : 0.002), 1e-6);
    EXPECT_NEAR(*rank.lateness, rank.rank == 1 ? 0.004 : 0, 1e-6);
    EXPECT_EQ(rank.last_of, rank.rank == 1 ? 20 : 0);
    EXPECT_NEAR(*rank.without, rank.rank == 1 ? 4.0 / 14 : 0, 1e-6);
    EXPECT_FALSE(rank.overlap);
  }
  EXPECT_NEAR(answer->late[1][19], 0.004, 1e-6);
  const auto steps = ask_steps(*reader(), ask.run, ".*", 5);
  ASSERT_TRUE(steps);
  ASSERT_EQ(steps->size(), 5u);
  EXPECT_EQ((*steps)[4].step, 49);
  EXPECT_NEAR((*steps)[4].seconds, 0.01, 1e-6);
  for (const StepPhase& phase : (*steps)[4].phases) {
    const double seconds = phase.name == "forward"     ? 0.004
                           : phase.name == "backward"  ? 0.003
                           : phase.name == "data_wait" ? 0.001
                                                       : 0.002;
    EXPECT_NEAR(phase.median, seconds, 1e-6) << phase.name;
    EXPECT_NEAR(phase.max, phase.name.empty() ? 0.006 : seconds, 1e-6) << phase.name;
  }
}

TEST_F(SpanStoreTest, KernelsHideCommunicationThatRunsBesideThem) {
  tell();
  const std::int64_t start = kSpansBegin;
  spans(worker(), {span("gemm", "op.gpu/0", start, 6 * kMilli, 0),
                   span("communication", "communication", start + 4 * kMilli, 4 * kMilli, 0)});
  step_end(worker(), 0, start, start + 10 * kMilli);
  commit();
  RankAsk ask;
  ask.run = core::to_text(run());
  const auto answer = ask_ranks(*reader(), ask);
  ASSERT_EQ(answer->ranks.size(), 1u);
  const RankLine& rank = answer->ranks[0];
  EXPECT_NEAR(rank.compute, 0.006, 1e-6);
  EXPECT_NEAR(rank.communication, 0.002, 1e-6);  // what is not hidden
  EXPECT_NEAR(rank.idle, 0.002, 1e-6);
  EXPECT_NEAR(*rank.overlap, 0.5, 1e-3);
  EXPECT_FALSE(rank.without);  // it is alone
}

}  // namespace
}  // namespace tocsin::insights
