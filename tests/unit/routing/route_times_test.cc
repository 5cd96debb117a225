// Routes that are muted at times: who is told when, and what is told afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// kStart is 2026-01-02T03:03:20Z, a Friday: the hours below are counted from there.
const core::Labels kLoss{{"rule", "nan"}, {"job", "digits"}, {"severity", "error"}};

TimeInterval at_clock(const std::string& name, const std::string& start, const std::string& end) {
  TimeWindow window;
  window.times = {{start, end}};
  return {name, {window}};
}

class RouteTimesTest : public ::testing::Test {
 protected:
  RouteTimesTest() {
    h.options.suppressors
        .clear();  // the silencer of the harness has every group looked at each time
    h.options.time_intervals = {at_clock("nights", "03:00", "08:00"),
                                at_clock("office", "09:00", "17:00")};
    RouteConfig quiet;
    quiet.matchers = {"job=digits"};
    h.tree.routes = {quiet};
    h.tree.group_interval = 5min;
  }
  RouteConfig& quiet() { return h.tree.routes[0]; }
  Harness h;
};

TEST_F(RouteTimesTest, AMutedRouteTellsInTheMorningWhatStillFires) {
  quiet().mute_times = {{"nights"}};
  h.open();
  h.fire(kLoss);
  h.at(4h + 56min);  // 07:59:20
  EXPECT_THAT(h.said(), IsEmpty());
  EXPECT_GT(h.router().stats().muted, 0U);
  EXPECT_EQ(h.router().stats().suppressed, h.router().stats().muted);
  h.at(5h + 1min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
}

TEST_F(RouteTimesTest, OtherRoutesGoOn) {
  quiet().mute_times = {{"nights"}};
  h.open();
  h.fire({{"rule", "nan"}, {"job", "words"}, {"severity", "error"}});
  h.at(10min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
}

TEST_F(RouteTimesTest, OutsideItsActiveTimesARouteIsMuted) {
  quiet().active_times = {{"office"}};
  h.open();
  h.fire(kLoss);
  h.at(5h + 56min);
  EXPECT_THAT(h.said(), IsEmpty());
  h.at(6h + 1min);  // 09:04:20
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_THAT(h.router().muted_by(h.sent.back().route_id, h.now()), IsEmpty());
  EXPECT_THAT(h.router().muted_by(h.sent.back().route_id, h.now() + 10h),
              ElementsAre("active_time:office"));
}

TEST_F(RouteTimesTest, AMuteWinsOverAnActiveTime) {
  h.options.time_intervals.push_back(at_clock("lunch", "12:00", "13:00"));
  quiet().active_times = {{"office"}};
  quiet().mute_times = {{"lunch"}};
  h.open();
  h.at(9h);  // 12:03:20
  h.fire(kLoss);
  h.at(9h + 50min);
  EXPECT_THAT(h.said(), IsEmpty());
  const std::string route = h.router().explain(kLoss).leaves.at(0).route_id;
  EXPECT_THAT(h.router().muted_by(route, h.now()), ElementsAre("mute_time:lunch"));
  h.at(10h + 1min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
}

TEST_F(RouteTimesTest, AResolveInTheNightIsOwedToMailAndPaidInTheMorning) {
  Integration mail = webhook("mail");
  mail.stateful = false;
  h.integrations = {webhook("oncall"), mail};
  h.tree.receivers = {"oncall", "mail"};
  h.options.time_intervals = {at_clock("nights", "04:00", "08:00")};
  quiet().mute_times = {{"nights"}};
  h.open();
  h.fire(kLoss);
  h.at(10min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "first open mail 1/0"));
  h.at(2h);  // 05:03:20
  h.resolve(kLoss);
  h.at(4h);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/1 over"))
      << "an incident is closed although the route is muted";
  h.crash();
  h.at(5h + 1min);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close mail 0/1 over"));
}

TEST_F(RouteTimesTest, ARepeatThatIsDueInTheNightComesInTheMorning) {
  h.options.time_intervals = {at_clock("nights", "04:00", "08:00")};
  quiet().mute_times = {{"nights"}};
  quiet().repeat_interval = {{RepeatStep{std::nullopt, 2h}}};
  h.open();
  h.fire(kLoss);
  h.at(10min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  h.at(4h + 50min);
  EXPECT_THAT(h.said(), IsEmpty());
  h.at(5h + 4min);
  EXPECT_THAT(h.said(), ElementsAre("repeat repeat oncall 1/0"));
}

TEST_F(RouteTimesTest, StopsAreMutedTooUnlessTheyDoNotRespectTime) {
  Integration stop = webhook("stop");
  stop.purpose = Purpose::stop;
  Integration always = webhook("always");
  always.purpose = Purpose::stop;
  always.respect.time = false;
  Integration board = webhook("board");
  board.purpose = Purpose::show;
  h.integrations = {webhook("oncall"), stop, always, board};
  h.tree.receivers = {"oncall", "stop", "always", "board"};
  quiet().mute_times = {{"nights"}};
  quiet().repeat_interval = {{RepeatStep{std::nullopt, 24h}}};
  h.open();
  h.fire(kLoss);
  h.at(10min);
  EXPECT_THAT(h.said(), ElementsAre("first open always 1/0", "first open board 1/0"));
  h.at(5h + 1min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "first open stop 1/0"));
}

TEST_F(RouteTimesTest, AStopMayRespectInhibitionAndAMessageNeedNotRespectASilence) {
  Integration stop = webhook("stop");
  stop.purpose = Purpose::stop;
  Integration careful = stop;
  careful.id = careful.receiver = "careful";
  careful.respect.inhibition = true;
  Integration audit = webhook("audit");
  audit.respect.silences = false;
  h.integrations = {webhook("oncall"), stop, careful, audit};
  h.tree.receivers = {"oncall", "stop", "careful", "audit"};
  h.options.inhibit_rules = {{"by-exam", {"rule=exam"}, {"rule=nan"}, {}, {}, {}}};
  h.open();
  h.fire({{"rule", "exam"}, {"job", "other"}});
  h.at(10min);
  h.said();
  h.fire(kLoss);
  h.at(20min);
  EXPECT_THAT(h.said(), ElementsAre("first open stop 1/0"));
  ASSERT_TRUE(h.router().on_control(
      "silence/sil_one",
      R"({"id":"sil_one","matchers":"{job=\"words\"}","starts_at":"2026-01-01T00:00:00Z",)"
      R"("ends_at":"2026-02-01T00:00:00Z"})",
      h.now()));
  h.fire({{"rule", "slow"}, {"job", "words"}, {"severity", "error"}});
  h.at(30min);
  EXPECT_THAT(h.said(), ElementsAre("first open audit 1/0"));
}

TEST_F(RouteTimesTest, WhileNoIntervalBeginsOrEndsAFlushWritesNothing) {
  quiet().mute_times = {{"nights"}};
  h.open();
  h.fire(kLoss);
  h.at(10min);
  const auto before = h.changelog;
  h.at(4h + 50min);
  EXPECT_EQ(h.changelog, before);
}

TEST_F(RouteTimesTest, TheNextLookSeesThatAnIntervalHasEndedHowLongAgoItMayBe) {
  h.options.time_intervals = {at_clock("blink", "03:00", "03:10")};
  quiet().mute_times = {{"blink"}};
  quiet().group_wait = 0s;
  quiet().group_interval = 12h;
  h.open();
  h.fire(kLoss);  // muted
  h.at(13h);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
}

TEST_F(RouteTimesTest, IntervalsAreNotInherited) {
  RouteConfig inner;
  inner.matchers = {"rule=nan"};
  quiet().routes = {inner};
  quiet().mute_times = {{"nights"}};
  h.open();
  h.fire(kLoss);
  h.at(10min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
}

TEST_F(RouteTimesTest, WhatCannotBeIsRefused) {
  const auto problem = [&] {
    const auto made = Router::create(h.tree, {}, h.integrations, h.options);
    return made ? std::string() : made.error().message;
  };
  quiet().mute_times = {{"night"}};
  EXPECT_THAT(problem(), HasSubstr("no time interval is called 'night'; did you mean 'nights'?"));
  quiet().mute_times = {{"nights"}};
  h.options.time_intervals.push_back(h.options.time_intervals[0]);
  EXPECT_THAT(problem(), HasSubstr("two time intervals are called 'nights'"));
  h.options.time_intervals.pop_back();
  h.options.time_intervals[1].windows[0].weekdays = {"someday"};
  EXPECT_THAT(problem(), StartsWith("time interval office: interval 1, weekdays[0]: "));
  h.options.time_intervals[1].windows[0].weekdays.clear();
  EXPECT_EQ(problem(), "");
  h.tree.mute_times = {{"nights"}};
  EXPECT_THAT(problem(), HasSubstr("the root route has no time intervals"));
}

// ---- as people write them

struct TimesReading {
  std::vector<TimeInterval> intervals;
  RouteConfig route;
  std::vector<std::string> problems;
};

TimesReading read_times(const std::string& yaml) {
  TimesReading out;
  config::Diagnostics diagnostics;
  const config::Environment nothing = [](const std::string&) { return std::nullopt; };
  const auto document = config::Document::parse(yaml, "t.yaml", nothing, diagnostics);
  document->read(diagnostics, [&](config::Reader& in) {
    read_time_intervals(in, out.intervals);
    std::vector<std::string> names;
    for (const auto& one : out.intervals) names.push_back(one.name);
    read_route(in, out.route, {"oncall"}, names);
  });
  for (const auto& item : diagnostics.items()) out.problems.push_back(config::to_text(item));
  return out;
}

const std::string kRoot = "route:\n  receiver: oncall\n";

TEST(TimeIntervals, AreReadWithAllTheirKeys) {
  const auto reading = read_times(
      "time_intervals:\n"
      "  - name: nights\n"
      "    intervals:\n"
      "      - {times: [{start: 20:00, end: 24:00}, {start: \"00:00\", end: \"08:00\"}],\n"
      "         weekdays: [monday:friday, sunday], days_of_month: [1, '-3:-1'], months: june,\n"
      "         years: [2026], location: Europe/Berlin}\n"
      "      - weekdays: saturday\n" +
      kRoot +
      "  routes:\n"
      "    - {matchers: 'a=b', mute_time_intervals: [nights], active_time_intervals: nights}\n");
  EXPECT_THAT(reading.problems, IsEmpty());
  ASSERT_EQ(reading.intervals.size(), 1U);
  ASSERT_EQ(reading.intervals[0].windows.size(), 2U);
  const TimeWindow& window = reading.intervals[0].windows[0];
  EXPECT_THAT(window.times, ElementsAre(ClockSpan{"20:00", "24:00"}, ClockSpan{"00:00", "08:00"}));
  EXPECT_THAT(window.weekdays, ElementsAre("monday:friday", "sunday"));
  EXPECT_THAT(window.days_of_month, ElementsAre("1", "-3:-1"));
  EXPECT_THAT(window.months, ElementsAre("june"));
  EXPECT_THAT(window.years, ElementsAre("2026"));
  EXPECT_EQ(window.location, "Europe/Berlin");
  EXPECT_THAT(*reading.route.routes.at(0).mute_times, ElementsAre("nights"));
  EXPECT_THAT(*reading.route.routes.at(0).active_times, ElementsAre("nights"));
}

TEST(TimeIntervals, EachMistakeIsReportedAtItsPlace) {
  const auto problems = [](const std::string& window) {
    return read_times("time_intervals:\n  - name: n\n    intervals:\n      - {" + window + "}\n" +
                      kRoot)
        .problems;
  };
  EXPECT_THAT(problems("times: [{start: '08:00', end: '07:00'}]"),
              ElementsAre(::testing::AllOf(StartsWith("t.yaml:4:"), HasSubstr("times[0].end"),
                                           HasSubstr("not after the start"))));
  EXPECT_THAT(problems("weekdays: [monday, mondey]"),
              ElementsAre(::testing::AllOf(StartsWith("t.yaml:4:29"),
                                           HasSubstr("did you mean \"monday\"?"))));
  EXPECT_THAT(problems("months: jan"), ElementsAre(HasSubstr("did you mean \"january\"?")));
  EXPECT_THAT(problems("location: Nowhere/Land"), ElementsAre(HasSubstr("no time zone")));
  EXPECT_THAT(problems("times: [{start: '08:00'}]"), ElementsAre(HasSubstr("end")));
  EXPECT_THAT(problems("weekday: monday"), ElementsAre(HasSubstr("did you mean \"weekdays\"?")));
  EXPECT_THAT(problems("years: []"), ElementsAre(HasSubstr("an empty list")));
  EXPECT_THAT(read_times("time_intervals:\n  - {name: a}\n" + kRoot).problems,
              ElementsAre(HasSubstr("at least one entry in `intervals`")));
  EXPECT_THAT(read_times("time_intervals:\n  - {name: a, intervals: [{years: 2026}]}\n"
                         "  - {name: a, intervals: [{years: 2026}]}\n" +
                         kRoot)
                  .problems,
              ElementsAre(HasSubstr("the interval at line 2 is called 'a' already")));
}

TEST(TimeIntervals, ARouteNamesWhatIsThereAndTheRootNone) {
  const std::string nights = "time_intervals:\n  - {name: nights, intervals: [{years: 2026}]}\n";
  EXPECT_THAT(
      read_times(nights + kRoot + "  routes: [{matchers: 'a=b', mute_time_intervals: [night]}]\n")
          .problems,
      ElementsAre(::testing::AllOf(
          StartsWith("t.yaml:5:"),
          HasSubstr("no time interval is called 'night'; did you mean 'nights'?"))));
  EXPECT_THAT(read_times(nights + kRoot + "  mute_time_intervals: [nights]\n").problems,
              ElementsAre(HasSubstr("the root route has no time intervals")));
  EXPECT_THAT(read_times(nights + kRoot +
                         "  routes: [{matchers: 'a=b', active_time_intervals: [nights, nights]}]\n")
                  .problems,
              ElementsAre(HasSubstr("named twice")));
}

}  // namespace
}  // namespace tocsin::routing
