// What every transport of publish_metric that pushes has: the picture, its rounds, its end.
#include "actions/metrics/pushed_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using namespace testing_support;
using core::OutcomeClass;

struct RecordingSink final : MetricSink {
  explicit RecordingSink(std::vector<MetricPush>& kept) : pushes(kept) {}
  core::AttemptOutcome push(const MetricPush& push, std::chrono::milliseconds budget) override {
    pushes.push_back(push);
    budgets.push_back(budget);
    ++count;
    core::AttemptOutcome out;
    out.outcome = answer;
    return out;
  }
  [[nodiscard]] bool takes_whole() const override { return whole; }
  std::vector<MetricPush>& pushes;
  std::vector<std::chrono::milliseconds> budgets;
  OutcomeClass answer = OutcomeClass::delivered;
  bool whole = false;
  std::atomic<int> count{0};
};

/// An action with a sink that is looked at. Its rounds are turned by hand.
struct PushBench : Workbench {
  PushBench() { settings.series.labels = {"job", "rule", "tensor"}; }
  void build() {
    auto made = std::make_unique<RecordingSink>(pushes);
    sink = made.get();
    CommonConfig common;
    action = std::make_unique<PushedMetrics>(
        settings, nullptr, std::move(made), environment,
        IntegrationName{"a/publish_metric", "a", "publish_metric"}, common);
  }
  core::Notification told(const std::string& tensor, bool firing = true,
                          std::uint64_t episode = 1) {
    auto out = sample_notification(
        "ntf", firing ? core::NotificationKind::open : core::NotificationKind::close);
    auto issue = sample_issue(tensor);
    issue.episode = episode;
    issue.issue.status = out.issues[0].issue.status;
    issue.issue.ends_at = out.issues[0].issue.ends_at;
    out.issues = {issue};
    return out;
  }
  std::vector<std::string> tensors(const std::vector<IssueSeries>& series) {
    std::vector<std::string> out;
    for (const auto& one : series) out.push_back(one.label("tensor"));
    return out;
  }
  PushSettings settings;
  std::vector<MetricPush> pushes;
  RecordingSink* sink = nullptr;
  std::unique_ptr<PushedMetrics> action;
};

TEST(PushedMetrics, ANotificationPushesTheSeriesThatItChanged) {
  PushBench bench;
  bench.build();
  EXPECT_EQ(deliver(*bench.action, bench.told("a")).outcome, OutcomeClass::delivered);
  EXPECT_EQ(deliver(*bench.action, bench.told("b")).outcome, OutcomeClass::delivered);
  ASSERT_THAT(bench.pushes, SizeIs(2));
  EXPECT_THAT(bench.tensors(bench.pushes[1].series), ElementsAre("b"));
  EXPECT_TRUE(bench.pushes[1].series[0].active);
  EXPECT_EQ(bench.pushes[1].series[0].episodes, 1u);
  EXPECT_FALSE(bench.pushes[1].whole);
  EXPECT_LT(bench.pushes[0].now, bench.pushes[1].now) << "far sides refuse an equal time";
  EXPECT_EQ(deliver(*bench.action, bench.told("a", false)).outcome, OutcomeClass::delivered);
  EXPECT_FALSE(bench.pushes[2].series.at(0).active);
  EXPECT_EQ(bench.pushes[2].series[0].transition, kStart + 60s);
}

TEST(PushedMetrics, LabelsAreSortedAndSafe) {
  PushBench bench;
  bench.settings.series.labels = {"tensor", "a.b", "job"};
  bench.build();
  auto notification = bench.told("x\x01y\xff");
  notification.issues[0].issue.labels.set("a.b", "1");
  deliver(*bench.action, notification);
  using Labels = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(bench.pushes.at(0).series.at(0).labels,
            (Labels{{"a_b", "1"}, {"job", "digits"}, {"tensor", "x\\x01y\xEF\xBF\xBD"}}));
}

TEST(PushedMetrics, AFarSideThatTakesWholePicturesGetsThem) {
  PushBench bench;
  bench.build();
  bench.sink->whole = true;
  deliver(*bench.action, bench.told("a"));
  deliver(*bench.action, bench.told("b"));
  EXPECT_THAT(bench.tensors(bench.pushes.at(1).series), ElementsAre("a", "b"));
  EXPECT_TRUE(bench.pushes[1].whole);
  EXPECT_FALSE(bench.pushes[1].periodic);
}

TEST(PushedMetrics, ARefusedMessageIsNotSentASecondTime) {
  PushBench bench;
  bench.build();
  auto notification = bench.told("a");
  notification.minimal = true;
  EXPECT_EQ(deliver(*bench.action, notification).outcome, OutcomeClass::bad_payload);
  EXPECT_THAT(bench.pushes, IsEmpty());
}

TEST(PushedMetrics, MaxSeriesIsSaid) {
  PushBench bench;
  bench.settings.series.max_series = 1;
  bench.build();
  deliver(*bench.action, bench.told("a"));
  const auto out = deliver(*bench.action, bench.told("b"));
  EXPECT_EQ(out.outcome, OutcomeClass::delivered);
  EXPECT_THAT(out.detail, HasSubstr("max_series"));
  EXPECT_THAT(bench.pushes, SizeIs(1));
}

struct TurnedByHand : PushBench {
  /// Rounds without their thread: a picture of its own, which a trial has no thread for.
  void build_by_hand() {
    environment.delivers = [this] { return now_leading; };
    environment.issue_metrics = nullptr;
    build();
  }
  bool now_leading = true;
};

TEST(PushedMetrics, WhoDeliversSaysEverythingAgainEachInterval) {
  TurnedByHand bench;
  bench.build_by_hand();
  deliver(*bench.action, bench.told("a"));
  deliver(*bench.action, bench.told("b"));
  bench.pushes.clear();
  bench.action->turn();
  ASSERT_THAT(bench.pushes, SizeIs(1)) << "at once";
  EXPECT_TRUE(bench.pushes[0].whole);
  EXPECT_TRUE(bench.pushes[0].periodic);
  EXPECT_THAT(bench.tensors(bench.pushes[0].series), ElementsAre("a", "b"));
  bench.clock.advance(59s);
  bench.action->turn();
  EXPECT_THAT(bench.pushes, SizeIs(1));
  bench.clock.advance(1s);
  bench.action->turn();
  EXPECT_THAT(bench.pushes, SizeIs(2));
}

TEST(PushedMetrics, ASeriesThatIsNoLongerKeptIsSaidToHaveEndedUntilThatArrives) {
  TurnedByHand bench;
  bench.settings.series.linger = {};
  bench.build_by_hand();
  deliver(*bench.action, bench.told("a"));
  deliver(*bench.action, bench.told("b"));
  auto over = bench.told("a", false);
  over.firing = true;  // another issue of its group fires: no end of a trial
  deliver(*bench.action, over);
  bench.clock.advance(1s);
  bench.pushes.clear();
  bench.sink->answer = OutcomeClass::transient;
  bench.action->turn();
  bench.sink->answer = OutcomeClass::delivered;
  bench.clock.advance(60s);
  bench.action->turn();
  bench.clock.advance(60s);
  bench.action->turn();
  ASSERT_THAT(bench.pushes, SizeIs(3));
  EXPECT_THAT(bench.tensors(bench.pushes[0].ended), ElementsAre("a"));
  EXPECT_THAT(bench.tensors(bench.pushes[1].ended), ElementsAre("a")) << "the first was lost";
  EXPECT_THAT(bench.pushes[2].ended, IsEmpty());
  EXPECT_THAT(bench.tensors(bench.pushes[2].series), ElementsAre("b"));
}

TEST(PushedMetrics, WhoNoLongerDeliversForgetsAndSaysNothing) {
  TurnedByHand bench;
  bench.build_by_hand();
  deliver(*bench.action, bench.told("a"));
  bench.action->turn();
  bench.now_leading = false;
  bench.action->turn();
  bench.now_leading = true;
  bench.pushes.clear();
  bench.action->turn();
  EXPECT_THAT(bench.pushes, IsEmpty()) << "another one shows it, and says what has ended";
  deliver(*bench.action, bench.told("b"));
  EXPECT_THAT(bench.tensors(bench.pushes.at(0).series), ElementsAre("b"));
}

TEST(PushedMetrics, AThreadTurnsItWhereTheProcessSaysWhoDelivers) {
  PushBench bench;
  std::atomic<bool> leading{false};
  bench.environment.delivers = [&leading] { return leading.load(); };
  bench.build();
  bench.metrics.show("a/publish_metric", sample_issue("again"));  // as routing does after a start
  EXPECT_EQ(bench.sink->count, 0);
  leading = true;
  const auto begin = std::chrono::steady_clock::now();
  while (bench.sink->count == 0 && std::chrono::steady_clock::now() - begin < 20s) {
    std::this_thread::sleep_for(20ms);
  }
  bench.action.reset();  // its thread has ended
  ASSERT_THAT(bench.pushes, SizeIs(::testing::Ge(1u)));
  EXPECT_THAT(bench.tensors(bench.pushes[0].series), ElementsAre("again"));
}

TEST(PushedMetrics, ATestMessageLeavesNothingBehind) {
  PushBench bench;
  bench.environment.issue_metrics = nullptr;
  bench.build();
  auto open = bench.told("a");
  open.issues[0].issue.labels.set("test", "true");
  deliver(*bench.action, open);
  EXPECT_EQ(bench.pushes.at(0).series.at(0).label("test"), "true");
  auto close = bench.told("a", false);
  close.issues[0].issue.labels.set("test", "true");
  deliver(*bench.action, close);
  ASSERT_THAT(bench.pushes, SizeIs(3));
  EXPECT_FALSE(bench.pushes[1].series.at(0).active);
  EXPECT_THAT(bench.pushes[2].series, IsEmpty());
  EXPECT_THAT(bench.tensors(bench.pushes[2].ended), ElementsAre("a"));
}

TEST(IssuePictures, EachIntegrationHasItsOwnAndAnEndReachesAll) {
  IssueMetrics metrics;
  const auto one = metrics.picture("one", {{"job"}, 10, 15min});
  const auto two = metrics.picture("two", {{"rule", "job"}, 10, 15min});
  EXPECT_EQ(metrics.picture("one", {{"job"}, 10, 15min}), one);
  metrics.show("one", sample_issue());
  metrics.show("two", sample_issue());
  metrics.show("scraped", sample_issue());
  EXPECT_THAT(one->series(kStart), SizeIs(1));
  EXPECT_THAT(two->series(kStart).at(0).labels, SizeIs(2));
  EXPECT_THAT(metrics.series(kStart), SizeIs(1));
  metrics.end(sample_issue().issue_key, 1, kStart);
  EXPECT_FALSE(one->series(kStart).at(0).active);
  EXPECT_FALSE(two->series(kStart).at(0).active);
  EXPECT_FALSE(metrics.series(kStart).at(0).active);
  EXPECT_THAT(one->series(kStart + 16min), IsEmpty());
}

TEST(IssuePictures, AReloadChangesTheOptionsAndKeepsTheIssues) {
  IssueMetrics metrics;
  const auto picture = metrics.picture("one", {{"job"}, 10, 15min});
  picture->apply(sample_issue());
  (void)metrics.picture("one", {{"rule"}, 10, 15min});
  ASSERT_THAT(picture->series(kStart), SizeIs(1));
  EXPECT_EQ(picture->series(kStart)[0].label("rule"), "exploding_tensor");
  EXPECT_EQ(picture->series(kStart)[0].label("job"), "");
}

}  // namespace
}  // namespace tocsin::actions
