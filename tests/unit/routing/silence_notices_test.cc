// Who hears of silences: when one begins, before its end while it hides something, and at its end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const core::Labels kNanOfDigits{{"rule", "nan"}, {"job", "digits"}, {"severity", "error"}};

class SilenceNoticesTest : public ::testing::Test {
 protected:
  SilenceNoticesTest() {
    h.options.suppressors.clear();
    h.integrations.push_back(webhook("board"));
    RouteConfig notices;
    notices.matchers = {"rule=silence_notice"};
    notices.receivers = {"board"};
    notices.group_by = std::vector<std::string>{"silence"};
    notices.group_wait = core::Duration::zero();
    notices.group_interval = 10s;
    h.tree.routes.push_back(notices);
    h.open();
  }

  void silence(const std::string& matchers, core::Duration to, std::uint64_t version = 1,
               core::Duration from = 0s, const std::string& id = "sil_one") {
    Silence out;
    out.id = id;
    out.matchers = matchers;
    out.starts_at = kStart + from;
    out.ends_at = kStart + to;
    out.created_at = out.updated_at = kStart;
    out.created_by = "ada";
    out.comment = "new data";
    out.version = version;
    ASSERT_TRUE(h.router().on_control("silence/" + out.id, silence_json(out), h.now()));
    h.commit();
  }
  /// Messages to the board since the last call.
  std::vector<core::Issue> told() {
    std::vector<core::Issue> out;
    for (; read_ < h.sent.size(); ++read_) {
      if (h.sent[read_].receiver == "board") out.push_back(h.sent[read_].issues.at(0).issue);
    }
    return out;
  }
  Harness h;
  std::size_t read_ = 0;
};

TEST_F(SilenceNoticesTest, ItsBeginItsLastQuarterAndItsEndAreToldToThatReceiverAlone) {
  h.fire(kNanOfDigits);
  h.at(2min);
  (void)told();
  silence("{job=\"digits\"}", 3h, 1, 2min);
  h.at(3min);
  auto notices = told();
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_EQ(notices[0].rule, "silence_notice");
  EXPECT_EQ(notices[0].severity, core::Severity::info);
  EXPECT_THAT(notices[0].summary, HasSubstr("When it began, it hid 1 issue: digits, nan."));
  EXPECT_THAT(notices[0].description, HasSubstr("By ada: new data"));
  h.at(2h);
  EXPECT_THAT(told(), IsEmpty());
  h.at(2h + 46min);
  notices = told();
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_EQ(notices[0].severity, core::Severity::warning);
  EXPECT_THAT(notices[0].summary, HasSubstr("Shortly before its end it hid 1 issue: digits, nan."));
  EXPECT_THAT(notices[0].recommendation, HasSubstr("silence update sil_one"));
  h.at(3h + 1min);
  notices = told();
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_EQ(notices[0].status, core::IssueStatus::resolved);
  ASSERT_TRUE(notices[0].ending);
  EXPECT_EQ(notices[0].ending->summary, "1 issue that it matched fires now: digits, nan.");
  for (const core::Notification& one : h.sent) {
    if (one.receiver == "board") continue;
    EXPECT_NE(one.issues.at(0).issue.rule, "silence_notice");
  }
}

TEST_F(SilenceNoticesTest, NothingIsSaidBeforeItsEndWhereItHidesNothing) {
  silence("{job=\"digits\"}", 3h);
  h.at(2h + 59min);
  const auto notices = told();
  ASSERT_EQ(notices.size(), 1U) << "its begin alone";
  EXPECT_EQ(notices[0].summary, "When it began, nothing that it matches fired.");
}

TEST_F(SilenceNoticesTest, NothingIsSaidBeforeTheEndOfAShortOne) {
  h.fire(kNanOfDigits);
  silence("{job=\"digits\"}", 29min);
  h.at(28min);
  EXPECT_EQ(told().size(), 1U);
  h.at(30min);
  EXPECT_EQ(told().size(), 1U) << "its end";
}

TEST_F(SilenceNoticesTest, ASilenceThatMatchesEverythingHidesNoNotice) {
  silence("{severity=~\".+\"}", 1h);
  h.at(1min);
  EXPECT_EQ(told().size(), 1U);
  h.at(1h + 1min);
  ASSERT_EQ(h.sent.back().receiver, "board");
  EXPECT_EQ(told().size(), 1U);
}

TEST_F(SilenceNoticesTest, ARestartTellsNothingTwiceAndForgetsNoEnd) {
  h.fire(kNanOfDigits);
  silence("{job=\"digits\"}", 2h);
  h.at(1min);
  EXPECT_EQ(told().size(), 1U);
  h.crash();
  h.at(10min);
  EXPECT_THAT(told(), IsEmpty());
  h.stop_until(3h);
  h.open();
  h.at(3h + 1min);
  const auto notices = told();
  ASSERT_EQ(notices.size(), 1U) << "it ended while nobody looked";
  EXPECT_EQ(notices[0].status, core::IssueStatus::resolved);
}

TEST_F(SilenceNoticesTest, ALongerSilenceIsNoWarningAnyMore) {
  h.fire(kNanOfDigits);
  silence("{job=\"digits\"}", 1h);
  h.at(50min);
  ASSERT_EQ(told().size(), 2U);
  silence("{job=\"digits\"}", 5h, 2);
  h.at(4h);
  EXPECT_THAT(told(), IsEmpty()) << "nobody is told that it is longer";
  h.at(4h + 50min);
  EXPECT_EQ(told().size(), 1U) << "and again before its end";
}

TEST(SilenceNotices, NobodyIsToldUnlessARouteAsksForThem) {
  Harness h;
  h.options.suppressors.clear();
  h.open();
  Silence one;
  one.id = "sil_one";
  one.matchers = "{job=\"digits\"}";
  one.starts_at = one.created_at = one.updated_at = kStart;
  one.ends_at = kStart + 1h;
  one.comment = "x";
  one.version = 1;
  ASSERT_TRUE(h.router().on_control("silence/sil_one", silence_json(one), h.now()));
  h.at(2h);
  EXPECT_THAT(h.sent, IsEmpty());
}

}  // namespace
}  // namespace tocsin::routing
