// What a new configuration changes for an issue: who is told, and in which group.
#include "app/config/route_moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin::app {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kMovedTo[] =
    "receivers: {a: {webhook: {url: 'https://a.example'}}, b: {webhook: {url: "
    "'https://b.example', when: ['severity=\"error\"']}}, off: {webhook: {url: "
    "'https://c.example', enabled: false}}}\n";

AppConfig previewed_config(const std::string& yaml) {
  AppConfig out;
  config::Diagnostics diagnostics;
  const auto document = config::Document::parse(
      kMovedTo + yaml, "t.yaml", [](const std::string&) { return std::nullopt; }, diagnostics);
  if (document) document->read(diagnostics, [&](config::Reader& root) { read(root, out); });
  for (const auto& item : diagnostics.items()) {
    if (item.grade == config::Grade::error) ADD_FAILURE() << config::to_text(item);
  }
  return out;
}

RouteMove move_of(const std::string& before, const std::string& after, const core::Labels& labels) {
  const auto old_routes = RoutePreview::of(previewed_config(before));
  const auto new_routes = RoutePreview::of(previewed_config(after));
  return move_between(old_routes->destinations(labels), new_routes->destinations(labels));
}

const core::Labels kMovedError{{"rule", "overfit"}, {"job", "j"}, {"severity", "error"}};
const core::Labels kMovedWarning{{"rule", "overfit"}, {"job", "j"}, {"severity", "warning"}};

TEST(RouteMoves, AnotherReceiverIsALossAndAGain) {
  const RouteMove move = move_of("route: {receiver: a}", "route: {receiver: b}", kMovedError);
  EXPECT_THAT(move.lost, ElementsAre("a/webhook"));
  EXPECT_THAT(move.gained, ElementsAre("b/webhook"));
  EXPECT_THAT(move.regrouped, IsEmpty());
}

TEST(RouteMoves, WhatAnIntegrationIsNotToldOfIsNoGain) {
  EXPECT_THAT(move_of("route: {receiver: a}", "route: {receivers: [a, b]}", kMovedWarning).gained,
              IsEmpty())
      << "`when` of b asks for errors";
  EXPECT_THAT(move_of("route: {receiver: a}", "route: {receivers: [a, off]}", kMovedError).gained,
              IsEmpty())
      << "the integration is switched off";
}

TEST(RouteMoves, OtherGroupsAreAMoveAndOtherTimersAreNone) {
  EXPECT_THAT(move_of("route: {receiver: a, group_by: [job]}",
                      "route: {receiver: a, group_by: [rule]}", kMovedError)
                  .regrouped,
              ElementsAre("a/webhook"));
  EXPECT_TRUE(
      move_of("route: {receiver: a}", "route: {receiver: a, group_interval: 7m}", kMovedError)
          .empty());
}

TEST(RouteMoves, WithoutARouteNobodyIsTold) {
  EXPECT_THAT(move_of("", "route: {receiver: a}", kMovedError).gained, ElementsAre("a/webhook"));
  EXPECT_THAT(move_of("route: {receiver: a}", "", kMovedError).lost, ElementsAre("a/webhook"));
}

}  // namespace
}  // namespace tocsin::app
