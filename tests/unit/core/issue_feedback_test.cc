// Verdicts and notes as records: what comes back, and what is refused.
#include "core/fields/issue_feedback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "core/topics.h"

namespace tocsin::core {
namespace {

using ::testing::HasSubstr;

const WallTime kSaidAt = WallTime(std::chrono::hours(24 * 365 * 50));

IssueVerdict noise() {
  return {{"4f2a", "iss_1", "0193"}, "noise", "ada", kSaidAt, "it restarts every night", "cli"};
}

IssueNote cable() {
  return {"note_1", {"4f2a", "iss_1", ""}, "ada", kSaidAt, "a bad cable", "api"};
}

std::string refused(const std::string& json) {
  const auto read = read_issue_verdict(json);
  return read ? "" : read.error().message;
}

TEST(IssueFeedback, AVerdictComesBackAsItWas) {
  const OutRecord record = verdict_record(noise());
  EXPECT_EQ(record.topic, topic::kRouterControl);
  EXPECT_EQ(record.key, "verdict/4f2a/iss_1");
  EXPECT_EQ(record.partition, 0);
  const auto read = read_issue_verdict(record.value.value());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->of.issue, "4f2a");
  EXPECT_EQ(read->of.event_id, "iss_1");
  EXPECT_EQ(read->of.run, "0193");
  EXPECT_EQ(read->verdict, "noise");
  EXPECT_EQ(read->by, "ada");
  EXPECT_EQ(read->at, kSaidAt);
  EXPECT_EQ(read->note, "it restarts every night");
  EXPECT_EQ(read->origin, "cli");
}

TEST(IssueFeedback, ANoteComesBackAsItWas) {
  const OutRecord record = note_record(cable());
  EXPECT_EQ(record.key, "note/note_1");
  const auto read = read_issue_note(record.value.value());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->id, "note_1");
  EXPECT_EQ(read->of.run, "") << "an issue of no run has notes too";
  EXPECT_EQ(read->text, "a bad cable");
}

TEST(IssueFeedback, TwoNotesOfOneMomentHaveTwoIds) {
  IssueNote other = cable();
  other.text = "a good cable";
  EXPECT_NE(note_id(cable()), note_id(other));
  EXPECT_EQ(note_id(cable()), note_id(cable()));
}

TEST(IssueFeedback, AWordThatIsNoVerdictIsRefusedWithTheNearest) {
  IssueVerdict wrong = noise();
  wrong.verdict = "noisy";
  EXPECT_THAT(refused(verdict_json(wrong)),
              HasSubstr("expected useful, noise or known; did you mean \"noise\"?"));
  wrong.verdict = std::string(100'000, 'x');
  EXPECT_LT(refused(verdict_json(wrong)).size(), 300U);
}

TEST(IssueFeedback, WhatNamesNoIssueOrNobodyIsRefused) {
  for (auto member : {&IssueEpisode::issue, &IssueEpisode::event_id}) {
    IssueVerdict wrong = noise();
    wrong.of.*member = "";
    EXPECT_NE(refused(verdict_json(wrong)), "");
  }
  IssueVerdict nobody = noise();
  nobody.by = "";
  EXPECT_THAT(refused(verdict_json(nobody)), HasSubstr("by"));
  IssueVerdict path = noise();
  path.of.issue = "4f2a/../x";
  EXPECT_THAT(refused(verdict_json(path)), HasSubstr("expected an issue key"));
  for (const char* bytes : {"", "{", "[]", "null", "{\"verdict\":7}", "\xff\xfe"}) {
    EXPECT_FALSE(read_issue_verdict(bytes)) << bytes;
    EXPECT_FALSE(read_issue_note(bytes)) << bytes;
  }
}

TEST(IssueFeedback, ANoteHasFourKilobytesAndNotAByteMore) {
  IssueNote note = cable();
  note.text = std::string(kMostOfANote, 'x');
  EXPECT_TRUE(read_issue_note(note_json(note)));
  note.text += 'x';
  const auto read = read_issue_note(note_json(note));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "text has 4097 bytes: expected at most 4096");
  note.text = "";
  EXPECT_FALSE(read_issue_note(note_json(note)));
}

}  // namespace
}  // namespace tocsin::core
