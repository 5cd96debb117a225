// What issues were decided by, kept: which issues, where, what is read again after a crash, and what is said of failures.
#include "app/stages/evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "app/serve/metrics.h"
#include "core/labels.h"
#include "tests/support/record_fixture.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
namespace fs = std::filesystem;

core::Issue issue_of(const std::string& rule, const std::string& tensor = "loss") {
  core::Issue out;
  out.rule = out.rule_type = rule;
  out.event_id = "iss_" + rule + tensor;
  out.source = "/default/rules/" + rule;
  out.run.uid = core::run_uid_v5("evidence");
  out.run.job = "digits";
  out.run.attempt = 2;
  out.labels = {{"rule", rule}, {"tensor", tensor}, {"severity", "error"}};
  out.time = core::wall_time(1767323045678000000);
  out.evidence.data_refs = {{"tocsin.telemetry.v1", 0, 5, 9}};
  return out;
}

class EvidenceStageTest : public testing::Test {
 protected:
  EvidenceStageTest() : folder_(fs::path(testing::TempDir()) / "evidence_stage") {
    fs::remove_all(folder_);
    options_.config.dir = folder_;
    options_.config.keep = "first_signs";
  }
  ~EvidenceStageTest() override { fs::remove_all(folder_); }

  static Instant at(core::Duration since) {
    return {core::wall_time(1767323045678000000) + since, since};
  }
  void start() {
    stage_ = std::make_unique<EvidenceStage>(
        options_, [this](const core::Issue& issue) { return copy(issue); }, log_, telemetry_);
    EXPECT_TRUE(stage_->open(at(1h)));
  }
  // What copy_evidence leaves behind, without a transport.
  core::Result<std::unique_ptr<EvidenceCopying>> copy(const core::Issue& issue) {
    if (!trouble_.empty()) return core::Error{core::Code::not_found, trouble_};
    ++begun_;
    return std::unique_ptr<EvidenceCopying>(std::make_unique<FakeCopying>(*this, issue));
  }
  void tell(const core::Issue& issue, std::int64_t offset, core::Duration appended = 1h) {
    const core::OutRecord record = ingest::encode_issue(issue);
    core::RecordView view = ingest::fixture::view_of(record);
    view.partition = 3;
    view.offset = offset;
    view.timestamp = core::nanoseconds(at(appended).wall);
    EXPECT_FALSE(stage_->handle(view, {at(1h), false}));
  }
  StageOutput take() { return stage_->take(at(1h)); }
  std::optional<core::Duration> tick(core::Duration when) {
    return stage_->tick({at(when), [](std::int32_t) { return true; },
                         [](std::int32_t) { return std::optional<core::Duration>(); }});
  }

  class FakeCopying final : public EvidenceCopying {
   public:
    FakeCopying(EvidenceStageTest& test, core::Issue issue)
        : test_(test), issue_(std::move(issue)) {}
    core::Result<std::optional<EvidenceCopy>> go_on() override {
      if (++batches_ < test_.batches_) return std::optional<EvidenceCopy>();
      const fs::path directory = evidence_directory(test_.folder_, issue_);
      fs::create_directories(directory);
      std::ofstream(directory / "issue.json") << "{}";
      test_.copied_.push_back(issue_.rule + " " + issue_.labels.get("tensor"));
      return std::optional(EvidenceCopy{5, 500, 0});
    }

   private:
    EvidenceStageTest& test_;
    core::Issue issue_;
    int batches_ = 0;
  };

  fs::path folder_;
  EvidenceOptions options_;
  int batches_ = 1;  // of a copy
  int begun_ = 0;
  std::string trouble_;
  std::vector<std::string> copied_;
  core::NullLog log_;
  PrometheusTelemetry telemetry_;
  std::unique_ptr<EvidenceStage> stage_;
};

TEST_F(EvidenceStageTest, ReadsAgainAfterACrashWhatIsNotKeptYet) {
  start();
  tell(issue_of("overfit"), 10);
  tell(issue_of("loss_spike"), 11);
  EXPECT_EQ(take().positions->front().next, 11);
  EXPECT_EQ(take().positions->front().next, 12);
  EXPECT_TRUE(take().empty()) << "a loop that ends asks until there is nothing";
  EXPECT_THAT(copied_, testing::ElementsAre("overfit loss", "loss_spike loss"));
  start();  // as after a crash before the last commit
  tell(issue_of("loss_spike"), 11);
  EXPECT_TRUE(take().records.empty());
  EXPECT_EQ(copied_.size(), 2U) << "it is there";
}

TEST_F(EvidenceStageTest, ALongCopyIsMadeLittleByLittleAndLeftWhenTheProcessEnds) {
  batches_ = 3;
  start();
  tell(issue_of("overfit"), 10);
  tell(issue_of("loss_spike"), 11);
  EXPECT_EQ(take().positions->front().next, 10);
  EXPECT_TRUE(tick(1h)) << "it goes on at once";
  EXPECT_TRUE(take().empty());
  stage_->finish(at(1h));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(take().empty()) << "nothing is begun any more";
  EXPECT_EQ(begun_, 1);
  EXPECT_TRUE(copied_.empty());
  start();
  tell(issue_of("overfit"), 10);
  while (tick(2h)) take();
  EXPECT_THAT(copied_, testing::ElementsAre("overfit loss"));
}

TEST_F(EvidenceStageTest, APartitionThatIsTakenAwayEndsItsCopyAndNoOther) {
  batches_ = 2;
  start();
  tell(issue_of("overfit"), 10);
  take();
  const core::StreamPartition other{core::topic::kIssues, 4};
  stage_->revoked({&other, 1});
  take();
  EXPECT_EQ(copied_.size(), 1U);
  tell(issue_of("loss_spike"), 11);
  take();
  const core::StreamPartition gone{core::topic::kIssues, 3};
  stage_->revoked({&gone, 1});
  take();
  EXPECT_EQ(copied_.size(), 1U);
}

TEST_F(EvidenceStageTest, KeepsAnIssueOnceAndOfItsLifeTheFirstReport) {
  start();
  core::Issue again = issue_of("overfit");
  again.event_id = "iss_later";
  core::Issue over = issue_of("overfit", "other");
  over.status = core::IssueStatus::resolved;
  tell(issue_of("overfit"), 1);
  tell(again, 2);
  tell(over, 3);
  while (tick(2h)) take();
  EXPECT_THAT(copied_, testing::ElementsAre("overfit loss"));
}

TEST_F(EvidenceStageTest, OfOneCauseTheFirstSignUnlessAllAreWanted) {
  core::Issue later = issue_of("vanishing_gradient");
  later.caused_by.push_back({"iss_overfitloss", "key", "overfit", "tensor=loss", {}, 3, 3});
  start();
  tell(later, 1);
  take();
  EXPECT_TRUE(copied_.empty());
  options_.config.keep = "all";
  start();
  tell(later, 1);
  take();
  EXPECT_EQ(copied_.size(), 1U);
}

TEST_F(EvidenceStageTest, ARunHasSoManyAndTheRestIsCounted) {
  options_.config.per_run = 2;
  start();
  for (int i = 0; i < 5; ++i) tell(issue_of("overfit", "tensor" + std::to_string(i)), i);
  while (tick(2h)) take();
  EXPECT_EQ(copied_.size(), 2U);
  EXPECT_THAT(telemetry_.render(), HasSubstr("tocsin_evidence_total{result=\"too_many\"} 3"));
  EXPECT_THAT(telemetry_.render(), HasSubstr("tocsin_evidence_total{result=\"kept\"} 2"));
}

TEST_F(EvidenceStageTest, AStormOfIssuesDoesNotPileUp) {
  options_.config.per_run = 2;
  start();
  for (int i = 0; i < 1000; ++i) tell(issue_of("overfit", "tensor" + std::to_string(i)), i);
  for (int i = 0; i < 1000; ++i) tell(issue_of("overfit", "tensor0"), 1000 + i);
  EXPECT_THAT(telemetry_.render(), HasSubstr("tocsin_evidence_total{result=\"too_many\"} 998"));
  take();
  EXPECT_EQ(take().positions->front().next, 2000);
  EXPECT_FALSE(tick(2h)) << "nothing waits";
  EXPECT_EQ(copied_.size(), 2U);
}

TEST_F(EvidenceStageTest, WhatCannotBeKeptIsSaid) {
  trouble_ = "the disk is full";
  start();
  tell(issue_of("overfit"), 10);
  const StageOutput out = take();
  ASSERT_EQ(out.records.size(), 1U);
  EXPECT_EQ(out.records[0].partition, 3);
  EXPECT_THAT(*out.records[0].record.value, HasSubstr("\"Error\""));
  EXPECT_THAT(*out.records[0].record.value, HasSubstr("not kept: the disk is full"));
  EXPECT_EQ(out.positions->front().next, 11) << "one issue's trouble is not the next one's";
  EXPECT_THAT(telemetry_.render(), HasSubstr("tocsin_evidence_total{result=\"failed\"} 1"));
}

TEST_F(EvidenceStageTest, WhatIsOldInTheTopicIsLeftAlone) {
  start();
  tell(issue_of("overfit"), 10, -30h);
  take();
  EXPECT_TRUE(copied_.empty());
  EXPECT_THAT(telemetry_.render(), HasSubstr("tocsin_evidence_total{result=\"too_old\"} 1"));
}

TEST_F(EvidenceStageTest, PartitionsThatAreTakenAwayTakeTheirIssuesAlong) {
  start();
  tell(issue_of("overfit"), 10);
  const core::StreamPartition gone{core::topic::kIssues, 3};
  stage_->revoked({&gone, 1});
  EXPECT_TRUE(take().positions->empty());
  EXPECT_TRUE(copied_.empty());
}

TEST_F(EvidenceStageTest, OldCopiesAreRemovedAndNothingElse) {
  start();
  tell(issue_of("overfit"), 1);
  tell(issue_of("loss_spike"), 2);
  while (tick(2h)) take();
  const fs::path old = evidence_directory(folder_, issue_of("overfit"));
  fs::last_write_time(old / "issue.json", fs::file_time_type::clock::now() - 24h * 36500);
  const fs::path ours = folder_ / "run" / "notes";
  fs::create_directories(ours);
  std::ofstream(ours / "mine.txt") << "kept by hand";
  fs::last_write_time(ours / "mine.txt", fs::file_time_type::clock::now() - 24h * 36500);
  (void)tick(4h);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(evidence_directory(folder_, issue_of("loss_spike"))));
  EXPECT_TRUE(fs::exists(ours / "mine.txt"));
  EXPECT_THAT(telemetry_.render(), HasSubstr("tocsin_evidence_total{result=\"removed\"} 1"));
}

TEST(EvidenceDirectory, IsOneOfTheIssueWhateverItsRuleIsCalled) {
  core::Issue odd = issue_of("../../etc/pass wd");
  const std::string path = evidence_directory("kept", odd);
  EXPECT_EQ(path.find(".."), std::string::npos) << path;
  core::Issue worse = odd;
  worse.labels.set("severity", "critical");
  EXPECT_EQ(evidence_directory("kept", worse), path);
}

}  // namespace
}  // namespace tocsin::app
