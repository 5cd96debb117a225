// Samples of nodes: what is folded of a sweep, kept once, found by runs, and read back.
#include <cmath>

#include "insights/store/database.h"
#include "tests/unit/insights/fold_folder.h"

namespace tocsin::insights {
namespace {

constexpr std::int64_t kBegin = 1'700'000'000'000;  // milliseconds
const char* const kModes[] = {"user",   "nice", "system",  "idle",
                              "iowait", "irq",  "softirq", "steal"};

std::string core_mode(int core, const std::string& mode) {
  return "system.cpu.utilization{cpu.logical_number=" + std::to_string(core) + ",cpu.mode=" + mode +
         "}";
}

class SystemStoreTest : public FoldFolder {
 protected:
  static std::vector<std::string> names() {
    std::vector<std::string> out;
    for (int core = 0; core < 3; ++core)
      for (const char* mode : kModes) out.push_back(core_mode(core, mode));
    for (const char* gpu : {"A", "B"})
      out.push_back(std::string("hw.gpu.utilization{hw.id=") + gpu + "}");
    for (const char* way : {"receive", "transmit"})
      out.push_back(
          std::string("system.network.io{network.interface.name=eth0,network.io.direction=") + way +
          "}");
    out.emplace_back("hw.power{hw.id=A,hw.type=gpu}");
    return out;
  }
  void tell(const core::FrameHeader& header) {
    std::vector<std::pair<core::DictionaryType, std::string>> all{
        {core::DictionaryType::node, "n7"}};
    for (std::string& name : names())
      all.emplace_back(core::DictionaryType::series, std::move(name));
    dictionary(header, all);
  }
  static double idle(int core, std::int64_t at) {
    return 0.1 + 0.01 * static_cast<double>((at * 7 + core * 13) % 50);
  }
  static double iowait(int core, std::int64_t at) {
    return 0.01 * static_cast<double>((at + core) % 5);
  }
  static std::vector<Reading> readings(std::int64_t at) {
    std::vector<Reading> out;
    for (int core = 0; core < 3; ++core) {
      const double rest = (1 - idle(core, at) - iowait(core, at)) / 6;
      for (const std::string mode : kModes)
        out.push_back({core_mode(core, mode), mode == "idle"     ? idle(core, at)
                                              : mode == "iowait" ? iowait(core, at)
                                                                 : rest});
    }
    out.push_back({"hw.gpu.utilization{hw.id=A}", 0.5});
    out.push_back({"hw.gpu.utilization{hw.id=B}", static_cast<double>(at % 2)});
    const auto count = static_cast<double>(at == 6 ? 10 : 1000 * at * at);  // one reset
    out.push_back({names()[26], count, true});
    out.push_back({names()[27], 500.0 * static_cast<double>(at), true});
    out.push_back({"hw.power{hw.id=A,hw.type=gpu}", 300 + static_cast<double>(at)});
    return out;
  }
  void fill(std::int64_t from, std::int64_t to, std::size_t frame = 500) {
    for (std::int64_t at = from; at < to; ++at)
      sweep(agent(), kBegin + at * 500, readings(at), frame);
  }
};

TEST_F(SystemStoreTest, CoresAreFoldedToBusyAndIowaitAndMeansAreOverThem) {
  tell(agent());
  fill(0, 20, 10);  // the modes of a core come in two frames
  rest();
  commit();
  const auto busy = system("system\\.cpu\\.busy.*");
  ASSERT_EQ(busy.lines.size(), 4u);
  EXPECT_EQ(busy.lines[0].name.text, "system.cpu.busy{mean}");
  EXPECT_EQ(busy.lines[2].name.text, "system.cpu.busy{cpu.logical_number=1}");
  EXPECT_EQ(busy.lines[0].node, "n7");
  ASSERT_EQ(busy.lines[2].points.size(), 20u);
  for (std::int64_t at = 0; at < 20; ++at) {
    const auto place = static_cast<std::size_t>(at);
    double sum = 0;
    for (int core = 0; core < 3; ++core) sum += 1 - idle(core, at) - iowait(core, at);
    EXPECT_NEAR(busy.lines[2].points[place].second.mean(), 1 - idle(1, at) - iowait(1, at), 1e-12);
    EXPECT_NEAR(busy.lines[0].points[place].second.mean(), sum / 3, 1e-12);
  }
  EXPECT_EQ(system("system\\.cpu\\.utilization.*").lines.size(), 0u);
  EXPECT_NEAR(system("hw\\.gpu\\.utilization\\{mean\\}").lines[0].points[3].second.mean(), 0.75,
              1e-12);
  EXPECT_EQ(system("hw\\.power.*").lines[0].name.unit, "W");
}

// Names and the first samples may come in two commits, and what is old may be forgotten between them.
TEST_F(SystemStoreTest, ANodeThatHasOnlyToldItsNamesIsNotOld) {
  core::FrameHeader head = agent();
  head.time = kBegin * 1'000'000;
  tell(head);
  commit();
  const auto hour_before = core::wall_time(head.time) - std::chrono::hours(1);
  ASSERT_TRUE(store_->forget(hour_before, 1'000'000'000, 10));
  fill(0, 5);
  rest();
  commit();
  const auto power = system("hw\\.power.*");
  ASSERT_EQ(power.lines.size(), 1U);
  EXPECT_EQ(power.lines[0].node, "n7");
}

TEST_F(SystemStoreTest, CountersAreIncreasesAndAResetIsAbsent) {
  tell(agent());
  fill(0, 9);
  rest();
  commit();
  const auto io = system("system\\.network\\.io\\{network.*receive\\}");
  ASSERT_EQ(io.lines.size(), 1u);
  std::vector<std::pair<std::int64_t, double>> truth;
  for (std::int64_t at = 1; at < 9; ++at) {
    const auto count = [](std::int64_t of) { return of == 6 ? 10 : 1000 * of * of; };
    if (count(at) >= count(at - 1))
      truth.emplace_back(kBegin + at * 500, static_cast<double>(count(at) - count(at - 1)));
  }
  ASSERT_EQ(io.lines[0].points.size(), truth.size());
  for (std::size_t at = 0; at < truth.size(); ++at) {
    EXPECT_LE(io.lines[0].points[at].first, truth[at].first);
    EXPECT_EQ(io.lines[0].points[at].second.sum, truth[at].second);
  }
  const auto total = system("system\\.network\\.io\\{total\\}");
  EXPECT_EQ(total.lines[0].points[0].second.sum, 1000 + 500);
}

// The third sweep is late, and the process that folds is another one from the fourth on.
TEST_F(SystemStoreTest, BytesPerSecondAreByTheTimeThatHasPassed) {
  constexpr std::array<std::int64_t, 5> kAt{0, 500, 2500, 3000, 4000};
  tell(agent());
  for (std::size_t at = 0; at < kAt.size(); ++at) {
    if (at == 3) {
      rest();
      commit();
      restart();
    }
    sweep(agent(), kBegin + kAt[at], readings(static_cast<std::int64_t>(at)));
  }
  rest();
  commit();
  const auto rates = system("system\\.network\\.io\\.rate\\{network.*receive\\}");
  ASSERT_EQ(rates.lines.size(), 1u);
  EXPECT_EQ(rates.lines[0].name.unit, "By/s");
  const auto total = system("system\\.network\\.io\\.rate\\{total\\}");
  ASSERT_EQ(rates.lines[0].points.size(), 4u);
  ASSERT_EQ(total.lines.at(0).points.size(), 4u);
  for (std::size_t at = 1; at < kAt.size(); ++at) {
    const double seconds = static_cast<double>(kAt[at] - kAt[at - 1]) / 1000;
    const auto grown = 1000 * static_cast<double>(2 * at - 1);  // of squares
    EXPECT_DOUBLE_EQ(rates.lines[0].points[at - 1].second.sum, grown / seconds);
    EXPECT_DOUBLE_EQ(total.lines[0].points[at - 1].second.sum, (grown + 500) / seconds);
  }
}

TEST_F(SystemStoreTest, ANodeThatServesTwoRunsIsKeptOnceAndBothFindIt) {
  core::FrameHeader other = agent();
  other.run = run(2);
  tell(agent());
  tell(other);
  for (std::int64_t at = 0; at < 30; ++at) {
    sweep(agent(), kBegin + at * 500, readings(at));
    if (at >= 10) sweep(other, kBegin + at * 500, readings(at));
  }
  rest();
  commit();
  EXPECT_EQ(system("system\\.cpu\\.busy\\{mean\\}").lines[0].stored, 30);
  const auto mine = reader()->nodes(core::to_text(run()));
  const auto theirs = reader()->nodes(core::to_text(run(2)));
  ASSERT_EQ(mine.size(), 1u);
  ASSERT_EQ(theirs.size(), 1u);
  EXPECT_EQ(mine[0].owner, theirs[0].owner);
  EXPECT_EQ(mine[0].name, "n7");
  EXPECT_EQ(mine[0].x_first, kBegin);
  EXPECT_EQ(theirs[0].x_first, kBegin + 5000);
  EXPECT_EQ(reader()->size().runs, 2);
}

TEST_F(SystemStoreTest, NoSampleIsLostWhenAnAgentBeginsToServeARun) {
  core::FrameHeader nobody = agent();
  nobody.run = {};
  tell(nobody);
  for (std::int64_t at = 0; at < 30; ++at)
    sweep(at < 10 ? nobody : at < 20 ? agent() : nobody, kBegin + at * 200, readings(at));
  rest();
  commit();
  EXPECT_EQ(system("system\\.cpu\\.busy\\{mean\\}").lines[0].stored, 30);
}

TEST_F(SystemStoreTest, AfterKill9InTheMiddleOfASweepItAnswersAsIfNothingHadHappened) {
  tell(agent());
  for (std::int64_t at = 0; at < 40; ++at) {
    // Ten rows of the sweep are committed before the rest comes, to a process that knows no names.
    const auto all = readings(at);
    const auto half = all.begin() + 10;
    sweep(agent(), kBegin + at * 500, {all.begin(), half});
    commit();
    restart();
    sweep(agent(), kBegin + at * 500, {half, all.end()});
  }
  rest();
  commit();
  const auto broken = system(".*");
  const auto owner = reader()->nodes(core::to_text(run()));
  store_ = nullptr;
  folds_ = Folds();
  std::filesystem::remove_all(folder_);
  std::filesystem::create_directories(folder_);
  store_ = writer();
  tell(agent());
  fill(0, 40);
  rest();
  commit();
  const auto whole = system(".*");
  ASSERT_EQ(broken.lines.size(), whole.lines.size());
  for (std::size_t at = 0; at < whole.lines.size(); ++at) {
    EXPECT_EQ(broken.lines[at].name.text, whole.lines[at].name.text);
    ASSERT_EQ(broken.lines[at].points.size(), whole.lines[at].points.size());
    for (std::size_t k = 0; k < whole.lines[at].points.size(); ++k)
      EXPECT_EQ(broken.lines[at].points[k].second.sum, whole.lines[at].points[k].second.sum)
          << whole.lines[at].name.text;
  }
}

TEST_F(SystemStoreTest, CoresBecomeRowsInOrderAndFoldWhenTheyAreTooMany) {
  tell(agent());
  fill(0, 30);
  rest();
  commit();
  CoreAsk ask;
  ask.of.run = core::to_text(run());
  ask.of.name = "system\\.cpu\\.busy\\{cpu.*\\}|hw\\.gpu\\.utilization\\{hw.*\\}";
  const auto heat = ask_cores(*reader(), ask);
  ASSERT_TRUE(heat);
  ASSERT_EQ(heat->rows.size(), 5u);
  EXPECT_EQ(heat->rows[0].first.text, "hw.gpu.utilization{hw.id=A}");
  EXPECT_EQ(heat->rows[4].first.text, "system.cpu.busy{cpu.logical_number=2}");
  EXPECT_GE(std::int64_t{1} << heat->level, 256);  // not narrower than samples lie apart
  std::size_t seen = 0;
  for (const auto& cell : heat->rows[0].cells) {
    if (!cell) continue;
    EXPECT_EQ(*cell, 0.5);
    ++seen;
  }
  EXPECT_EQ(seen, 30u);
  ask.rows = 2;
  EXPECT_EQ(ask_cores(*reader(), ask)->rows[0].folded, 3);
}

TEST_F(SystemStoreTest, PercentilesWeighBySampleDurationAndAreNumpysWhenItIsEven) {
  // numpy.percentile([4, 1, 3, 2, 10], [50, 90, 95, 99])
  WeightedValues even{{4, 2}, {1, 2}, {3, 2}, {2, 2}, {10, 2}};
  const auto at = weighted_percentiles(even, {50, 90, 95, 99});
  EXPECT_NEAR(at[0], 3, 1e-12);
  EXPECT_NEAR(at[1], 7.6, 1e-12);
  EXPECT_NEAR(at[2], 8.8, 1e-12);
  EXPECT_NEAR(at[3], 9.76, 1e-12);
  // What held nine times as long has nine tenths of the time.
  WeightedValues uneven{{0, 9}, {1, 1}, {2, 1}};
  EXPECT_NEAR(weighted_percentiles(uneven, {45})[0], 0.5, 1e-12);
  WeightedValues none;
  EXPECT_TRUE(std::isnan(weighted_percentiles(none, {50})[0]));
}

TEST_F(SystemStoreTest, UsageIsOverTheSamplesOfTheRun) {
  tell(agent());
  fill(0, 11);
  rest();
  commit();
  SystemAsk ask;
  ask.run = core::to_text(run());
  const auto usage = ask_usage(*reader(), ask);
  ASSERT_TRUE(usage);
  ASSERT_EQ(usage->size(), 5u);  // no memory was sampled
  EXPECT_EQ((*usage)[0].what, "total_cpu");
  EXPECT_EQ((*usage)[1].what, "total_gpu");
  EXPECT_EQ((*usage)[1].samples, 11);
  EXPECT_EQ((*usage)[1].min, 0.25);
  EXPECT_EQ((*usage)[1].p50, 0.25);
  EXPECT_EQ((*usage)[1].p90, 0.75);
  EXPECT_EQ((*usage)[3].what, "network");
  EXPECT_EQ((*usage)[3].unit, "By");
  EXPECT_EQ((*usage)[4].what, "network_rate");
  EXPECT_EQ((*usage)[4].unit, "By/s");
}

TEST_F(SystemStoreTest, WhatNobodyNamedOrNobodySentDoesNotStopTheRest) {
  sweep(agent(), kBegin, {{"hw.power{hw.id=Z}", 1}});  // no name
  tell(agent());
  sweep(agent(), kBegin + 500, {{core_mode(0, "idle"), 0.25}, {core_mode(1, "iowait"), 0.5}});
  rest();
  commit();
  const auto all = system(".*");
  ASSERT_EQ(all.lines.size(), 4u);  // of core 0 alone, and its means
  for (const auto& line : all.lines) EXPECT_EQ(line.stored, 1) << line.name.text;
  EXPECT_EQ(split_series("a{b=1,c=2}").labels, "b=1,c=2");
  EXPECT_EQ(split_series("a{b=1").metric, "a{b=1");
  EXPECT_EQ(label_of("hw.id=A,hw.type=gpu", "hw.type"), "gpu");
  EXPECT_EQ(label_of("xhw.id=A", "hw.id"), "");
}

TEST_F(SystemStoreTest, SamplesGiveWayBeforeScalarsDo) {
  tell(agent());
  fill(0, 50);
  name(*store_);
  add(*store_, 1, 3.0);
  rest();
  commit();
  const auto gone = store_->forget(core::WallTime(), 1, 1);
  ASSERT_TRUE(gone);
  EXPECT_EQ(system(".*").lines.size(), 0u);
  EXPECT_TRUE(reader()->bulk_gone(reader()->nodes(core::to_text(run()))[0].owner));
  EXPECT_EQ(ask_series(*reader(), asked())->lines.size(), 1u);
  // What comes later is kept, though the agent tells names anew only after minutes.
  tell(agent());
  fill(50, 60);
  rest();
  commit();
  EXPECT_EQ(system("system\\.cpu\\.busy\\{mean\\}").lines[0].points.size(), 10u);
}

TEST_F(SystemStoreTest, AFileOfTheVersionBeforeIsMovedAsideAndFilledAgain) {
  store_ = nullptr;
  {
    auto old = StoreDatabase::open(path(), true);
    ASSERT_TRUE(old);
    (*old)->run("PRAGMA user_version = 2");
  }
  SetAside moved;
  auto made = SeriesWriter::open(path(), "here", moved);
  ASSERT_TRUE(made);
  EXPECT_EQ(moved.why, "its tables are of version 2, not 4");
  EXPECT_TRUE((*made)->positions().empty());  // it is read from the beginning
  EXPECT_FALSE(moved.damaged);
  EXPECT_TRUE(std::filesystem::exists(path() + ".aside"));
}

}  // namespace
}  // namespace tocsin::insights
