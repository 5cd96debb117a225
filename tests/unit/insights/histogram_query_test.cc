// Histograms of tensors from frames into the store, and their bins over the steps.
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "insights/store/database.h"
#include "tests/unit/insights/fold_folder.h"

namespace tocsin::insights {
namespace {

using Elements = std::vector<double>;
using Bins = std::map<std::int64_t, std::int64_t>;  // by bucket; negative ones apart

// Of the definition, not of the code: i with 2^(i/8) < |x| <= 2^((i+1)/8).
std::int64_t bucket_by_definition(double x) {
  auto at = static_cast<std::int64_t>(std::floor(std::log2(std::fabs(x)) * 8)) - 1;
  while (std::exp2(static_cast<double>(at + 1) / 8) < std::fabs(x)) ++at;
  return at;
}

class HistogramQueryTest : public FoldFolder {
 protected:
  void name_it(const std::string& name) {
    dictionary(worker(), {{core::DictionaryType::tensor, name}});
  }
  // One tensor at one step as a producer sends it. `wide`: its buckets reach from there on.
  void send(const std::string& name, std::int64_t step, const Elements& elements,
            std::uint32_t rank = 0, std::uint64_t incarnation = 1) {
    core::SummaryRow row;
    row.name = core::name_hash(name);
    row.count = elements.size();
    Bins positive;
    Bins negative;
    for (const double x : elements) {
      row.nan += std::isnan(x) ? 1 : 0;
      row.posinf += std::isinf(x) && x > 0 ? 1 : 0;
      row.neginf += std::isinf(x) && x < 0 ? 1 : 0;
      row.zero += x == 0 ? 1 : 0;
      row.negative += x < 0 ? 1 : 0;
      if (std::isfinite(x) && x != 0) ++(x > 0 ? positive : negative)[bucket_by_definition(x)];
    }
    core::FrameHeader header = worker(rank);
    header.incarnation = incarnation;
    header.step = step;
    header.sequence = ++sequence_;
    header.time = step * 1'000'000'000;
    frames_.summary(header, std::span(&row, 1));
    const auto listed = [](const Bins& bins, std::int32_t& offset) {
      std::vector<std::uint64_t> out;
      if (bins.empty()) return out;
      offset = static_cast<std::int32_t>(bins.begin()->first);
      out.resize(static_cast<std::size_t>(bins.rbegin()->first - offset + 1), 0);
      for (const auto& [at, n] : bins)
        out[static_cast<std::size_t>(at - offset)] = static_cast<std::uint64_t>(n);
      return out;
    };
    std::int32_t up = 0;
    std::int32_t down = 0;
    const auto above = listed(positive, up);
    const auto below = listed(negative, down);
    frames_.histogram(0, up, above, down, below);
    take(frames_.finish());
    truth_[step].insert(truth_[step].end(), elements.begin(), elements.end());
  }
  HistogramAnswer ask(std::int64_t columns = 200, std::int64_t rows = 160,
                      const std::string& name = ".*") {
    HistogramAsk asked;
    asked.of.run = core::to_text(run());
    asked.of.name = name;
    asked.columns = columns;
    asked.rows = rows;
    auto reading = reader();
    const auto answer = ask_histogram(*reading, asked);
    EXPECT_TRUE(answer);
    EXPECT_TRUE(reading->failure());
    return answer ? *answer : HistogramAnswer();
  }
  // Every column has exactly what a scan of the elements of its steps gives.
  void is_what_a_scan_gives(const HistogramAnswer& answer) {
    const std::int64_t width = std::int64_t{1} << answer.level;
    for (std::size_t at = 0; at < answer.columns.size(); ++at) {
      Bins positive;
      Bins negative;
      std::uint64_t zero = 0;
      std::uint64_t bad = 0;
      const std::int64_t from = answer.from + static_cast<std::int64_t>(at) * width;
      for (auto step = truth_.lower_bound(from); step != truth_.lower_bound(from + width); ++step) {
        for (const double x : step->second) {
          zero += x == 0 ? 1 : 0;
          bad += std::isfinite(x) ? 0 : 1;
          if (std::isfinite(x) && x != 0)
            ++(x > 0 ? positive : negative)[bucket_by_definition(x) >> (3 - answer.scale)];
        }
      }
      const ExponentialCounts& counts = answer.columns[at].counts;
      EXPECT_EQ(counts.zero, zero);
      EXPECT_EQ(counts.nan + counts.posinf + counts.neginf, bad);
      EXPECT_EQ(bins_of(counts.positive), positive) << at;
      EXPECT_EQ(bins_of(counts.negative), negative) << at;
    }
  }
  static Bins bins_of(const MagnitudeCounts& of) {
    Bins out;
    for (std::size_t at = 0; at < of.counts.size(); ++at) {
      if (of.counts[at] > 0)
        out[of.first + static_cast<std::int64_t>(at)] = static_cast<std::int64_t>(of.counts[at]);
    }
    return out;
  }

  std::map<std::int64_t, Elements> truth_;  // by step, of all tensors and workers
  std::mt19937 chance_{7};
  Elements normal(double size, std::size_t count = 500) {
    std::normal_distribution<double> of(0, size);
    Elements out(count);
    for (double& x : out) x = of(chance_);
    return out;
  }
};

TEST_F(HistogramQueryTest, EveryColumnHasWhatAScanOfTheElementsGives) {
  name_it("w");
  for (std::int64_t step = 0; step < 300; ++step) {
    Elements elements = normal(std::exp2(static_cast<double>(step) / 30));
    elements[0] = 0;
    elements[1] = 1;  // a power of two ends its bucket
    if (step == 120) elements[2] = std::numeric_limits<double>::quiet_NaN();
    if (step > 200) elements[3] = -std::numeric_limits<double>::infinity();
    send("w", step, elements);
    if (step % 70 == 0) commit();
  }
  commit();
  for (const std::int64_t columns : {7, 100, 300}) {
    for (const std::int64_t rows : {8, 40, 512}) {
      const HistogramAnswer answer = ask(columns, rows);
      EXPECT_LE((answer.end - answer.first) * 2 + 1, rows);
      is_what_a_scan_gives(answer);
    }
  }
  EXPECT_EQ(ask(300, 512).scale, 3);  // as it came, where there is room
  EXPECT_EQ(ask(300, 512).columns[120].counts.nan, 1U);
  EXPECT_EQ(ask(300, 512).columns[119].counts.nan, 0U);
}

TEST_F(HistogramQueryTest, WorkersAndTensorsAddUpAndWhatALaterClientWentOverCountsOnce) {
  name_it("a");
  name_it("b");
  for (std::int64_t step = 0; step < 20; ++step) {
    send("a", step, normal(1));
    send("a", step, normal(2), 1);
    send("b", step, normal(1e-3));
  }
  commit();
  is_what_a_scan_gives(ask());
  for (std::int64_t step = 10; step < 20; ++step) {  // the worker begins again at step 10
    truth_.erase(step);
    send("a", step, normal(5), 0, 2);
  }
  for (std::int64_t step = 10; step < 20; ++step) send("a", step, normal(5), 1, 2);
  for (std::int64_t step = 10; step < 20; ++step) send("b", step, normal(5), 0, 2);
  commit();
  is_what_a_scan_gives(ask());
  EXPECT_EQ(ask(200, 160, "b").columns[3].counts.elements(), 500U);
}

TEST_F(HistogramQueryTest, WhatReachesOverAllNumbersIsKeptCoarserAndAddsUpExactly) {
  name_it("w");
  send("w", 0, {1e-300, -4e-320, 1, 1e300, std::numeric_limits<double>::max(), 5e-324});
  send("w", 1, normal(1));
  commit();
  const HistogramAnswer answer = ask(200, 512);
  EXPECT_LT(answer.scale, 3);
  is_what_a_scan_gives(answer);
  is_what_a_scan_gives(ask(1, 8));
}

TEST_F(HistogramQueryTest, AFrameThatIsReadAgainCountsOnceAndARestartLosesNothing) {
  name_it("w");
  send("w", 0, normal(1));
  commit();
  restart();
  const auto before = truth_;
  --sequence_;
  send("w", 0, normal(9));  // of the same number
  send("w", 0, normal(9));  // of a step that was there
  truth_ = before;
  send("w", 1, normal(1));
  commit();
  is_what_a_scan_gives(ask());
}

TEST_F(HistogramQueryTest, WhatIsNoHistogramIsLeftOut) {
  name_it("w");
  core::SummaryRow row;
  row.name = core::name_hash("w");
  row.count = 1;
  row.sum = row.sumsq = row.abs_sum = row.min = row.max = 1;
  for (const std::int32_t offset : {std::numeric_limits<std::int32_t>::max(), 8192, -9000}) {
    core::FrameHeader header = worker();
    header.step = static_cast<std::int64_t>(sequence_);
    header.sequence = ++sequence_;
    const std::uint64_t one = 1;
    frames_.summary(header, std::span(&row, 1));
    frames_.histogram(0, offset, std::span(&one, 1), 0, {});
    take(frames_.finish());
  }
  commit();
  const HistogramAnswer answer = ask();
  EXPECT_EQ(answer.tensors, 1);
  for (const HistogramColumn& one : answer.columns) EXPECT_EQ(one.histograms, 0);
}

TEST_F(HistogramQueryTest, TheOlderHalfGivesWayBeforeTensorsDo) {
  name_it("w");
  for (std::int64_t step = 0; step < 100; ++step) send("w", step, normal(1));
  commit();
  ASSERT_TRUE(store_->forget(core::WallTime(), 1, 1));
  const HistogramAnswer answer = ask();
  EXPECT_TRUE(answer.gone);
  EXPECT_EQ(answer.columns[49].histograms, 0);
  EXPECT_EQ(answer.columns[50].histograms, 1);
  EXPECT_FALSE(reader()->gaps(core::to_text(run())).tensors_gone);
  ASSERT_TRUE(store_->forget(core::WallTime(), 1, 20));
  EXPECT_EQ(reader()->size().families, 0);
}

TEST_F(HistogramQueryTest, AFileOfVersionThreeKeepsItsCurves) {
  const SegmentOf of{run(), core::name_hash("worker_0"), 1, 1, 0};
  name(*store_);
  add(*store_, 0, 2.5, of);
  commit();
  store_ = nullptr;
  {
    auto old = StoreDatabase::open(path(), true);
    ASSERT_TRUE(old);
    (*old)->run("DROP TABLE histogram; ALTER TABLE run DROP COLUMN histograms_gone");
    (*old)->run("PRAGMA user_version = 3");
    ASSERT_TRUE((*old)->failure());
  }
  store_ = writer();
  EXPECT_FALSE(std::filesystem::exists(path() + ".aside"));
  EXPECT_EQ(ask_series(*reader(), asked())->lines.size(), 1U);
  name_it("w");
  send("w", 1, normal(1));
  commit();
  is_what_a_scan_gives(ask());
}

TEST(ExponentialCounts, BytesThatAreNoneAreRefusedAndReadBackWhatWasWritten) {
  ExponentialCounts counts;
  counts.positive = {-7, {3, 0, 0, 0, 1, 200, 0, 5}};
  counts.negative = {40, {std::uint64_t{1} << 60}};
  counts.zero = 9;
  const std::string bytes = encode_counts(counts);
  const auto read = decode_counts(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->positive.counts, counts.positive.counts);
  EXPECT_EQ(read->positive.first, -7);
  EXPECT_EQ(read->negative.counts, counts.negative.counts);
  EXPECT_EQ(read->negative.first, 40);
  EXPECT_EQ(read->zero, 9U);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_counts(std::string_view(bytes).substr(0, size))) << size;
  EXPECT_FALSE(decode_counts(bytes + "x"));
  ExponentialCounts more = counts;
  more.coarsen_to(1);
  counts.add(more);  // the coarser one decides
  EXPECT_EQ(counts.scale, 1);
  EXPECT_EQ(counts.positive.first, -2);
  EXPECT_EQ(counts.positive.counts, (std::vector<std::uint64_t>{6, 2 + 400, 10}));
}

}  // namespace
}  // namespace tocsin::insights
