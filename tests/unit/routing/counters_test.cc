// Every figure of the router has a metric.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "routing/routing.h"

namespace tocsin::routing {
namespace {

TEST(RouterCounters, EveryFigureIsExportedOnce) {
  Stats stats;
  std::set<std::string> names;
  std::size_t counters = 0;
  std::size_t gauges = 0;
  for_each_counter(stats, [&](std::string_view name, std::string_view help, std::uint64_t) {
    ++counters;
    EXPECT_TRUE(names.emplace(name).second) << name;
    EXPECT_TRUE(name.starts_with("tocsin_router_") && name.ends_with("_total")) << name;
    EXPECT_FALSE(help.empty());
  });
  for_each_gauge(stats, core::wall_time(0),
                 [&](std::string_view name, std::string_view help, double) {
                   ++gauges;
                   EXPECT_TRUE(names.emplace(name).second) << name;
                   EXPECT_TRUE(name.starts_with("tocsin_router_")) << name;
                   EXPECT_FALSE(help.empty());
                 });
  const std::size_t times = 2;
  const std::size_t labelled = 15;  // for_each_figure() has them
  EXPECT_EQ(sizeof(Stats), (counters + gauges + labelled - times) * sizeof(std::uint64_t) +
                               times * sizeof(std::optional<core::WallTime>))
      << "a new figure needs a line in counters.cc";
}

TEST(RouterCounters, ValuesAndAgesAreThoseOfTheStats) {
  Stats stats;
  stats.orphan_resolves = 3;
  stats.undelivered = 4;
  stats.oldest_undelivered = core::wall_time(1'000'000'000);
  std::map<std::string, double, std::less<>> found;
  for_each_counter(stats, [&](std::string_view name, std::string_view, std::uint64_t value) {
    found[std::string(name)] = static_cast<double>(value);
  });
  for_each_gauge(stats, core::wall_time(3'500'000'000),
                 [&](std::string_view name, std::string_view, double value) {
                   found[std::string(name)] = value;
                 });
  EXPECT_EQ(found.at("tocsin_router_orphan_resolves_total"), 3);
  EXPECT_EQ(found.at("tocsin_router_undelivered"), 4);
  EXPECT_EQ(found.at("tocsin_router_oldest_undelivered_seconds"), 2.5);
  EXPECT_EQ(found.at("tocsin_router_overdue_seconds"), 0);
}

}  // namespace
}  // namespace tocsin::routing
