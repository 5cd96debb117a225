// What a suppressor sees, and when it is asked again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const core::Labels kCause{{"rule", "nan"}, {"job", "digits"}, {"severity", "critical"}};
const core::Labels kEffect{{"rule", "slow"}, {"job", "digits"}, {"severity", "warning"}};

/// What is less than critical is held back while something critical of the job fires.
class Inhibition final : public Suppressor {
 public:
  void reasons(const core::Issue& issue, const KnownIssues& others, core::WallTime /*tick*/,
               std::vector<Suppression>& out) const override {
    bool held = false;
    if (issue.severity == core::Severity::critical) return;
    others.for_each_firing([&](const core::Issue& other) {
      held = held || (other.severity == core::Severity::critical &&
                      other.labels.get("job") == issue.labels.get("job"));
    });
    if (!held || others.find(core::issue_key(kCause)) == nullptr) return;
    out.push_back({"inhibition:job", Reach::all});
  }
  [[nodiscard]] bool may_differ(const core::Labels& group_labels, core::WallTime since,
                                core::WallTime now) const override {
    asked.push_back(group_labels.get("rule"));
    return changed_at > since && changed_at <= now;
  }

  core::WallTime changed_at{};
  mutable std::vector<std::string> asked;
};

class Suppress : public ::testing::Test {
 protected:
  Suppress() {
    h.options.suppressors = {inhibition};
    h.integrations = {webhook("oncall")};
    h.open();
  }
  std::shared_ptr<Inhibition> inhibition = std::make_shared<Inhibition>();
  Harness h;
};

TEST_F(Suppress, OneIssueIsHeldBackByAnother) {
  h.fire(kCause);
  h.fire(kEffect);
  h.at(30s);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_EQ(h.sent.back().issues.at(0).issue.rule, "nan");
}

TEST_F(Suppress, AGroupIsLookedAtAgainWhenAnAnswerMayDiffer) {
  h.fire(kCause);
  h.fire(kEffect);
  h.at(30s);
  h.said();
  h.resolve(kCause);
  h.at(1h);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/1 over"))
      << "nobody has said that the answer for the other group is another one";
  inhibition->changed_at = h.now() + 1s;
  h.at(1h + 10min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_THAT(inhibition->asked, ::testing::Contains("slow"));
}

TEST_F(Suppress, WhileNoneMayDifferAFlushWritesNothing) {
  h.fire(kEffect);
  h.at(30s);
  const auto before = h.changelog;
  h.at(1h);
  EXPECT_EQ(h.changelog, before);
}

}  // namespace
}  // namespace tocsin::routing
