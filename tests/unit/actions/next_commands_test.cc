#include "actions/message/next_commands.h"

#include "actions/contract/shell_word.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using namespace testing_support;

std::vector<std::string> lines(const core::Issue& issue, bool ended,
                               const std::vector<std::string>& place) {
  std::vector<std::string> out;
  for (const NextCommand& one : next_commands(issue, ended, place)) out.push_back(one.line);
  return out;
}

TEST(NextCommands, AreCompleteWithTheRecordsTheyRead) {
  EXPECT_THAT(
      lines(sample_issue().issue, false, {"--out", "/data/tocsin-data"}),
      ElementsAre("tocsin issues show iss_6c5duorosylmw5zjzjdy55lrk5 --out /data/tocsin-data",
                  "tocsin status 4e3046d4-8c1f-5278-82e3-ea3595bc5999 --out /data/tocsin-data",
                  "tocsin ack iss_6c5duorosylmw5zjzjdy55lrk5 --note 'looking at it' --out "
                  "/data/tocsin-data",
                  "tocsin silence add --run 4e3046d4-8c1f-5278-82e3-ea3595bc5999 --for 2h "
                  "--comment known --out /data/tocsin-data"));
}

TEST(NextCommands, OfAnEndedRunWriteItsReport) {
  EXPECT_EQ(lines(sample_issue().issue, true, {"--out", "kafka://b-1:9092,b-2:9092"}).back(),
            "tocsin report 4e3046d4-8c1f-5278-82e3-ea3595bc5999 --out kafka://b-1:9092,b-2:9092");
}

TEST(NextCommands, WhatIsOverNeedsNobodyToTakeItOn) {
  core::Issue issue = sample_issue().issue;
  issue.status = core::IssueStatus::resolved;
  for (const std::string& line : lines(issue, false, {}))
    EXPECT_EQ(line.find("tocsin ack"), std::string::npos);
  issue.status = core::IssueStatus::firing;
  for (const std::string& line : lines(issue, true, {}))
    EXPECT_EQ(line.find("tocsin ack"), std::string::npos);
}

TEST(NextCommands, WithoutARunGoByRuleAndNode) {
  core::Issue issue = sample_issue().issue;
  issue.run = {};
  issue.labels = {{"rule", "disk_full"}, {"node", "it's \"a\" node"}};
  EXPECT_THAT(lines(issue, false, {}),
              ElementsAre("tocsin issues show iss_6c5duorosylmw5zjzjdy55lrk5", "tocsin issues list",
                          "tocsin ack iss_6c5duorosylmw5zjzjdy55lrk5 --note 'looking at it'",
                          "tocsin silence add 'rule=\"disk_full\"' "
                          "'node=\"it'\\''s \\\"a\\\" node\"' --for 2h --comment known"));
}

TEST(NextCommands, NothingOfTheDataRunsInTheShell) {
  core::Issue issue = sample_issue().issue;
  issue.run = {};
  issue.event_id = "$(reboot)";
  issue.labels = {{"rule", "a'; reboot #"}, {"job", "b\nreboot"}, {"node", "`reboot`"}};
  EXPECT_THAT(
      lines(issue, false, {"--out", "/data/my runs;x"}),
      ElementsAre("tocsin issues show '$(reboot)' --out '/data/my runs;x'",
                  "tocsin issues list --out '/data/my runs;x'",
                  "tocsin ack '$(reboot)' --note 'looking at it' --out '/data/my runs;x'",
                  "tocsin silence add 'rule=\"a'\\''; reboot #\"' 'node=\"`reboot`\"' --for "
                  "2h --comment known --out '/data/my runs;x'"));
}

TEST(ShellWord, IsQuotedWhereItMustBe) {
  EXPECT_EQ(shell_word("a-b_c.d/e:f=g,h@i%j+k"), "a-b_c.d/e:f=g,h@i%j+k");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("~"), "'~'");
}

}  // namespace
}  // namespace tocsin::actions
