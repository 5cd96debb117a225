// What is older than its class is kept goes, what is younger stays, and answers say what they are made of.
#include <cmath>
#include <random>

#include "insights/series/row_walk.h"
#include "tests/unit/insights/series_folder.h"

namespace tocsin::insights {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kAgesBegin = 1'790'000'000;  // seconds, UTC: the first row
constexpr auto kDay = 24h;

core::WallTime after_begin(core::Duration age) {
  return core::WallTime(std::chrono::seconds(kAgesBegin)) + age;
}

using Row = std::pair<std::int64_t, double>;

class SeriesAgeingTest : public SeriesFolder {
 protected:
  SeriesAgeingTest() { store_ = writer(); }

  // A value a minute.
  void add_rows(FamilyKind kind, std::int64_t from, std::int64_t to, std::uint8_t which = 1) {
    SegmentOf of = segment();
    of.run = run(which);
    store_->name(of.run, kind, {5, "loss", core::Role::loss, "", -1});
    for (std::int64_t x = from; x < to; ++x) {
      std::vector<double> values(columns_of(kind).size(), 0.0);
      const double micros = static_cast<double>(kAgesBegin + x * 60) * 1e6;
      const double value = x % 997 == 5 ? std::nan("") : std::ldexp(double(chance_() % 4096), -10);
      values[0] = value;
      if (values.size() > 1) values[1] = micros;
      if (kind == FamilyKind::span) values[0] = values[1] = micros;
      store_->add(of, kind, 5, core::Mode::train,
                  kind == FamilyKind::system ? (kAgesBegin + x * 60) * 1000 : x, values);
      store_->heard(of.run, static_cast<std::int64_t>(micros));
      rows_.emplace_back(x, value);
      if (x % 700 == 699) {
        ASSERT_TRUE(store_->commit({}));
      }
    }
    ASSERT_TRUE(store_->commit({}));
  }
  // Until it has been through all.
  void age(core::Duration at, const KeepAges& keep = {}, std::size_t most = 7) {
    for (int turn = 0; turn < 10'000; ++turn) {
      const auto through = store_->drop_old(keep, after_begin(at), most);
      ASSERT_TRUE(through) << through.error().message;
      if (*through) return;
    }
    FAIL() << "it never comes to an end";
  }
  FamilyLine family(SeriesReader& reader, FamilyKind kind = FamilyKind::scalar) {
    const auto all = reader.families(core::to_text(run()), kind, 5);
    EXPECT_EQ(all.size(), 1);
    return all.empty() ? FamilyLine() : all.front();
  }
  Buckets directly(std::int64_t lo, std::int64_t hi, std::int64_t level) const {
    Buckets out;
    for (const Row& one : rows_) {
      if (one.first >= lo && one.first < hi) out[one.first >> level].add(one.first, one.second);
    }
    return out;
  }
  static std::string told(const Buckets& buckets) {
    std::string out;
    for (const auto& [at, one] : buckets)
      out += std::to_string(at) + ": " + std::to_string(one.n) + " " + std::to_string(one.nan) +
             " " + std::to_string(one.min) + " " + std::to_string(one.max) + " " +
             std::to_string(one.first) + " " + std::to_string(one.last) + " " +
             std::to_string(one.sum) + " " + std::to_string(one.bad_x) + "\n";
    return out;
  }
  static std::int64_t count(const Buckets& buckets) {
    std::int64_t out = 0;
    for (const auto& entry : buckets) out += entry.second.n + entry.second.bad();
    return out;
  }
  void expect_sound() {
    const auto found = check_series(path());
    ASSERT_TRUE(found);
    EXPECT_TRUE(found->sound()) << (found->lines().empty() ? "" : found->lines().front());
  }
  std::int64_t rows_read(FamilyKind kind = FamilyKind::scalar) {
    auto ask = reader();
    std::int64_t out = 0;
    ask->rows(family(*ask, kind), 0, INT64_MAX,
              [&](const SeriesRows& some) { out += static_cast<std::int64_t>(some.size()); });
    EXPECT_TRUE(ask->failure());
    return out;
  }

  std::unique_ptr<SeriesWriter> store_;
  std::mt19937_64 chance_{20261128};
  std::vector<Row> rows_;
};

TEST_F(SeriesAgeingTest, WhatIsYoungerThanItsAgeStays) {
  add_rows(FamilyKind::scalar, 0, 10'000);
  age(kDay * 89);
  EXPECT_EQ(rows_read(), 10'000);
  auto ask = reader();
  EXPECT_EQ(told(ask->buckets(family(*ask), kValueColumn, 0, 10'000, 0)),
            told(directly(0, 10'000, 0)));
}

TEST_F(SeriesAgeingTest, OfASparedRunNothingGoesWhateverItsAge) {
  add_rows(FamilyKind::scalar, 0, 3000);
  add_rows(FamilyKind::tensor, 0, 3000);
  store_->spare({core::to_text(run())});
  age(kDay * 1000);
  EXPECT_EQ(rows_read(), 3000);
  EXPECT_EQ(rows_read(FamilyKind::tensor), 3000);
  store_->spare({});
  age(kDay * 1000);
  EXPECT_EQ(rows_read(FamilyKind::tensor), 0);
  EXPECT_EQ(rows_read(), 0);
  expect_sound();
}

TEST_F(SeriesAgeingTest, ASparedRunOutlivesTheRoomOfTheFileAndOthersGoBeforeIt) {
  for (std::uint8_t which = 1; which <= 3; ++which) {
    add_rows(FamilyKind::scalar, which * 3000, which * 3000 + 1000, which);
    add_rows(FamilyKind::span, which * 3000, which * 3000 + 1000, which);
  }
  store_->spare({core::to_text(run(1))});
  for (int turn = 0; turn < 10; ++turn) ASSERT_TRUE(store_->forget(core::WallTime(), 1, 10));
  ASSERT_TRUE(store_->forget(after_begin(kDay * 1000), 1ULL << 40U, 10));
  auto ask = reader();
  EXPECT_EQ(ask->families(core::to_text(run(1)), FamilyKind::span, 5).size(), 1);
  EXPECT_EQ(ask->families(core::to_text(run(1)), FamilyKind::scalar, 5).size(), 1);
  EXPECT_TRUE(ask->families(core::to_text(run(2)), FamilyKind::scalar, 5).empty());
  EXPECT_TRUE(ask->families(core::to_text(run(3)), FamilyKind::scalar, 5).empty());
  EXPECT_EQ(rows_read(), 1000);
  expect_sound();
}

// Seven days of minutes; at 92 days the first two are old. Whole chunks go.
TEST_F(SeriesAgeingTest, OldRowsGoAndTheirBucketsTellTheSame) {
  const std::int64_t end = 7 * 24 * 60;
  add_rows(FamilyKind::scalar, 0, end);
  age(kDay * 92);
  auto ask = reader();
  const FamilyLine line = family(*ask);
  const std::int64_t cutoff = 2 * 24 * 60;
  EXPECT_LE(line.kept_from[kRowsPart], cutoff);
  EXPECT_GT(line.kept_from[kRowsPart], cutoff - 512);
  EXPECT_EQ(rows_read(), end - line.kept_from[kRowsPart]);
  EXPECT_EQ(line.least_level(0), line.k0);
  EXPECT_EQ(line.least_level(line.kept_from[kRowsPart]), 0);
  for (std::int64_t level = line.k0; level < 20; ++level)
    EXPECT_EQ(told(ask->buckets(line, kValueColumn, 0, end, level)), told(directly(0, end, level)))
        << level;
  // From where rows are there, single values.
  EXPECT_EQ(told(ask->buckets(line, kValueColumn, line.kept_from[kRowsPart], end, 0)),
            told(directly(line.kept_from[kRowsPart], end, 0)));
  expect_sound();
}

TEST_F(SeriesAgeingTest, ACurveOfWhatIsGoneHasWiderPointsAndEveryValueOnce) {
  const std::int64_t end = 7 * 24 * 60;
  add_rows(FamilyKind::scalar, 0, end);
  EXPECT_EQ(ask_series(*reader(), asked(20'000))->level, 0);
  age(kDay * 92);
  auto ask = reader();
  const FamilyLine line = family(*ask);
  const auto answer = ask_series(*ask, asked(20'000));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->level, line.k0);
  std::int64_t values = 0;
  for (const auto& point : answer->lines.at(0).points) values += point.value.n + point.value.bad();
  EXPECT_EQ(values, end);
  SeriesAsk young = asked(20'000);
  young.from = line.kept_from[kRowsPart];
  EXPECT_EQ(ask_series(*ask, young)->level, 0);
}

// Whatever is asked of whatever is left, no value is told twice, and none that a bucket has is left out.
TEST_F(SeriesAgeingTest, RangesThatAdjoinTellEveryValueOnceAtEveryAge) {
  const std::int64_t end = 40'000;  // 28 days
  add_rows(FamilyKind::tensor, 0, end);
  for (const std::int64_t day : {20, 35, 45, 58, 130, 160, 170}) {
    KeepAges keep;
    keep.tensor_rollups = kDay * 15;  // levels live 15, 60, 240 … days
    age(kDay * day, keep);
    auto ask = reader();
    const FamilyLine line = family(*ask, FamilyKind::tensor);
    for (std::size_t part = 1; part < kKeptParts; ++part)
      EXPECT_LE(std::min(line.kept_from[part], end), line.kept_from[part - 1]);
    for (int look = 0; look < 40; ++look) {
      const auto middle = static_cast<std::int64_t>(chance_() % end);
      const auto level = static_cast<std::int64_t>(chance_() % 22);
      EXPECT_EQ(count(ask->buckets(line, kValueColumn, 0, middle, level)) +
                    count(ask->buckets(line, kValueColumn, middle, end, level)),
                end)
          << "day " << day << ", level " << level << ", " << middle;
    }
    const std::int64_t least = line.least_level(0);
    EXPECT_EQ(told(ask->buckets(line, kValueColumn, 0, end, least)), told(directly(0, end, least)));
    EXPECT_TRUE(ask->failure());
  }
  EXPECT_GT(family(*reader(), FamilyKind::tensor).least_level(0),
            family(*reader(), FamilyKind::tensor).k0 + 4);
  expect_sound();
}

// Fewer rows than a chunk: they are put into one first.
TEST_F(SeriesAgeingTest, AShortRunKeepsItsBuckets) {
  add_rows(FamilyKind::tensor, 0, 100);
  EXPECT_EQ(family(*reader(), FamilyKind::tensor).k0, -1);
  age(kDay * 15);
  EXPECT_EQ(rows_read(FamilyKind::tensor), 0);
  auto ask = reader();
  const FamilyLine line = family(*ask, FamilyKind::tensor);
  EXPECT_EQ(line.rows, 100);
  EXPECT_EQ(told(ask->buckets(line, kValueColumn, 0, 100, line.k0)),
            told(directly(0, 100, line.k0)));
  EXPECT_EQ(*ask->last(line, kValueColumn), rows_.back().second);
  EXPECT_EQ(*ask->last(line, kTimeColumn), static_cast<double>(kAgesBegin + 99 * 60) * 1e6);
  EXPECT_EQ(*ask->first(line, kTimeColumn), static_cast<double>(kAgesBegin) * 1e6);
  expect_sound();
  // Their lowest buckets go too, at their age; wider ones stay.
  age(kDay * 31);
  ask = reader();
  EXPECT_EQ(family(*ask, FamilyKind::tensor).least_level(0), line.k0 + kLevelStep);
  EXPECT_EQ(count(ask->buckets(family(*ask, FamilyKind::tensor), kValueColumn, 0, 100, 0)), 100);
  expect_sound();
}

TEST_F(SeriesAgeingTest, AfterwardsTheRunGoesOn) {
  add_rows(FamilyKind::scalar, 0, 1000);
  age(kDay * 91);
  EXPECT_EQ(rows_read(), 0);
  add_rows(FamilyKind::scalar, 1000, 3000);
  auto ask = reader();
  const FamilyLine line = family(*ask);
  EXPECT_EQ(line.rows, 3000);
  EXPECT_EQ(count(ask->buckets(line, kValueColumn, 0, 3000, 0)), 3000);
  EXPECT_EQ(told(ask->buckets(line, kValueColumn, 0, 3000, 8)), told(directly(0, 3000, 8)));
  EXPECT_EQ(told(ask->buckets(line, kValueColumn, 1000, 3000, 0)), told(directly(1000, 3000, 0)));
  expect_sound();
}

TEST_F(SeriesAgeingTest, SamplesOfADayGoAndTheirBucketsStay) {
  add_rows(FamilyKind::system, 0, 3 * 24 * 60);
  const std::int64_t day = std::int64_t{24} * 3600 * 1000;
  age(kDay * 3);
  auto ask = reader();
  const FamilyLine line = family(*ask, FamilyKind::system);
  const std::int64_t cutoff = kAgesBegin * 1000 + 2 * day;
  EXPECT_LE(line.kept_from[kRowsPart], cutoff);
  EXPECT_GT(line.kept_from[kRowsPart], cutoff - day / 2);
  EXPECT_EQ(count(ask->buckets(line, kValueColumn, 0, INT64_MAX, 40)), 3 * 24 * 60);
  expect_sound();
}

TEST_F(SeriesAgeingTest, SpansGoWhole) {
  add_rows(FamilyKind::span, 0, 5000);
  age(core::Duration(5000min) + 12h);
  auto ask = reader();
  const FamilyLine line = family(*ask, FamilyKind::span);
  EXPECT_GT(line.x_first, 5000 - 720 - 512);
  EXPECT_LE(line.x_first, 5000 - 720);
  std::int64_t spans = 0;
  EXPECT_TRUE(visit_spans(*ask, line, 0, INFINITY, 10'000, [&](const StoredSpan&) { ++spans; }));
  EXPECT_EQ(spans, 5000 - line.x_first);
  // Within a time that is kept, exactly those.
  const auto micros = [](std::int64_t x) { return static_cast<double>(kAgesBegin + x * 60) * 1e6; };
  spans = 0;
  EXPECT_TRUE(visit_spans(*ask, line, micros(4800), micros(4900), 10'000,
                          [&](const StoredSpan&) { ++spans; }));
  EXPECT_EQ(spans, 100);
  expect_sound();
  age(kDay * 30);
  EXPECT_EQ(rows_read(FamilyKind::span), 0);
  expect_sound();
}

TEST_F(SeriesAgeingTest, ATableOfEveryValueSaysWhatIsGone) {
  add_rows(FamilyKind::scalar, 0, 7 * 24 * 60);
  age(kDay * 92);
  const auto open = [this] { return SeriesReader::open(path()); };
  SeriesAsk ask = asked();
  const auto refused = RowWalk::begin(open, ask);
  ASSERT_FALSE(refused);
  const std::int64_t from = family(*reader()).kept_from[kRowsPart];
  EXPECT_EQ(refused.error().code, core::Code::failed_precondition);
  EXPECT_NE(refused.error().message.find("from=" + std::to_string(from)), std::string::npos);
  ask.from = from;
  auto walk = RowWalk::begin(open, ask);
  ASSERT_TRUE(walk);
  std::vector<WalkedRow> rows;
  std::int64_t all = 0;
  while (*walk->next(rows) != nullptr) all += static_cast<std::int64_t>(rows.size());
  EXPECT_EQ(all, 7 * 24 * 60 - from);
}

TEST_F(SeriesAgeingTest, AgesSurviveAnotherWriterAndGoWithTheirRun) {
  add_rows(FamilyKind::scalar, 0, 5000);
  age(kDay * 95);
  const auto before = family(*reader()).kept_from;
  store_.reset();
  store_ = writer();
  EXPECT_EQ(family(*reader()).kept_from, before);
  ASSERT_TRUE(store_->forget(after_begin(kDay * 500), 1ULL << 40U, 10));
  rows_.clear();
  add_rows(FamilyKind::scalar, 0, 100, 1);  // the number of the family is given again
  EXPECT_EQ(family(*reader()).kept_from[kRowsPart], 0);
  EXPECT_EQ(rows_read(), 100);
  expect_sound();
}

TEST(KeepAgesTest, EachLevelLivesFourTimesAsLongAtMostAsRunsDo) {
  const KeepAges keep;
  const auto tensors = ages_of(FamilyKind::tensor, keep);
  EXPECT_EQ(tensors[0], kDay * 14);
  EXPECT_EQ(tensors[1], kDay * 30);
  EXPECT_EQ(tensors[2], kDay * 120);
  EXPECT_EQ(tensors[3], kDay * 400);
  EXPECT_EQ(tensors[5], kDay * 400);
  EXPECT_EQ(ages_of(FamilyKind::scalar, keep)[1], kDay * 360);
  EXPECT_EQ(ages_of(FamilyKind::clock, keep), ages_of(FamilyKind::scalar, keep));
  EXPECT_EQ(ages_of(FamilyKind::system, keep)[2], kDay * 56);
  EXPECT_EQ(ages_of(FamilyKind::span, keep)[5], kDay * 1);
  KeepAges few;
  few.runs = kDay * 7;
  for (const core::Duration age : ages_of(FamilyKind::tensor, few)) EXPECT_EQ(age, kDay * 7);
}

}  // namespace
}  // namespace tocsin::insights
