// An issue as the router keeps it comes back whole.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/fields/message_text.h"
#include "core/fields/notification.h"
#include "routing/tables/kept_issue.h"
#include "tests/unit/ingest/any_event.h"
#include "tests/unit/ingest/event_equality.h"

namespace tocsin::routing {
namespace {

void expect_same(const core::Issue& a, const core::Issue& b) {
  RC_ASSERT(a == b);
  RC_ASSERT(a.ending == b.ending);
}

RC_GTEST_PROP(KeptIssueProperty, AnyIssueComesBackWhole, ()) {
  const core::Issue issue = ingest::any::issue();
  const KeptIssue kept(issue);
  expect_same(kept.whole(), issue);
  RC_ASSERT(kept.rule() == issue.rule);
  RC_ASSERT(kept.labels.are(issue.labels));
  for (const auto& [name, value] : issue.labels.entries()) RC_ASSERT(kept.labels.at(name) == value);
}

RC_GTEST_PROP(KeptIssueProperty, AChangeOfTheRunIsOneOfTheWhole, ()) {
  core::Issue issue = ingest::any::issue();
  KeptIssue kept(issue);
  const core::RunRef run = *rc::gen::arbitrary<bool>() ? issue.run : ingest::any::issue().run;
  kept.follow(run);
  issue.run = run;
  expect_same(kept.whole(), issue);
}

RC_GTEST_PROP(KeptIssueProperty, AMessageAsTextIsTheTextOfItsValue, ()) {
  const core::Notification message = ingest::any::notification();
  for (const core::NotifiedIssue& one : message.issues) {
    std::string text;
    core::append_message(text, one);
    RC_ASSERT(text == core::to_json(core::message_value(one)));
  }
  std::string labels;
  core::append_message(labels, message.group_labels);
  RC_ASSERT(labels == core::to_json(core::message_value(message.group_labels)));
}

RC_GTEST_PROP(KeptIssueProperty, OtherLabelsAreNotTaken, ()) {
  const core::Labels one = ingest::any::issue().labels;
  const core::Labels other = ingest::any::issue().labels;
  RC_ASSERT(KeptLabels(one).are(other) == (one == other));
  RC_ASSERT(KeptLabels(one).at("no such name").empty());
}

TEST(KeptIssue, OneThatWasNeverReportedIsADefaultOne) {
  const KeptIssue kept;
  EXPECT_EQ(kept.whole(), core::Issue());
  EXPECT_EQ(kept.rule(), "");
  KeptIssue named;
  named.follow({{}, 3, "digits", "slurm", core::Value("a reference")});
  EXPECT_EQ(named.whole().run.job, "digits");
  EXPECT_EQ(named.run.attempt, 3);
}

TEST(KeptIssue, ChangesReachTheMembersAndTheRest) {
  core::Issue issue;
  issue.summary = "found";
  issue.labels = {{"rule", "nan"}};
  KeptIssue kept(issue);
  kept.change([](core::Issue& one) {
    one.summary = "worse";
    one.severity = core::Severity::critical;
  });
  EXPECT_EQ(kept.severity, core::Severity::critical);
  EXPECT_EQ(kept.whole().summary, "worse");
  EXPECT_EQ(kept.labels.get("rule"), "nan");
}

}  // namespace
}  // namespace tocsin::routing
