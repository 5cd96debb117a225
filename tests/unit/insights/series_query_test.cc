// Curves: one line through attempts, a number that does not depend on the view, workers as one.
#include <cmath>

#include "tests/unit/insights/series_folder.h"

namespace tocsin::insights {
namespace {

class SeriesQueryTest : public SeriesFolder {};

TEST_F(SeriesQueryTest, AResumedRunDrawsOneLineAndTheReplacedPartApart) {
  auto store = writer();
  name(*store);
  for (std::int64_t x = 0; x < 150; ++x) add(*store, x, 1.0, segment(1));
  for (std::int64_t x = 100; x < 300; ++x) add(*store, x, 2.0, segment(2));
  ASSERT_TRUE(store->commit({}));
  const auto answer = ask_series(*reader(), asked());
  ASSERT_EQ(answer->lines.size(), 3);
  std::int64_t next = 0;
  for (const SeriesLine& line : answer->lines) {
    if (line.superseded) {
      EXPECT_EQ(line.points.front().x, 100);
      EXPECT_EQ(line.points.back().x, 149);
      EXPECT_EQ(line.of.incarnation, 1);
      continue;
    }
    for (const SeriesPoint& point : line.points) {
      EXPECT_EQ(point.x, next++);  // none missing, none twice
      EXPECT_EQ(point.value.last, point.x < 100 ? 1.0 : 2.0);
    }
  }
  EXPECT_EQ(next, 300);
  // Zoomed out, a bucket that holds the seam has values of both lines, each of its own.
  const auto wide = ask_series(*reader(), asked(4));
  std::uint32_t drawn = 0;
  for (const SeriesLine& line : wide->lines) {
    for (const SeriesPoint& point : line.points) drawn += line.superseded ? 0 : point.value.n;
  }
  EXPECT_EQ(drawn, 300);
}

TEST_F(SeriesQueryTest, ASmoothedValueDoesNotDependOnTheViewAndAConstantStays) {
  auto store = writer();
  name(*store);
  name(*store, 6, "flat");
  for (std::int64_t x = 0; x < 20'000; ++x) {
    add(*store, x,
        std::sin(static_cast<double>(x) / 300) + static_cast<double>((x * 7919) % 100) / 100);
    add(*store, x, 0.1, segment(), 6);
  }
  ASSERT_TRUE(store->commit({}));
  SeriesAsk ask = asked(2000);
  ask.smooth = 200;
  const auto all = ask_series(*reader(), ask);
  ask.from = 9000;
  ask.to = 10'000;
  const auto part = ask_series(*reader(), ask);
  ASSERT_EQ(part->level, 0);
  int compared = 0;
  for (const SeriesPoint& wide : all->lines[0].points) {
    const std::int64_t last = wide.x + (std::int64_t{1} << all->level) - 1;
    for (const SeriesPoint& narrow : part->lines[0].points) {
      if (narrow.x != last) continue;
      EXPECT_NEAR(*wide.smooth, *narrow.smooth, 1e-3) << last;
      ++compared;
    }
  }
  EXPECT_GT(compared, 50);
  ask.name = "flat";
  const auto smoothed = ask_series(*reader(), ask);
  for (const SeriesPoint& point : smoothed->lines[0].points) EXPECT_NEAR(*point.smooth, 0.1, 1e-12);
}

TEST_F(SeriesQueryTest, WorkersBecomeOneBucketByBucket) {
  auto store = writer();
  name(*store);
  for (std::int64_t x = 0; x < 10; ++x) {
    add(*store, x, 1.0, segment(1, 9));
    add(*store, x, 4.0, segment(1, 10));
  }
  ASSERT_TRUE(store->commit({}));
  const auto value = [&](Together how) {
    SeriesAsk ask = asked();
    ask.together = how;
    const auto answer = ask_series(*reader(), ask);
    EXPECT_EQ(answer->lines.size(), 1);
    EXPECT_EQ(answer->lines[0].workers, 2);
    return answer->lines[0].points[3].value.mean();
  };
  EXPECT_EQ(value(Together::min), 1.0);
  EXPECT_EQ(value(Together::max), 4.0);
  EXPECT_EQ(value(Together::mean), 2.5);
  EXPECT_EQ(value(Together::sum), 5.0);
  EXPECT_EQ(value(Together::spread), 3.0);
  SeriesAsk one = asked();
  one.worker = "worker_1";
  EXPECT_EQ(ask_series(*reader(), one)->lines.size(), 1);
}

TEST_F(SeriesQueryTest, TimesTurnIntoSteps) {
  auto store = writer();
  name(*store);
  for (std::int64_t x = 0; x < 5000; ++x) add(*store, x, 1.0);  // a step a second
  ASSERT_TRUE(store->commit({}));
  SeriesAsk ask = asked(10'000);
  ask.from_time = static_cast<std::int64_t>(1e15) + 1234LL * 1'000'000 - 5;
  ask.to_time = static_cast<std::int64_t>(1e15) + 2345LL * 1'000'000;
  const auto answer = ask_series(*reader(), ask);
  EXPECT_EQ(answer->lines[0].points.front().x, 1234);
  EXPECT_EQ(answer->lines[0].points.back().x, 2344);
  EXPECT_EQ(*answer->lines[0].points.front().time, 1e15 + 1234e6);
}

TEST_F(SeriesQueryTest, AWrongExpressionIsNamed) {
  auto store = writer();
  SeriesAsk ask = asked();
  ask.name = "loss(";
  const auto answer = ask_series(*reader(), ask);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("name: not a regular expression"), std::string::npos);
}

TEST_F(SeriesQueryTest, ARangeIsSettledOnceTheNewestSegmentHasChunksBehindIt) {
  auto store = writer();
  name(*store);
  for (std::int64_t x = 0; x < 1100; ++x) add(*store, x, 1.0, segment(1));
  ASSERT_TRUE(store->commit({}));
  const std::int64_t chunked =
      reader()->families(core::to_text(run()), FamilyKind::scalar, 5).at(0).x_chunked;
  ASSERT_GT(chunked, 500);
  ASSERT_LT(chunked, 1099) << "the rest waits for more rows";
  SeriesAsk ask = asked(5000);
  EXPECT_FALSE(ask_series(*reader(), ask)->settled) << "without an end, the next row belongs to it";
  ask.to = 500;
  EXPECT_TRUE(ask_series(*reader(), ask)->settled);
  ask.to = chunked + 1;
  EXPECT_FALSE(ask_series(*reader(), ask)->settled);
  ask.to = 500;
  ask.name = "nothing";
  EXPECT_FALSE(ask_series(*reader(), ask)->settled) << "the name may still appear";
  // A later attempt goes over these steps again.
  ask.name = "loss";
  add(*store, 100, 2.0, segment(2));
  ASSERT_TRUE(store->commit({}));
  EXPECT_FALSE(ask_series(*reader(), ask)->settled);
}

}  // namespace
}  // namespace tocsin::insights
