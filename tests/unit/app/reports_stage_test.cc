// The page of a run that has ended: when it is written, what is said of it, and what is read again after a crash.
#include "app/stages/reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "app/report/page_file.h"
#include "app/serve/metrics.h"
#include "core/log.h"
#include "ingest/ingest.h"
#include "insights/insights.h"
#include "tests/support/record_fixture.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

core::RunRef digits() {
  core::RunRef run;
  run.uid = core::run_uid_v5("reports");
  run.job = "digits/../<b>";
  run.attempt = 2;
  return run;
}

core::Issue issue_of(const core::RunRef& run) {
  core::Issue issue;
  issue.run = run;
  issue.rule = "exploding_tensor";
  issue.event_id = "iss_1";
  issue.summary = "loss is NaN";
  issue.labels = core::Labels{{"rule", issue.rule}, {"run_uid", core::to_text(run.uid)}};
  return issue;
}

class ReportsStageTest : public testing::Test {
 protected:
  ReportsStageTest() : folder_(std::filesystem::path(testing::TempDir()) / "reports_stage") {
    std::filesystem::remove_all(folder_);
  }
  ~ReportsStageTest() override { std::filesystem::remove_all(folder_); }

  static Instant at(core::Duration since) {
    return {core::wall_time(1767323045678000000) + since, since};
  }
  ReportsStage& stage(const std::string& dir = "pages") {
    ReportsOptions options;
    options.dir = folder_ / dir;
    options.url = url_;
    options.version = "tocsin test";
    options.events = store_;
    stage_ = std::make_unique<ReportsStage>(
        options, [this](const core::RunRef& run) { return gather(run); }, log_, telemetry_);
    EXPECT_TRUE(stage_->open(at(1h)));
    return *stage_;
  }
  core::Result<std::unique_ptr<RunGathering>> gather(const core::RunRef& run) {
    if (!trouble_.empty()) return core::Error{core::Code::deadline_exceeded, trouble_};
    return std::unique_ptr<RunGathering>(std::make_unique<FakeGathering>(run, batches_));
  }
  void event(core::JobPhase phase, std::int64_t offset, core::Duration appended = 1h) {
    core::JobEvent job;
    job.phase = phase;
    job.run = digits();
    job.time = at(1h).wall;
    job.outcome = phase == core::JobPhase::ended ? "completed" : "";
    const core::OutRecord record = ingest::encode_job(job, "default");
    core::RecordView view = ingest::fixture::view_of(record);
    view.partition = 3;
    view.offset = offset;
    view.timestamp = core::nanoseconds(at(appended).wall);
    EXPECT_FALSE(stage_->handle(view, {at(1h), false}));
  }
  /// The server's store of events, which has read so much of the run.
  void stored(std::initializer_list<core::JobPhase> phases, std::uint32_t attempt) {
    store_ = folder_ / "insights.db";
    std::filesystem::create_directories(folder_);
    insights::SetAside moved;
    auto writer = insights::EventWriter::open(store_, "here", moved);
    ASSERT_TRUE(writer) << writer.error().message;
    std::int64_t offset = 0;
    for (const core::JobPhase phase : phases) {
      core::JobEvent job;
      job.phase = phase;
      job.run = digits();
      job.run.attempt = attempt;
      job.time = at(1h).wall;
      insights::KeptRecord kept;
      kept.record = ingest::encode_registry(job, "default");
      kept.offset = ++offset;
      kept.timestamp = core::nanoseconds(job.time);
      (*writer)->saw(kept, job);
    }
    ASSERT_TRUE((*writer)->commit({}));
  }
  /// The page that is made 42 s after the end.
  std::string page_of_end() {
    stage();
    event(core::JobPhase::ended, 11);
    stage_->take(at(1h + 42s));
    return page();
  }
  [[nodiscard]] std::string page() const {
    std::ifstream file(folder_ / "pages" / report::page_name(digits()));
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  class FakeGathering final : public RunGathering {
   public:
    FakeGathering(core::RunRef run, int batches) : run_(std::move(run)), left_(batches) {}
    core::Result<std::optional<report::RunReport>> go_on() override {
      if (--left_ > 0) return std::optional<report::RunReport>();
      report::RunReport out;
      out.run = run_;
      out.outcome = "completed";
      out.issues.push_back({issue_of(run_), issue_of(run_), 1});
      return std::optional(out);
    }

   private:
    core::RunRef run_;
    int left_;
  };

  std::filesystem::path folder_;
  int batches_ = 1;  // of events
  std::string trouble_;
  std::string url_;
  std::string store_;  // empty: there is none
  core::NullLog log_;
  PrometheusTelemetry telemetry_;
  std::unique_ptr<ReportsStage> stage_;
};

TEST_F(ReportsStageTest, WritesThePageWhenTheLastWordsAreSaid) {
  stage();
  event(core::JobPhase::started, 10);
  event(core::JobPhase::ended, 11);
  StageOutput early = stage_->take(at(1h + 2s));
  EXPECT_TRUE(early.records.empty());
  ASSERT_EQ(early.positions->size(), 1U);
  EXPECT_EQ(early.positions->front().next, 11) << "after a crash the end is read again";
  const StageOutput out = stage_->take(at(1h + 6s));
  ASSERT_EQ(out.records.size(), 1U);
  EXPECT_EQ(out.records[0].partition, 3);
  EXPECT_THAT(*out.records[0].record.value, HasSubstr(report::page_name(digits())));
  EXPECT_THAT(*out.records[0].record.value, HasSubstr("IssuesFound"));
  EXPECT_EQ(out.positions->front().next, 12);
  EXPECT_TRUE(stage_->take(at(1h + 7s)).empty()) << "a loop that ends asks until there is nothing";
  EXPECT_THAT(page(), HasSubstr("</html>"));
  EXPECT_THAT(telemetry_.render(), HasSubstr("tocsin_reports_total{result=\"written\"} 1"));
}

TEST_F(ReportsStageTest, APageThatCannotBeWrittenIsAnErrorThatIsSaid) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ / "pages") << "a file where the folder should be";
  stage();
  event(core::JobPhase::ended, 11);
  const StageOutput out = stage_->take(at(2h));
  ASSERT_EQ(out.records.size(), 1U);
  EXPECT_THAT(*out.records[0].record.value, HasSubstr("\"Error\""));
  EXPECT_THAT(*out.records[0].record.value, HasSubstr("cannot be written"));
  EXPECT_THAT(telemetry_.render(), HasSubstr("tocsin_reports_total{result=\"failed\"} 1"));
}

TEST_F(ReportsStageTest, SaysUnderWhichAddressThePageIsRead) {
  for (const char* url : {"https://reports.example/x", "https://reports.example/x/"}) {
    url_ = url;
    stage();
    event(core::JobPhase::ended, 11);
    const StageOutput out = stage_->take(at(2h));
    ASSERT_EQ(out.records.size(), 1U);
    EXPECT_THAT(*out.records[0].record.value,
                HasSubstr("\"https://reports.example/x/" + report::page_name(digits()) + "\""));
  }
}

TEST_F(ReportsStageTest, SoAreTopicsThatAreNotReadInTime) {
  stage();
  trouble_ = "the topics were not read";
  event(core::JobPhase::ended, 11);
  const StageOutput out = stage_->take(at(2h));
  ASSERT_EQ(out.records.size(), 1U);
  EXPECT_THAT(*out.records[0].record.value, HasSubstr(trouble_));
}

constexpr const char* kBehind = "the store was 42s behind when this report was made";

TEST_F(ReportsStageTest, AStoreThatHasReadTheEndSaysThatNobodyWasTold) {
  stored({core::JobPhase::started, core::JobPhase::ended}, 2);
  const std::string text = page_of_end();
  EXPECT_THAT(text, HasSubstr("Nobody had been told yet when this report was made."));
  EXPECT_THAT(text, HasSubstr("nobody asked for one"));
  EXPECT_THAT(text, HasSubstr("\"store_behind_seconds\":null"));
}

TEST_F(ReportsStageTest, AStoreThatIsBehindSaysNothingOfMessagesAndStops) {
  stored({core::JobPhase::started}, 2);
  const std::string text = page_of_end();
  EXPECT_THAT(text, HasSubstr("Who was told is not known yet: " + std::string(kBehind)));
  EXPECT_THAT(text, HasSubstr("not known yet: " + std::string(kBehind)));
  EXPECT_THAT(text, Not(HasSubstr("Nobody")));
  EXPECT_THAT(text, Not(HasSubstr("nobody asked")));
  EXPECT_THAT(text, HasSubstr("\"store_behind_seconds\":42"));
}

TEST_F(ReportsStageTest, TheEndOfTheAttemptBeforeIsNotTheEndOfThisOne) {
  stored({core::JobPhase::started, core::JobPhase::ended}, 1);
  EXPECT_THAT(page_of_end(), HasSubstr(kBehind));
}

TEST_F(ReportsStageTest, LongTopicsAreReadLittleByLittleAndLeftWhenTheProcessEnds) {
  batches_ = 3;
  stage();
  event(core::JobPhase::ended, 11);
  EXPECT_TRUE(stage_->take(at(2h)).records.empty());
  stage_->finish(at(2h));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(stage_->take(at(2h)).empty());
  EXPECT_EQ(page(), "");
  stage();
  event(core::JobPhase::ended, 11);
  for (int i = 0; i < 3; ++i) stage_->take(at(2h));
  EXPECT_THAT(page(), HasSubstr("</html>"));
}

TEST_F(ReportsStageTest, OfEndsThatWaitThereAreSoManyAndTheRestIsCounted) {
  stage();
  for (int i = 0; i < 1200; ++i) event(core::JobPhase::ended, i);
  EXPECT_THAT(telemetry_.render(), HasSubstr("tocsin_reports_total{result=\"too_many\"} 200"));
  for (int i = 0; i < 1000; ++i) stage_->take(at(2h));
  EXPECT_TRUE(stage_->take(at(2h)).empty()) << "what is counted is not read again";
}

TEST_F(ReportsStageTest, OfOldEndsThereIsNone) {
  stage();
  event(core::JobPhase::ended, 11, 1h - 25h);
  EXPECT_TRUE(stage_->take(at(2h)).records.empty());
  EXPECT_THAT(telemetry_.render(), HasSubstr("tocsin_reports_total{result=\"too_old\"} 1"));
}

TEST_F(ReportsStageTest, WhatIsTakenAwayIsAnothersToWrite) {
  stage();
  event(core::JobPhase::ended, 11);
  const core::StreamPartition gone{"issues", 3};
  stage_->revoked(std::span(&gone, 1));
  EXPECT_TRUE(stage_->take(at(2h)).records.empty());
  EXPECT_TRUE(page().empty());
}

TEST(PageName, KeepsToTheFolder) {
  const std::string uid = core::to_text(digits().uid).substr(0, 8);
  EXPECT_EQ(report::page_name(digits()), "digits_____b_-" + uid + "-2.html");
  core::RunRef nameless = digits();
  nameless.job.clear();
  EXPECT_EQ(report::page_name(nameless), "run-" + uid + "-2.html");
}

}  // namespace
}  // namespace tocsin::app
