// The sections `route` and `router` as users write them, and what is said about mistakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "routing/routing.h"

namespace tocsin::routing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Loaded {
  RouteConfig route;
  Config router;
  bool present = false;
  std::vector<std::string> problems;
};

Loaded load(std::string_view yaml) {
  Loaded out;
  config::Diagnostics diagnostics;
  const auto environment = [](const std::string&) { return std::optional<std::string>(); };
  const auto document = config::Document::parse(yaml, "t.yaml", environment, diagnostics);
  EXPECT_TRUE(document);
  if (!document) return out;
  document->read(diagnostics, [&](config::Reader& root) {
    out.present = read_route(root, out.route, {"oncall", "stop", "metrics-only"});
    root.section("router", "", [&](config::Reader& in) { read(in, out.router); });
  });
  for (const auto& item : diagnostics.items()) out.problems.push_back(config::to_text(item));
  return out;
}

TEST(RouteConfig, ReadsTheTreeOfTheContract) {
  const Loaded loaded = load(R"(
route:
  receiver: oncall
  group_by: [job, rule]
  routes:
    - matchers: ['severity="error"']
      receiver: stop
      continue: true
)");
  EXPECT_THAT(loaded.problems, IsEmpty());
  EXPECT_TRUE(loaded.present);
  EXPECT_THAT(loaded.route.receivers, ElementsAre("oncall"));
  EXPECT_THAT(*loaded.route.group_by, ElementsAre("job", "rule"));
  ASSERT_EQ(loaded.route.routes.size(), 1U);
  EXPECT_THAT(loaded.route.routes[0].matchers, ElementsAre("severity=\"error\""));
  EXPECT_THAT(loaded.route.routes[0].receivers, ElementsAre("stop"));
  EXPECT_TRUE(loaded.route.routes[0].proceed);
  EXPECT_EQ(loaded.route.routes[0].group_by, std::nullopt);
}

TEST(RouteConfig, ReadsEveryKey) {
  const Loaded loaded = load(R"(
route:
  receivers: [oncall, stop]
  group_wait: 0s
  group_interval: 90s
  repeat_interval: [{until: 1d, every: 4h}, {every: 1w}]
  routes:
    - id: page
      matchers: '{severity="critical", env!~"dev|test"}'
      group_by: ["..."]
      immediate_on: 'severity="critical"'
      urgent_wait: 1s
      urgent_min_gap: 10s
      repeat_interval: 30m
      routes:
        - matchers: [team=nlp]
router:
  resolve_timeout: 1m
  dedup_window: 1h
  retention: 2h
  job_lost_after: 3m
  max_future: 1m
  catchup_hold_max: 10s
  limits: {max_groups: 7, max_groups_per_route: 6, max_members_per_group: 5, dedup_max: 4, owed_max_age: 1d}
)");
  EXPECT_THAT(loaded.problems, IsEmpty());
  EXPECT_THAT(loaded.route.receivers, ElementsAre("oncall", "stop"));
  EXPECT_EQ(*loaded.route.group_wait, 0s);
  EXPECT_EQ(*loaded.route.group_interval, 90s);
  ASSERT_EQ(loaded.route.repeat_interval->size(), 2U);
  EXPECT_EQ(*loaded.route.repeat_interval->at(0).until, 24h);
  EXPECT_EQ(loaded.route.repeat_interval->at(1).every, 24h * 7);
  const RouteConfig& page = loaded.route.routes.at(0);
  EXPECT_EQ(page.id, "page");
  EXPECT_THAT(*page.group_by, ElementsAre("..."));
  EXPECT_EQ(page.immediate_on, "severity=\"critical\"");
  EXPECT_EQ(*page.urgent_wait, 1s);
  EXPECT_EQ(*page.urgent_min_gap, 10s);
  EXPECT_EQ(page.repeat_interval->at(0).every, 30min);
  EXPECT_THAT(page.routes.at(0).matchers, ElementsAre("team=nlp"));
  EXPECT_EQ(loaded.router.resolve_timeout, 1min);
  EXPECT_EQ(loaded.router.job_lost_after, 3min);
  EXPECT_EQ(loaded.router.max_groups, 7U);
  EXPECT_EQ(loaded.router.owed_max_age, 24h);
  EXPECT_EQ(loaded.router.catchup_hold_max, 10s);
  EXPECT_EQ(loaded.router.max_future, 1min);
}

TEST(RouteConfig, ReadsWhoIsToldBeyondTheReceivers) {
  const Loaded loaded = load(R"(
route:
  receiver: oncall
  escalation:
    - {after: 10m, receiver: stop}
    - {after: 30m, receiver: oncall, unless: [resolved], repeat: {every: 20m, max: 3}}
  on_delivery_failure: {receiver: stop}
  propagate_ack: true
  flap: {episodes: 3}
  routes:
    - {matchers: a=b, escalation: []}
router: {ack_timeout: 8h, on_regroup: leave}
)");
  EXPECT_THAT(loaded.problems, IsEmpty());
  const EscalationConfig& further = loaded.route.further;
  ASSERT_EQ(further.steps->size(), 2U);
  EXPECT_EQ(further.steps->at(0).after, 10min);
  EXPECT_EQ(further.steps->at(0).receiver, "stop");
  EXPECT_TRUE(further.steps->at(0).unless_acked);
  EXPECT_EQ(further.steps->at(0).repeats, 0U);
  EXPECT_FALSE(further.steps->at(1).unless_acked);
  EXPECT_EQ(further.steps->at(1).every, 20min);
  EXPECT_EQ(further.steps->at(1).repeats, 3U);
  EXPECT_EQ(further.on_failure->receiver, "stop");
  EXPECT_EQ(further.on_failure->after, 2min);
  EXPECT_TRUE(*further.propagate_ack);
  EXPECT_EQ(loaded.route.flap->episodes, 3U);
  EXPECT_EQ(loaded.route.flap->hold, 15min);
  EXPECT_TRUE(loaded.route.routes.at(0).further.steps->empty());
  EXPECT_FALSE(loaded.route.routes.at(0).further.propagate_ack);
  EXPECT_EQ(loaded.router.ack_timeout, 8h);
  EXPECT_FALSE(loaded.router.close_regrouped);
}

TEST(RouteConfig, RefusesLaddersThatLeadNowhere) {
  const Loaded loaded = load(R"(
route:
  receiver: oncall
  escalation:
    - {after: 10m, receiver: stopp, unless: [acket]}
    - {after: 10m, receiver: stop, repeat: {every: 0s}}
    - {receiver: stop}
  on_delivery_failure: {receiver: oncall}
  flap: {episodes: 1}
)");
  const auto& all = loaded.problems;
  EXPECT_THAT(all, Contains(AllOf(HasSubstr("t.yaml:5:"), HasSubstr("did you mean 'stop'?"))));
  EXPECT_THAT(all, Contains(AllOf(HasSubstr("t.yaml:5:"), HasSubstr("did you mean 'acked'?"))));
  EXPECT_THAT(all, Contains(AllOf(HasSubstr("t.yaml:6:"), HasSubstr("later than that"))));
  EXPECT_THAT(all, Contains(AllOf(HasSubstr("t.yaml:6:"), HasSubstr("every"))));
  EXPECT_THAT(all, Contains(AllOf(HasSubstr("t.yaml:7:"), HasSubstr("after"))));
  EXPECT_THAT(all, Contains(AllOf(HasSubstr("t.yaml:8:"), HasSubstr("stand in for itself"))));
  EXPECT_THAT(all, Contains(AllOf(HasSubstr("t.yaml:9:"), HasSubstr("episodes"))));
}

TEST(RouteConfig, WithoutTheSectionThereIsNothingToTell) {
  const Loaded loaded = load("router: {retention: 1h}\n");
  EXPECT_FALSE(loaded.present);
  EXPECT_THAT(loaded.problems, IsEmpty());
}

TEST(RouteConfig, NamesTheNearestReceiverAndThePlace) {
  const Loaded loaded = load("route:\n  receiver: oncal\n");
  EXPECT_THAT(loaded.problems, ElementsAre(AllOf(HasSubstr("t.yaml:2:"), HasSubstr("error"),
                                                 HasSubstr("did you mean 'oncall'?"))));
}

TEST(RouteConfig, ReportsAllMistakesOfATreeAtOnce) {
  const Loaded loaded = load(R"(
route:
  receiver: oncall
  group_by: [job, job]
  group_interval: 0s
  routes:
    - {id: a, matchers: 'severity=', receiver: stopp}
    - {id: a, matchers: [7], receivers: [oncall], receiver: oncall}
    - {matchers: 'a=~"("', repeat_interval: 0s, immediate_on: '=' }
    - {matchers: [a=b, 'c'], group_by: [x, "..."], repeat_interval: [{until: 2h, every: 1h}, {until: 1h, every: 1h}]}
    - {matchers: a=b, repeat_interval: [{evry: 1h}], group_wiat: 3s}
)");
  const auto& all = loaded.problems;
  EXPECT_THAT(all, Contains(AllOf(HasSubstr("t.yaml:4:"), HasSubstr("'job' is named twice"))));
  EXPECT_THAT(all, Contains(AllOf(HasSubstr("t.yaml:5:"), HasSubstr("group_interval"))));
  EXPECT_THAT(all, Contains(AllOf(HasSubstr("t.yaml:7:"), HasSubstr("at character 10"))));
  EXPECT_THAT(all, Contains(AllOf(HasSubstr("t.yaml:7:"), HasSubstr("did you mean 'stop'?"))));
  EXPECT_THAT(all, Contains(AllOf(HasSubstr("t.yaml:8:"), HasSubstr("line 7"))));
  EXPECT_THAT(all, Contains(AllOf(HasSubstr("t.yaml:8:"), HasSubstr("put it in single quotes"))));
  EXPECT_THAT(all, Contains(AllOf(HasSubstr("t.yaml:8:"), HasSubstr("either receiver or"))));
  EXPECT_THAT(all, Contains(AllOf(HasSubstr("t.yaml:9:"), HasSubstr("regular expression"))));
  EXPECT_THAT(all, Contains(AllOf(HasSubstr("t.yaml:9:"), HasSubstr("greater than zero"))));
  EXPECT_THAT(all, Contains(AllOf(HasSubstr("t.yaml:9:"), HasSubstr("expected a label name"))));
  EXPECT_THAT(all, Contains(AllOf(HasSubstr("t.yaml:10:"), HasSubstr("expected one of"))));
  EXPECT_THAT(all, Contains(AllOf(HasSubstr("t.yaml:10:"), HasSubstr("cannot be mixed"))));
  EXPECT_THAT(all, Contains(AllOf(HasSubstr("t.yaml:10:"), HasSubstr("until must be greater"))));
  EXPECT_THAT(all, Contains(AllOf(HasSubstr("t.yaml:11:"), HasSubstr("did you mean 'every'?"))));
  EXPECT_THAT(all, Contains(AllOf(HasSubstr("t.yaml:11:"), HasSubstr("group_wait"))));
}

TEST(RouteConfig, SaysHowATimeIsWritten) {
  EXPECT_THAT(load("route: {receiver: oncall, repeat_interval: 5 min}\n").problems,
              Contains(HasSubstr("; write 5m")));
  EXPECT_THAT(load("route: {receiver: oncall, repeat_interval: 5}\n").problems,
              Contains(HasSubstr("a number needs its unit")));
  EXPECT_THAT(load("route: {receiver: oncall, repeat_interval: [{every: 2 days}]}\n").problems,
              Contains(HasSubstr("; write 2d")));
  EXPECT_THAT(load("route: {receiver: oncall, repeat_interval: [5m]}\n").problems,
              Contains(HasSubstr("the last step only {every: 1d}")));
}

TEST(RouteConfig, TheRootMatchesEverything) {
  const Loaded loaded = load("route: {receiver: oncall, matchers: a=b, continue: true}\n");
  EXPECT_THAT(loaded.problems, Contains(HasSubstr("the root route has no matchers")));
  EXPECT_THAT(loaded.problems, Contains(HasSubstr("the root route has no siblings")));
  EXPECT_THAT(load("route: {group_by: [job]}\n").problems,
              Contains(HasSubstr("the root route needs a receiver")));
}

TEST(RouteConfig, WarnsOfRoutesThatAreNeverReached) {
  const Loaded loaded = load(R"(
route:
  receiver: oncall
  routes:
    - {matchers: a=b, receiver: stop}
    - {matchers: 'a="b"', receiver: oncall}
    - {receiver: oncall}
    - {matchers: c=d}
)");
  ASSERT_EQ(loaded.problems.size(), 2U);
  EXPECT_THAT(loaded.problems[0],
              AllOf(HasSubstr("t.yaml:6:"), HasSubstr("warning"), HasSubstr("never reached")));
  EXPECT_THAT(loaded.problems[1], HasSubstr("t.yaml:8:"));
}

TEST(RouteConfig, DescribesItsKeysOnceForEveryLevel) {
  const auto keys = config::describe([](config::Reader& root) {
    RouteConfig route;
    read_route(root, route, {});
  });
  std::vector<std::string> paths;
  for (const auto& key : keys) paths.push_back(key.path);
  EXPECT_THAT(paths, Contains("route.group_wait"));
  EXPECT_THAT(paths, Contains(HasSubstr("matchers")));
  EXPECT_LT(paths.size(), 60U);
}

}  // namespace
}  // namespace tocsin::routing
