// The section `inhibit_rules`: its keys, and each mistake at its place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Reading {
  std::vector<InhibitRule> rules;
  std::vector<std::string> problems;
};

Reading read_text(const std::string& yaml) {
  Reading out;
  config::Diagnostics diagnostics;
  const config::Environment nothing = [](const std::string&) { return std::nullopt; };
  const auto document = config::Document::parse(yaml, "t.yaml", nothing, diagnostics);
  document->read(diagnostics, [&](config::Reader& in) { read_inhibit_rules(in, out.rules); });
  for (const auto& item : diagnostics.items()) out.problems.push_back(config::to_text(item));
  return out;
}

TEST(InhibitRules, AreReadWithAllTheirKeys) {
  const Reading reading = read_text(
      "inhibit_rules:\n"
      "  - {name: a, source_matchers: [rule=nan], target_matchers: 'rule!=nan', equal: [run_uid],\n"
      "     source_min_age: 10s, hold_after: 1m}\n");
  EXPECT_THAT(reading.problems, IsEmpty());
  ASSERT_EQ(reading.rules.size(), 1U);
  const InhibitRule& rule = reading.rules[0];
  EXPECT_EQ(rule.name, "a");
  EXPECT_THAT(rule.source_matchers, ElementsAre("rule=nan"));
  EXPECT_THAT(rule.target_matchers, ElementsAre("rule!=nan"));
  EXPECT_THAT(rule.equal, ElementsAre("run_uid"));
  EXPECT_EQ(rule.source_min_age, core::Duration(10s));
  EXPECT_EQ(rule.hold_after, core::Duration(1min));
}

TEST(InhibitRules, EachMistakeIsReportedAtItsPlace) {
  const auto problem = [](const std::string& keys) {
    const Reading reading = read_text("inhibit_rules:\n  - {" + keys + "}\n");
    return reading.problems.empty() ? std::string("none") : reading.problems[0];
  };
  const std::string good = "name: a, source_matchers: a=b, target_matchers: a=c, equal: []";
  EXPECT_EQ(problem(good), "none");
  const auto says = [](const std::string& where, const std::string& what) {
    return ::testing::AllOf(::testing::StartsWith("t.yaml:" + where), ::testing::HasSubstr(what));
  };
  EXPECT_THAT(problem("source_matchers: a=b, target_matchers: a=c, equal: []"), says("2:", "name"));
  EXPECT_THAT(problem("name: a, target_matchers: a=c, equal: []"),
              says("2:", "source_matchers is missing"));
  EXPECT_THAT(problem("name: a, source_matchers: [], target_matchers: a=c, equal: []"),
              says("2:32", "at least one matcher"));
  EXPECT_THAT(problem("name: a, source_matchers: 'a=~\"(\"', target_matchers: a=c, equal: []"),
              says("2:32", "regular expression"));
  EXPECT_THAT(problem(good + ", source_min_age: -1s"), says("2:", "source_min_age"));
  EXPECT_THAT(problem(good + ", hold_aftr: 1s"), says("2:", "did you mean \"hold_after\"?"));
  EXPECT_THAT(problem("name: a, source_matchers: a=b, target_matchers: a=c, equal: [x, x]"),
              says("2:", "'x' is named twice"));
  EXPECT_THAT(problem("name: a, source_matchers: a=b, target_matchers: a=c"),
              says("2:", "warning: without `equal`"));
  EXPECT_THAT(problem("name: a, source_matchers: a=b, target_matchers: a=b, equal: []"),
              says("2:", "warning: this rule inhibits nothing"));
}

TEST(InhibitRules, ANameIsGivenOnce) {
  const std::string one = "  - {name: a, source_matchers: a=b, target_matchers: a=c, equal: []}\n";
  EXPECT_THAT(read_text("inhibit_rules:\n" + one + one).problems,
              ElementsAre(::testing::HasSubstr("the rule at line 2 is called 'a' already")));
}

}  // namespace
}  // namespace tocsin::routing
