// What a suppressor sees, and when it is asked again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const core::Labels kNotHeld{{"rule", "nan"}, {"job", "digits"}, {"severity", "critical"}};
const core::Labels kHeld{{"rule", "slow"}, {"job", "digits"}, {"severity", "warning"}};

/// What is less than critical is held back while it is `on`.
class Switch final : public Suppressor {
 public:
  void reasons(const core::Issue& issue, core::WallTime /*tick*/,
               std::vector<Suppression>& out) const override {
    if (on && issue.severity != core::Severity::critical) out.push_back({"switch", Reach::all});
  }
  [[nodiscard]] bool may_differ(const AnyMember& any_member, core::WallTime since,
                                core::WallTime now) const override {
    (void)any_member([&](const core::Issue& issue) {
      asked.push_back(issue.labels.get("rule"));
      return false;
    });
    return changed_at > since && changed_at <= now;
  }

  bool on = true;
  core::WallTime changed_at{};
  mutable std::vector<std::string> asked;
};

class Suppress : public ::testing::Test {
 protected:
  Suppress() {
    h.options.suppressors = {held};
    h.integrations = {webhook("oncall")};
    h.open();
  }
  std::shared_ptr<Switch> held = std::make_shared<Switch>();
  Harness h;
};

TEST_F(Suppress, OneIssueIsHeldBackAndAnotherIsTold) {
  h.fire(kNotHeld);
  h.fire(kHeld);
  h.at(30s);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_EQ(h.sent.back().issues.at(0).issue.rule, "nan");
}

TEST_F(Suppress, AGroupIsLookedAtAgainWhenAnAnswerMayDiffer) {
  h.fire(kNotHeld);
  h.fire(kHeld);
  h.at(30s);
  h.said();
  h.resolve(kNotHeld);
  held->on = false;
  h.at(1h);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/1 over"))
      << "nobody has said that the answer for the other group is another one";
  held->changed_at = h.now() + 1s;
  h.at(1h + 10min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_THAT(held->asked, ::testing::Contains("slow"));
}

TEST_F(Suppress, WhileNoneMayDifferAFlushWritesNothing) {
  h.fire(kHeld);
  h.at(30s);
  const auto before = h.changelog;
  h.at(1h);
  EXPECT_EQ(h.changelog, before);
}

}  // namespace
}  // namespace tocsin::routing
