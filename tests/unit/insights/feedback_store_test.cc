// What people said of issues, from the store: which rule fares how, and what is forgotten with a run.
#include "insights/store/feedback_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "core/fields/issue_feedback.h"
#include "insights/insights.h"

namespace tocsin::insights {
namespace {

const core::WallTime kEvening = core::WallTime(std::chrono::hours(24 * 365 * 50));

class FeedbackStoreTest : public ::testing::Test {
 protected:
  FeedbackStoreTest() {
    folder_ = std::filesystem::temp_directory_path() / ("feedback-" + std::to_string(getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    SetAside moved;
    auto made = EventWriter::open(path(), "here", moved);
    EXPECT_TRUE(made);
    writer_ = std::move(*made);
  }
  ~FeedbackStoreTest() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path() const { return folder_ / "insights.db"; }
  std::unique_ptr<FeedbackReader> reader() {
    EXPECT_TRUE(writer_->commit({}));
    auto made = FeedbackReader::open(path());
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return made ? std::move(*made) : nullptr;
  }
  KeptRecord kept(core::OutRecord record) {
    KeptRecord out;
    out.record = std::move(record);
    out.offset = ++offset_;
    out.timestamp = offset_;
    return out;
  }
  static core::RunUid run(std::uint8_t last) {
    core::RunUid out;
    out.bytes.back() = last;
    return out;
  }
  // An episode begins; its names.
  core::IssueEpisode fires(const std::string& rule, const std::string& id, std::uint8_t of = 1,
                           bool shadow = false) {
    core::Issue issue;
    issue.event_id = id;
    issue.status = core::IssueStatus::firing;
    issue.rule = rule;
    issue.labels.set("rule", rule);
    issue.labels.set("run_uid", core::to_text(run(of)));
    issue.labels.set("tensor", id);  // each is an issue of its own
    issue.time = kEvening;
    issue.shadow = shadow;
    issue.run.uid = run(of);
    core::OutRecord record;
    record.topic = "issues";
    record.value = "{}";
    writer_->saw(kept(record), issue);
    return {core::issue_key(issue.labels), id, core::to_text(run(of))};
  }
  void says(const core::IssueEpisode& of, const std::string& verdict) {
    writer_->saw_control(kept(core::verdict_record({of, verdict, "ada", kEvening, "", "api"})),
                         of.run);
  }
  void notes(const core::IssueEpisode& of, const std::string& id, std::int64_t second) {
    writer_->saw_control(
        kept(core::note_record(
            {id, of, "ada", kEvening + std::chrono::seconds(second), "text of " + id, "api"})),
        of.run);
  }

  std::filesystem::path folder_;
  std::unique_ptr<EventWriter> writer_;
  std::int64_t offset_ = 0;
};

TEST_F(FeedbackStoreTest, ARulesPrecisionIsTheUsefulOfWhatWasUsefulOrNoise) {
  says(fires("nan", "iss_1"), "useful");
  says(fires("nan", "iss_2"), "noise");
  says(fires("nan", "iss_3"), "useful");
  says(fires("nan", "iss_4"), "known");
  fires("nan", "iss_5");
  says(fires("slow", "iss_6"), "known");
  fires("shadowed", "iss_7", 1, true);
  const auto rules = reader()->rules();
  ASSERT_EQ(rules.size(), 2U) << "a rule in shadow told nobody";
  EXPECT_EQ(rules[0].rule, "nan");
  EXPECT_EQ(rules[0].fired, 5);
  EXPECT_EQ(rules[0].useful, 2);
  EXPECT_EQ(rules[0].noise, 1);
  EXPECT_EQ(rules[0].known, 1);
  EXPECT_DOUBLE_EQ(rules[0].precision().value(), 2.0 / 3.0);
  EXPECT_EQ(rules[1].known, 1);
  EXPECT_EQ(rules[1].precision(), std::nullopt) << "known says nothing of whether it was right";
}

TEST_F(FeedbackStoreTest, ALaterVerdictTakesThePlaceAndATombstoneTakesItBack) {
  const auto of = fires("nan", "iss_1");
  says(of, "useful");
  says(of, "noise");
  EXPECT_EQ(reader()->rules()[0].useful, 0);
  EXPECT_EQ(reader()->rules()[0].noise, 1);
  const std::string key = core::verdict_key(of);
  EXPECT_TRUE(reader()->record(key).has_value());
  writer_->saw_control(kept(core::feedback_tombstone(key)), "");
  EXPECT_TRUE(writer_->changed().contains(of.run)) << "who looks at the run is told";
  EXPECT_EQ(reader()->rules()[0].noise, 0);
  EXPECT_EQ(reader()->record(key), std::nullopt);
  says(of, "known");
  EXPECT_EQ(reader()->rules()[0].known, 1);
}

TEST_F(FeedbackStoreTest, ATombstoneThatCameFirstLeavesTheRunToTheNextWord) {
  const auto of = fires("nan", "iss_1");
  ASSERT_TRUE(writer_->commit({}));
  writer_->saw_control(kept(core::feedback_tombstone("note/note_1")), "");
  EXPECT_TRUE(writer_->changed().empty());
  notes(of, "note_1", 0);
  EXPECT_TRUE(writer_->changed().contains(of.run));
  EXPECT_EQ(reader()->notes(of).size(), 1U);
}

TEST_F(FeedbackStoreTest, NotesAreThoseOfTheEpisodeOldestFirst) {
  const auto one = fires("nan", "iss_1");
  const auto other = fires("nan", "iss_2");
  notes(one, "note_b", 2);
  notes(one, "note_a", 3);
  notes(one, "note_c", 1);
  notes(other, "note_d", 0);
  const auto found = reader()->notes(one);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].id, "note_c");
  EXPECT_EQ(found[1].id, "note_b");
  EXPECT_EQ(found[2].id, "note_a");
}

TEST_F(FeedbackStoreTest, WhatIsNoVerdictInTheStoreCountsForNothing) {
  const auto of = fires("nan", "iss_1");
  core::OutRecord record = core::verdict_record({of, "useful", "ada", kEvening, "", "api"});
  record.value = "not JSON";
  writer_->saw_control(kept(record), of.run);
  const auto rules = reader()->rules();
  ASSERT_EQ(rules.size(), 1U);
  EXPECT_EQ(rules[0].useful + rules[0].noise + rules[0].known, 0);
}

TEST_F(FeedbackStoreTest, AllIsForgottenWithItsRun) {
  const auto gone = fires("nan", "iss_1", 1);
  says(gone, "noise");
  notes(gone, "note_1", 0);
  ASSERT_TRUE(writer_->commit({}));
  ASSERT_TRUE(writer_->forget(kEvening + std::chrono::hours(1), 1U << 30U, 10));
  EXPECT_EQ(reader()->record(core::verdict_key(gone)), std::nullopt);
  EXPECT_TRUE(reader()->notes(gone).empty());
  EXPECT_TRUE(reader()->rules().empty());
}

}  // namespace
}  // namespace tocsin::insights
