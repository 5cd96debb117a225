// The schedule: deadlines, failures, telemetry; and the section `collect`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include "tests/unit/collectors/fake_tree.h"

namespace tocsin::collectors {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Adds one sample; fails or sends NaN when told to.
struct Scripted final : Collector {
  explicit Scripted(const Roots&) {}
  static inline bool fail = false;
  static inline bool absent = false;
  static inline double value = 1;
  Series series{"scripted", true};
  core::Status collect(Sweep& sweep) override {
    sweep.add(series, value);
    if (absent) return core::Error{core::Code::not_found, "not here"};
    if (fail) return core::unavailable("told to");
    return core::ok();
  }
};
struct Steady final : Collector {
  explicit Steady(double given) : sent(given) {}
  double sent;
  Series series{"steady", false};
  core::Status collect(Sweep& sweep) override {
    sweep.add(series, sent);
    return core::ok();
  }
};

// Has a key of its own: the value that it sends.
struct SteadyConfig final : CollectorConfig {
  double value = 2;
  std::unique_ptr<Collector> build(const Roots&) const override {
    return std::make_unique<Steady>(value);
  }
};
std::shared_ptr<const CollectorConfig> read_steady(config::Reader& in) {
  auto out = std::make_shared<SteadyConfig>();
  in.optional("value", out->value, config::at_least(0.0), "what it sends");
  return out;
}

const CollectorDescriptor kTable[] = {
    {.name = "scripted", .help = "", .gathers = {}, .read = &without_keys<Scripted>},
    {.name = "steady", .help = "", .gathers = {}, .read = &read_steady}};

// A clock that is a millisecond later at every look.
struct TickingClock final : core::Clock {
  mutable core::Duration time{};
  core::WallTime now() const override { return core::WallTime{}; }
  core::Duration monotonic() const override { return time += 1ms; }
};

struct RecordingLog final : core::Log {
  std::vector<std::string> events;
  void write(core::Level, std::string_view event, std::initializer_list<core::Field>) override {
    events.emplace_back(event);
  }
};

class NodeCollectorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Scripted::fail = false;
    Scripted::absent = false;
    Scripted::value = 1;
    Config config;
    config.interval = 500ms;
    config.collectors = {"scripted", "steady"};
    auto opened = NodeCollector::open(config, {nullptr, &log, &clock}, kTable);
    ASSERT_TRUE(opened);
    node = std::move(*opened);
  }
  // The values of the sweep at this time, or none; `next` is the deadline.
  std::vector<double> at(core::Duration monotonic) {
    std::vector<double> values;
    next = node->tick(core::WallTime{wall}, monotonic, [&](const Sweep& sweep) {
      EXPECT_EQ(sweep.time(), core::WallTime{wall});
      for (const Sample& sample : sweep.samples()) values.push_back(sample.value);
    });
    return values;
  }

  core::Duration wall = 1000h;
  core::Duration next{};
  RecordingLog log;
  TickingClock clock;
  std::unique_ptr<NodeCollector> node;
};

TEST_F(NodeCollectorTest, SweepsAtDeadlinesOnly) {
  EXPECT_THAT(at(10s), ElementsAre(1, 2));
  EXPECT_EQ(next, 10500ms);
  EXPECT_THAT(at(10499ms), IsEmpty());
  EXPECT_EQ(next, 10500ms);
  EXPECT_THAT(at(10500ms), ElementsAre(1, 2));
  EXPECT_EQ(next, 11s);
}

TEST_F(NodeCollectorTest, LateCallsMakeNoBurstAndKeepTheGrid) {
  at(10s);
  EXPECT_THAT(at(12700ms), ElementsAre(1, 2));
  EXPECT_EQ(next, 13s);
  EXPECT_THAT(at(12800ms), IsEmpty());
  EXPECT_EQ(node->counters().sweeps, 2U);
  EXPECT_EQ(node->counters().skipped, 4U);
}

// What it sends is how often it was asked: one that begins anew sends 1.
struct Counting final : Collector {
  explicit Counting(const Roots&) {}
  Series series{"counting", true};
  double asked = 0;
  core::Status collect(Sweep& sweep) override {
    sweep.add(series, ++asked);
    return core::ok();
  }
};
const CollectorDescriptor kChanged[] = {
    {.name = "counting", .help = "", .gathers = {}, .read = &without_keys<Counting>},
    {.name = "steady", .help = "", .gathers = {}, .read = &read_steady}};

class ChangedCollectorTest : public NodeCollectorTest {
 protected:
  void SetUp() override {
    config.interval = 10s;
    config.collectors = {"counting"};
    auto opened = NodeCollector::open(config, {nullptr, &log, &clock}, kChanged);
    ASSERT_TRUE(opened);
    node = std::move(*opened);
  }
  void steady_sends(double value) {
    auto own = std::make_shared<SteadyConfig>();
    own->value = value;
    config.settings["steady"] = {0s, own};
  }
  Config config;
};

TEST_F(ChangedCollectorTest, OneThatStaysGoesOnAndOneThatIsNewBegins) {
  EXPECT_THAT(at(10s), ElementsAre(1));
  EXPECT_THAT(at(20s), ElementsAre(2));
  config.collectors = {"steady", "counting"};
  ASSERT_TRUE(node->change(config, kChanged));
  EXPECT_THAT(at(30s), ElementsAre(2, 3));
  EXPECT_EQ(node->counters().sweeps, 3U) << "they count since the agent began";
  config.collectors = {"steady"};
  ASSERT_TRUE(node->change(config, kChanged));
  EXPECT_THAT(at(40s), ElementsAre(2));
  config.collectors = {"counting"};
  ASSERT_TRUE(node->change(config, kChanged));
  EXPECT_THAT(at(50s), ElementsAre(1)) << "it was away";
}

TEST_F(ChangedCollectorTest, OneWhoseOwnSettingsChangedBeginsAnew) {
  config.collectors = {"counting", "steady"};
  steady_sends(4);
  ASSERT_TRUE(node->change(config, kChanged));
  EXPECT_THAT(at(10s), ElementsAre(1, 4));
  steady_sends(5);
  ASSERT_TRUE(node->change(config, kChanged));
  EXPECT_THAT(at(20s), ElementsAre(2, 5));
  config.proc_root = "/elsewhere";
  ASSERT_TRUE(node->change(config, kChanged));
  EXPECT_THAT(at(30s), ElementsAre(1, 5)) << "its files are others";
}

TEST_F(ChangedCollectorTest, TheNextSweepComesWithinTheNewIntervalOfTheOneBefore) {
  at(10s);
  config.interval = 1s;
  ASSERT_TRUE(node->change(config, kChanged));
  EXPECT_THAT(at(10400ms), IsEmpty()) << "a rate over a moment is noise";
  EXPECT_EQ(next, 11s);
  EXPECT_THAT(at(11s), ElementsAre(2));
  config.interval = 30s;
  ASSERT_TRUE(node->change(config, kChanged));
  EXPECT_THAT(at(11500ms), IsEmpty());
  EXPECT_EQ(next, 12s) << "the deadline that stood comes first";
  EXPECT_THAT(at(12s), ElementsAre(3));
  EXPECT_EQ(next, 42s);
  EXPECT_THAT(at(35s), IsEmpty());
  config.interval = 1s;
  ASSERT_TRUE(node->change(config, kChanged));
  EXPECT_THAT(at(36s), ElementsAre(4)) << "it was due long ago";
  EXPECT_EQ(node->counters().skipped, 0U);
}

TEST_F(ChangedCollectorTest, OneThatThisBuildDoesNotHaveChangesNothing) {
  at(10s);
  config.collectors = {"steady", "countin"};
  const auto refused = node->change(config, kChanged);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("counting"));
  EXPECT_THAT(at(20s), ElementsAre(2));
}

TEST_F(NodeCollectorTest, AWallClockThatJumpsChangesNothing) {
  at(10s);
  wall = 1h;
  EXPECT_THAT(at(10500ms), ElementsAre(1, 2));
  EXPECT_EQ(next, 11s);
}

TEST_F(NodeCollectorTest, OneThatFailsAddsNothingAndTheOthersGoOn) {
  Scripted::fail = true;
  EXPECT_THAT(at(10s), ElementsAre(2));
  EXPECT_THAT(at(11s), ElementsAre(2));
  EXPECT_EQ(node->counters().errors, 2U);
  EXPECT_THAT(log.events, ElementsAre("collector_failed"));
  Scripted::fail = false;
  EXPECT_THAT(at(12s), ElementsAre(1, 2));
  EXPECT_THAT(log.events, ElementsAre("collector_failed", "collector_recovered"));
}

TEST_F(NodeCollectorTest, WhatThisMachineDoesNotHaveIsCountedAndSaidOnce) {
  Scripted::absent = true;
  for (const auto time : {10s, 11s, 12s}) EXPECT_THAT(at(time), ElementsAre(2));
  EXPECT_EQ(node->counters().errors, 1U);
  EXPECT_THAT(log.events, ElementsAre("collector_failed"));
  Scripted::absent = false;
  EXPECT_THAT(at(13s), ElementsAre(1, 2));
  EXPECT_THAT(log.events, ElementsAre("collector_failed", "collector_recovered"));
  Scripted::absent = true;
  at(14s);
  EXPECT_EQ(node->counters().errors, 2U) << "it has gone again";
}

TEST_F(NodeCollectorTest, NeverSendsWhatIsNoNumber) {
  Scripted::value = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(at(10s), ElementsAre(2));
  Scripted::value = std::numeric_limits<double>::infinity();
  EXPECT_THAT(at(11s), ElementsAre(2));
  EXPECT_EQ(node->counters().samples, 2U);
}

// Counts what each instrument was told, by name and first label.
struct RecordingTelemetry final : core::Telemetry {
  struct Instrument final : core::Counter, core::Gauge, core::Histogram {
    std::vector<double> seen;
    void add(double amount) override { seen.push_back(amount); }
    void set(double value) override { seen.push_back(value); }
    void observe(double value) override { seen.push_back(value); }
  };
  std::map<std::string, Instrument> instruments;
  Instrument& get(std::string_view name, core::MetricLabels labels) {
    return instruments[std::string(name) + "/" + std::string(labels.begin()->second)];
  }
  core::Counter& counter(std::string_view name, std::string_view, core::MetricLabels l) override {
    return get(name, l);
  }
  core::Gauge& gauge(std::string_view name, std::string_view, core::MetricLabels l) override {
    return get(name, l);
  }
  core::Histogram& histogram(std::string_view name, std::string_view,
                             core::MetricLabels l) override {
    return get(name, l);
  }
};

TEST(NodeCollector, MeasuresEachCollector) {
  Scripted::fail = true;
  RecordingTelemetry telemetry;
  TickingClock clock;
  Config config;
  config.collectors = {"scripted", "steady"};
  auto node = NodeCollector::open(config, {&telemetry, nullptr, &clock}, kTable);
  ASSERT_TRUE(node);
  (*node)->tick(core::WallTime{50s}, 1s, [](const Sweep&) {});
  Scripted::fail = false;
  auto& seen = telemetry.instruments;
  EXPECT_THAT(seen["tocsin_collectors_errors_total/scripted"].seen, ElementsAre(1));
  EXPECT_THAT(seen["tocsin_collectors_errors_total/steady"].seen, IsEmpty());
  EXPECT_THAT(seen["tocsin_collectors_sweep_duration_seconds/steady"].seen, ElementsAre(0.001));
  EXPECT_THAT(seen["tocsin_collectors_last_success_timestamp_seconds/steady"].seen,
              ElementsAre(50));
  EXPECT_THAT(seen["tocsin_collectors_last_success_timestamp_seconds/scripted"].seen, IsEmpty());
}

TEST(NodeCollector, RefusesACollectorItDoesNotHave) {
  Config config;
  config.collectors = {"steedy"};
  const auto node = NodeCollector::open(config, {}, kTable);
  ASSERT_FALSE(node);
  EXPECT_EQ(node.error().code, core::Code::invalid_argument);
  EXPECT_THAT(node.error().message, HasSubstr("did you mean \"steady\""));
}

TEST(NodeCollector, RunsEveryBuiltinOnTheRealMachine) {
  Config config;
  auto node = NodeCollector::open(config, {});
  ASSERT_TRUE(node);
  (*node)->watch_process(1);
  std::size_t samples = 0;
  (*node)->tick(core::WallTime{1s}, 1s, [&](const Sweep& s) { samples = s.samples().size(); });
  EXPECT_GT(samples, 10U);  // memory at least; rates come with the second sweep
  (*node)->forget_process(1);
}

std::vector<std::string> problems(
    std::string_view yaml, Config& config,
    std::span<const CollectorDescriptor> table = builtin_collectors()) {
  config::Diagnostics diagnostics;
  auto document = config::Document::parse(
      yaml, "t.yaml", [](const std::string&) { return std::nullopt; }, diagnostics);
  if (document) document->read(diagnostics, [&](config::Reader& in) { read(in, config, table); });
  std::vector<std::string> texts;
  for (const auto& item : diagnostics.items()) texts.push_back(to_text(item));
  return texts;
}

TEST(CollectConfig, ReadsItsSection) {
  Config config;
  EXPECT_THAT(problems("interval: 100ms\ncollectors: [cpu, memory, cpu]\nnode: n1\n"
                       "proc_root: /host/proc\n",
                       config),
              IsEmpty());
  EXPECT_EQ(config.interval, 100ms);
  EXPECT_THAT(config.collectors, ElementsAre("cpu", "memory"));
  EXPECT_EQ(config.node, "n1");
  EXPECT_EQ(config.proc_root, "/host/proc");
  EXPECT_EQ(config.sys_root, "/sys");
}

TEST(CollectConfig, NamesTheNearestCollector) {
  Config config;
  EXPECT_THAT(problems("collectors: [cpu, memmory]\n", config),
              ElementsAre(AllOf(HasSubstr("error"), HasSubstr("did you mean \"memory\""))));
}

TEST(CollectConfig, ACollectorReadsItsOwnSection) {
  Config config;
  EXPECT_THAT(problems("collectors: [steady]\nsteady: {value: 7, every: 2s}\n", config, kTable),
              IsEmpty());
  EXPECT_EQ(config.settings.at("steady").every, 2s);
  auto node = NodeCollector::open(config, {}, kTable);
  ASSERT_TRUE(node);
  (*node)->tick(core::WallTime{}, 1s, [](const Sweep& sweep) {
    ASSERT_EQ(sweep.samples().size(), 1U);
    EXPECT_EQ(sweep.samples()[0].value, 7);
  });
  EXPECT_THAT(problems("collectors: [steady]\nsteady: {value: -1}\n", config, kTable),
              ElementsAre(HasSubstr("steady.value")));
  EXPECT_THAT(problems("collectors: [steady]\nsteady: {valu: 1}\n", config, kTable),
              ElementsAre(HasSubstr("did you mean \"value\"")));
}

TEST(CollectConfig, WarnsOfASectionThatNobodyUses) {
  Config config;
  EXPECT_THAT(problems("collectors: [scripted]\nsteady: {value: 7}\n", config, kTable),
              ElementsAre(AllOf(HasSubstr("warning"), HasSubstr("does not name steady"))));
}

TEST(NodeCollector, OneWithASlowerPaceIsLeftOutOfTheSweepsBetween) {
  Scripted::fail = false;
  Scripted::value = 1;
  Config config;
  config.interval = 500ms;
  ASSERT_THAT(problems("collectors: [scripted, steady]\nsteady: {every: 2s}\n", config, kTable),
              IsEmpty());
  auto node = NodeCollector::open(config, {}, kTable);
  ASSERT_TRUE(node);
  std::vector<std::size_t> samples;
  for (const auto at : {10s + 0ms, 10s + 500ms, 11s + 900ms, 12s + 20ms, 12s + 500ms, 14s + 0ms,
                        19s + 0ms, 19s + 500ms, 20s + 0ms}) {
    (*node)->tick(core::WallTime{}, at,
                  [&](const Sweep& sweep) { samples.push_back(sweep.samples().size()); });
  }
  // The grid is that of the first sweep: 10, 12, 14 … 20; what passed is one turn, not several.
  EXPECT_THAT(samples, ElementsAre(2, 1, 1, 2, 1, 2, 2, 1, 2));
}

TEST(Collectors, SayWhatTheyGather) {
  for (const CollectorDescriptor& each : builtin_collectors()) {
    EXPECT_FALSE(each.gathers.empty()) << each.name;
    for (const Gathered& series : each.gathers) {
      EXPECT_FALSE(series.metric.empty() || series.unit.empty()) << each.name;
    }
  }
  EXPECT_THAT(series_tables(), HasSubstr("## disk\n\n| Series | Unit |\n|---|---|\n| "
                                         "`system.disk.io{disk.io.direction=read,system.device=D}` "
                                         "| bytes, counter |\n"));
}

TEST(CollectConfig, BoundsTheInterval) {
  Config config;
  EXPECT_THAT(problems("interval: 50ms\n", config), ElementsAre(HasSubstr("100ms")));
  EXPECT_THAT(problems("interval: 2m\n", config), ElementsAre(HasSubstr("1m")));
}

}  // namespace
}  // namespace tocsin::collectors
