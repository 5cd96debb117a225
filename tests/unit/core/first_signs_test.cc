// Which issues were first signs, beside a scan over all pairs.
#include "core/first_signs.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace tocsin::core {
namespace {

IssueSpan span(std::string_view key, std::optional<std::int64_t> step, std::int64_t opened,
               std::optional<std::int64_t> closed = {}) {
  return {key, "train", 1, step, opened, closed};
}

TEST(FirstSigns, AnEarlierStepThatIsNotOverComesBefore) {
  EXPECT_TRUE(began_before(span("a", 7, 200), span("b", 8, 100))) << "though it was reported later";
  EXPECT_TRUE(began_before(span("a", 7, 50, 100), span("b", 8, 100)));
  EXPECT_FALSE(began_before(span("a", 7, 50, 99), span("b", 8, 100))) << "it was over";
  EXPECT_FALSE(began_before(span("a", 8, 50), span("b", 8, 100))) << "the same step";
  EXPECT_FALSE(began_before(span("a", {}, 50), span("b", 8, 100)));
  EXPECT_FALSE(began_before(span("a", 7, 50), span("b", {}, 100)));
  EXPECT_FALSE(began_before(span("a", 7, 50), span("a", 8, 100))) << "the same issue";
  IssueSpan other = span("a", 7, 50);
  other.attempt = 2;
  EXPECT_FALSE(began_before(other, span("b", 8, 100)));
  other = span("a", 7, 50);
  other.mode = "eval";
  EXPECT_FALSE(began_before(other, span("b", 8, 100)));
}

TEST(FirstSigns, AllOfARunAtOnceAreAsEachPairSays) {
  std::mt19937 chance(26);  // NOLINT(cert-msc51-cpp)
  const std::string keys[] = {"a", "b", "c", "d"};
  const auto below = [&](int bound) { return std::uniform_int_distribution(0, bound - 1)(chance); };
  int some = 0;
  for (int turn = 0; turn < 2000; ++turn) {
    std::vector<IssueSpan> issues(static_cast<std::size_t>(below(9)));
    for (IssueSpan& one : issues) {
      one.key = keys[below(4)];
      one.mode = below(2) == 0 ? "train" : "";
      one.attempt = 1 + below(2);
      if (below(6) > 0) one.step = below(5);
      one.opened = below(20);
      if (below(2) == 0) one.closed = one.opened + below(10);
    }
    const std::vector<bool> told = preceded(issues);
    for (std::size_t at = 0; at < issues.size(); ++at) {
      bool any = false;
      for (const IssueSpan& other : issues) any = any || began_before(other, issues[at]);
      ASSERT_EQ(told[at], any) << "turn " << turn << ", issue " << at;
      some += any ? 1 : 0;
    }
  }
  EXPECT_GT(some, 500);
}

}  // namespace
}  // namespace tocsin::core
