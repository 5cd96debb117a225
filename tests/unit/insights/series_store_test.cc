// The store of series alone: every level equals a direct computation, and what a crash leaves.
#include <sys/wait.h>

#include <cmath>
#include <csignal>
#include <limits>
#include <random>
#include <sstream>

#include "tests/unit/insights/series_folder.h"

namespace tocsin::insights {
namespace {

class SeriesStoreTest : public SeriesFolder {};

using Course = std::vector<std::pair<std::int64_t, double>>;

// Steps of any stride, with gaps; numbers of any kind.
Course some_course(std::mt19937_64& chance, std::size_t count) {
  const std::array<double, 7> odd{0.0,
                                  -0.0,
                                  5e-324,
                                  std::nan(""),
                                  std::numeric_limits<double>::infinity(),
                                  -std::numeric_limits<double>::infinity(),
                                  1e300};
  Course out;
  std::int64_t x = static_cast<std::int64_t>(chance() % 1000);
  const std::int64_t stride = 1 + static_cast<std::int64_t>(chance() % 12);
  for (std::size_t at = 0; at < count; ++at) {
    const bool strange = chance() % 50 == 0;
    out.emplace_back(x, strange ? odd[chance() % odd.size()]
                                : std::ldexp(static_cast<double>(chance() % 4096), -10));
    x += stride + (chance() % 200 == 0 ? static_cast<std::int64_t>(chance() % 5000) : 0);
  }
  return out;
}

Buckets directly(const Course& course, std::int64_t lo, std::int64_t hi, std::int64_t level) {
  Buckets out;
  for (const auto& one : course) {
    if (one.first >= lo && one.first < hi) out[one.first >> level].add(one.first, one.second);
  }
  return out;
}

// Sums of what lies far apart depend on the order in the last places.
std::string told(const Buckets& buckets) {
  std::ostringstream out;
  out.precision(17);
  for (const auto& [at, one] : buckets) {
    out << at << ": " << one.n << ' ' << one.nan << ' ' << one.posinf << ' ' << one.neginf << ' '
        << one.min << ' ' << one.max << ' ' << one.first << ' ' << one.last << ' '
        << static_cast<float>(one.sum) << ' ' << one.bad_x << '\n';
  }
  return out.str();
}

TEST_F(SeriesStoreTest, EveryBucketOfEveryLevelAndRangeIsWhatAScanGives) {
  std::mt19937_64 chance(20261127);
  for (std::uint64_t round = 0; round < 12; ++round) {
    const Course course = some_course(chance, 1 + chance() % 9000);
    auto store = writer();
    name(*store);
    std::size_t at = 0;
    while (at < course.size()) {  // commits of any size
      const std::size_t many = chance() % 4 == 0 ? chance() % 3000 : 1 + chance() % 20;
      for (std::size_t end = std::min(course.size(), at + many); at < end; ++at)
        add(*store, course[at].first, course[at].second, segment(round + 1));
      ASSERT_TRUE(store->commit({}));
    }
    auto ask = reader();
    const auto families = ask->families(core::to_text(run()), FamilyKind::scalar, 5);
    ASSERT_EQ(families.size(), round + 1);
    const FamilyLine& family = families.back();
    ASSERT_EQ(family.rows, static_cast<std::int64_t>(course.size()));
    for (int look = 0; look < 60; ++look) {
      const std::int64_t end = course.back().first + 10;
      std::int64_t lo = static_cast<std::int64_t>(chance()) & 0xffff;
      if (look % 3 == 0) lo = 0;
      const std::int64_t hi =
          look % 3 == 1
              ? end
              : lo + static_cast<std::int64_t>(chance() % static_cast<std::uint64_t>(end));
      const auto level = static_cast<std::int64_t>(chance() % 30);
      EXPECT_EQ(told(ask->buckets(family, kValueColumn, lo, hi, level)),
                told(directly(course, lo, hi, level)))
          << "level " << level << " of [" << lo << ", " << hi << "), k0 " << family.k0;
    }
    EXPECT_TRUE(ask->failure());
  }
}

TEST_F(SeriesStoreTest, WhatIsCommittedIsSeenAtOnce) {
  auto store = writer();
  name(*store);
  for (std::int64_t x = 0; x < 1300; ++x) {
    add(*store, x, static_cast<double>(x));
    if (x % 100 != 99) continue;
    ASSERT_TRUE(store->commit({}));
    const auto answer = ask_series(*reader(), asked(100'000));
    ASSERT_EQ(answer->lines.size(), 1);
    ASSERT_EQ(answer->lines[0].points.size(), static_cast<std::size_t>(x + 1));
    EXPECT_EQ(answer->lines[0].points.back().value.last, static_cast<double>(x));
  }
}

// Killed between and within commits at any place, and read on from its positions, it answers as one
// that nothing happened to.
TEST_F(SeriesStoreTest, AfterKill9ItAnswersAsIfNothingHadHappened) {
  std::mt19937_64 chance(7);
  const Course course = some_course(chance, 6000);
  const auto take = [&](SeriesWriter& store, std::size_t from, std::size_t to) {
    for (std::size_t at = from; at < to; ++at) {
      if (!store.is_new(store.segment(segment()), 0, at)) continue;
      add(store, course[at].first, course[at].second);
    }
  };
  std::size_t next = 0;
  int kills = 0;
  while (next < course.size()) {
    const std::uint64_t many = 1 + chance() % 900;
    const bool within = chance() % 2 == 0;
    const pid_t child = fork();
    if (child == 0) {
      auto store = writer();
      name(*store);
      for (int turn = 0; turn < 3; ++turn) {
        const std::size_t end = std::min<std::size_t>(course.size(), next + many);
        take(*store, next > 5 ? next - 5 : 0, end);  // some of it twice
        if (turn == 2 && within) kill(getpid(), SIGKILL);
        if (!store->commit({{{"telemetry", 0}, static_cast<std::int64_t>(end)}})) _exit(1);
        next = end;
      }
      kill(getpid(), SIGKILL);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    ++kills;
    const auto positions = writer()->positions();
    if (!positions.empty()) next = static_cast<std::size_t>(positions[0].next);
  }
  EXPECT_GT(kills, 3);
  auto ask = reader();
  const auto families = ask->families(core::to_text(run()), FamilyKind::scalar, 5);
  ASSERT_EQ(families.size(), 1);
  EXPECT_EQ(families[0].rows, 6000);
  for (const std::int64_t level : {0, 3, 7, 11, 14, 20})
    EXPECT_EQ(told(ask->buckets(families[0], kValueColumn, 0, 1 << 30, level)),
              told(directly(course, 0, 1 << 30, level)));
}

TEST_F(SeriesStoreTest, AFrameThatComesTwiceCountsOnce) {
  auto store = writer();
  const std::int64_t one = store->segment(segment());
  EXPECT_TRUE(store->is_new(one, 0, 3));
  EXPECT_FALSE(store->is_new(one, 0, 3));
  EXPECT_FALSE(store->is_new(one, 0, 2));
  EXPECT_TRUE(store->is_new(one, 1, 2));  // another shard
  EXPECT_TRUE(store->is_new(store->segment(segment(2)), 0, 1));
  ASSERT_TRUE(store->commit({}));
  store.reset();
  store = writer();
  EXPECT_FALSE(store->is_new(store->segment(segment()), 0, 3));
  EXPECT_TRUE(store->is_new(store->segment(segment()), 0, 4));
}

TEST_F(SeriesStoreTest, AboveItsSizeTheRunsHeardOfLeastLatelyGo) {
  auto store = writer();
  for (std::uint8_t which = 1; which <= 3; ++which) {
    SegmentOf of = segment();
    of.run = run(which);
    store->heard(of.run, which * 1'000'000);
    std::mt19937_64 chance(which);
    for (std::int64_t x = 0; x < 100'000; ++x) {
      const std::array<double, 2> values{std::ldexp(static_cast<double>(chance()), -60), 0.0};
      store->add(of, FamilyKind::scalar, 5, core::Mode::train, x, values);
    }
    ASSERT_TRUE(store->commit({}));
  }
  EXPECT_EQ(*store->forget(core::WallTime{}, 1ULL << 40U, 10), 0);
  const auto half = static_cast<std::uint64_t>(reader()->size().bytes / 2);
  EXPECT_EQ(*store->forget(core::WallTime{}, half, 10), 2);
  auto ask = reader();
  EXPECT_EQ(ask->size().runs, 1);
  EXPECT_EQ(ask->families(core::to_text(run(3)), FamilyKind::scalar, 5).size(), 1);
  EXPECT_EQ(*store->forget(core::WallTime(std::chrono::seconds(100)), 1ULL << 40U, 10), 1);
  EXPECT_EQ(ask->families(core::to_text(run(3)), FamilyKind::scalar, 5).size(), 1);  // as it was
  EXPECT_EQ(reader()->size().runs, 0);
  add(*store, 1, 1.0);  // and it goes on
  EXPECT_TRUE(store->commit({}));
}

TEST_F(SeriesStoreTest, BytesThatAreNoneGiveAnErrorAndNoCrash) {
  std::mt19937_64 chance(3);
  SeriesRows rows(3);
  for (std::int64_t x = 0; x < 300; ++x) {
    rows.x.push_back(x * 7 - 100);
    rows.columns[0].push_back(std::ldexp(static_cast<double>(chance()), -64));
    rows.columns[1].push_back(3.0);
    rows.columns[2].push_back(1e15 + static_cast<double>(x * 30'000 + x % 7) -
                              5e14 * static_cast<double>(x % 2));
  }
  for (const bool pack : {false, true}) {
    std::string good;
    encode_rows(rows, pack, good);
    const auto back = decode_rows(good);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->x, rows.x);
    EXPECT_EQ(back->columns, rows.columns);
    for (std::size_t cut = 0; cut < good.size(); cut += 1 + cut / 7)
      EXPECT_FALSE(decode_rows(good.substr(0, cut)));
    for (int flip = 0; flip < 2000; ++flip) {
      std::string bad = good;
      bad[chance() % bad.size()] = static_cast<char>(chance());
      (void)decode_rows(bad);
      Buckets out;
      (void)decode_block(bad, 0, out);
    }
  }
}

}  // namespace
}  // namespace tocsin::insights
