// A copy of what an issue was decided by: read once, left and gone on with, as large as it may be.
#include "app/recordings/evidence_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <vector>

#include "app/recordings/recording.h"
#include "core/json.h"
#include "core/topics.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr std::int64_t kCopiedAt = 1767323045678000000;

class EvidenceCopyTest : public testing::Test {
 protected:
  EvidenceCopyTest() : folder_(fs::path(testing::TempDir()) / "evidence_copy") {
    fs::remove_all(folder_);
    config_.dir = folder_ / "kept";
    ingest::TransportConfig where;
    where.journal = folder_ / "data";
    where.journal_retention = 24h * 36500;
    ingest::TopicsConfig topics;
    topics.telemetry_retention = 24h * 36500;
    transport_ = *ingest::Transport::open(where, topics, log_, telemetry_);
  }
  ~EvidenceCopyTest() override {
    transport_.reset();
    fs::remove_all(folder_);
  }

  // Of ours every tenth record, a second apart in all; `padding` makes each as long.
  void write(int records, std::size_t padding = 0) {
    auto publisher = *transport_->publisher({});
    std::vector<core::OutRecord> batch;
    for (int i = 0; i < records; ++i) {
      core::OutRecord record;
      record.topic = core::topic::kTelemetry;
      const std::string run = i % 10 == 0 ? "ours" : "other";
      record.key = core::to_text(core::run_uid_for("", run));
      record.value = core::to_json(core::ValueMap{{"run", run},
                                                  {"name", "loss"},
                                                  {"value", i},
                                                  {"step", std::int64_t{i}},
                                                  {"attributes", core::ValueMap{}}});
      record.value->append(padding, ' ');
      record.timestamp = kCopiedAt - (records - i) * (core::Duration(100s).count() / records);
      batch.push_back(std::move(record));
      if (batch.size() < 1000 && i + 1 < records) continue;
      ASSERT_TRUE(publisher->commit(batch, {}));
      batch.clear();
    }
  }
  static core::Issue issue(std::int64_t last) {
    core::Issue out;
    out.rule = out.rule_type = "overfit";
    out.event_id = "iss_overfit";
    out.run.uid = core::run_uid_for("", "ours");
    out.run.attempt = 1;
    out.labels = {{"rule", "overfit"}, {"severity", "error"}};
    out.time = core::wall_time(kCopiedAt);
    out.evidence.data_refs = {{"tocsin.telemetry.v1", 0, last, last}};
    return out;
  }
  std::unique_ptr<EvidenceCopying> begin(const core::Issue& issue) {
    auto begun = copy_evidence(*transport_, issue, config_, "host-0");
    EXPECT_TRUE(begun) << begun.error().message;
    return begun ? std::move(*begun) : nullptr;
  }
  // So many batches, or all there are. Counts them.
  std::optional<EvidenceCopy> go_on(EvidenceCopying& copying, int batches = 1'000'000) {
    for (int i = 0; i < batches; ++i) {
      const auto done = copying.go_on();
      ++batches_;
      EXPECT_TRUE(done) << done.error().message;
      if (!done || *done) return done ? *done : std::nullopt;
    }
    return std::nullopt;
  }
  // Steps of the records in a directory.
  std::vector<int> steps(const fs::path& directory) {
    std::vector<int> out;
    auto recording = *ingest::Transport::open_recording(directory, {}, log_, telemetry_);
    const auto look = [&](const core::RecordView& record) {
      const auto value = core::parse_json(record.text(), 1U << 20);
      out.push_back(static_cast<int>(*core::as<std::int64_t>(core::find(*value, "step"))));
    };
    EXPECT_TRUE(read_recording(*recording, core::topic::kTelemetry, {}, look, [] {}));
    return out;
  }
  static std::vector<int> tens(int from, int to) {
    std::vector<int> out;
    for (int i = from; i < to; i += 10) out.push_back(i);
    return out;
  }
  [[nodiscard]] std::vector<fs::path> unfinished() const {
    std::vector<fs::path> out;
    for (const auto& one : fs::recursive_directory_iterator(folder_ / "kept")) {
      if (one.path().extension() == ".part" && one.is_directory()) out.push_back(one.path());
    }
    return out;
  }

  fs::path folder_;
  EvidenceConfig config_;
  core::NullLog log_;
  core::NullTelemetry telemetry_;
  std::unique_ptr<ingest::Transport> transport_;
  int batches_ = 0;
};

TEST_F(EvidenceCopyTest, HasTheRecordsOfTheRunUpToTheLastThatIsNamed) {
  write(3000);
  const core::Issue told = issue(2500);
  const auto copy = go_on(*begin(told));
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->records, 251U);
  EXPECT_EQ(copy->left_out, 0U);
  const std::string where = evidence_directory(config_.dir, told);
  EXPECT_TRUE(is_kept(where));
  EXPECT_EQ(steps(where), tens(0, 2501));
  EXPECT_TRUE(unfinished().empty());
}

TEST_F(EvidenceCopyTest, GoesOnWhereItWasLeftAndReadsNothingTwice) {
  write(20'000);
  const core::Issue told = issue(20'000);
  go_on(*begin(told));
  const int at_once = batches_;
  const std::string where = evidence_directory(config_.dir, told);
  const auto whole = steps(where);
  EXPECT_EQ(whole, tens(0, 20'000));
  fs::remove_all(where);
  batches_ = 0;
  int starts = 0;
  std::optional<EvidenceCopy> copy;
  for (; !copy && starts < 50; ++starts) {
    copy = go_on(*begin(told), 3);
    EXPECT_EQ(unfinished().size(), copy ? 0U : 1U);
    EXPECT_EQ(is_kept(where), copy.has_value());
    EXPECT_EQ(kept_of_run(config_.dir, told), copy ? 1U : 0U);
  }
  EXPECT_GT(starts, 4);
  // Each start looks for what is assigned, and may read again what was not ours behind the last mark.
  EXPECT_LE(batches_, at_once + 2 * starts);
  EXPECT_EQ(steps(where), whole);
  EXPECT_EQ(copy->records, whole.size());
  EXPECT_EQ(copy->left_out, 0U);
}

TEST_F(EvidenceCopyTest, OfWhatIsTooLargeTheNewestIsKeptAndTheRestCounted) {
  write(40'000, 3000);  // ours are 12 MB
  config_.most.count = 2U << 20;
  const core::Issue told = issue(40'000);
  auto first = begin(told);
  go_on(*first, 20);
  first.reset();  // left in between, when some is gone already
  const auto copy = go_on(*begin(told));
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->records + copy->left_out, 4000U);
  EXPECT_GT(copy->bytes, (2U << 20) * 3 / 4);
  EXPECT_LT(copy->bytes, (2U << 20) * 5 / 4);
  const auto kept = steps(evidence_directory(config_.dir, told));
  EXPECT_EQ(kept, tens(40'000 - 10 * static_cast<int>(copy->records), 40'000));
}

TEST_F(EvidenceCopyTest, LargeRecordsAreNotDroppedByTheHundreds) {
  write(300, 800'000);  // ours are 24 MB, in 30 records
  config_.most.count = 8U << 20;
  const auto copy = go_on(*begin(issue(300)));
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->records + copy->left_out, 30U);
  EXPECT_GE(copy->records, 8U);
  EXPECT_LE(copy->records, 11U);
}

TEST_F(EvidenceCopyTest, WhatIsThereOfAnotherReportIsBegunAnew) {
  write(20'000);
  core::Issue other = issue(20'000);
  go_on(*begin(other), 5);
  core::Issue told = issue(10'000);
  told.event_id = "iss_another";
  const auto copy = go_on(*begin(told));
  ASSERT_TRUE(copy);
  EXPECT_EQ(steps(evidence_directory(config_.dir, told)), tens(0, 10'001));
}

TEST_F(EvidenceCopyTest, WhatIsDamagedIsBegunAnew) {
  write(20'000);
  const core::Issue told = issue(20'000);
  go_on(*begin(told), 5);
  ASSERT_EQ(unfinished().size(), 1U);
  std::ofstream(unfinished().front() / "telemetry.db", std::ios::trunc) << "no database";
  const auto copy = go_on(*begin(told));
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->records, 2000U);
}

TEST_F(EvidenceCopyTest, WhatIsGoneFromTheTopicLeavesNothingBehind) {
  write(100);
  core::Issue told = issue(100);
  told.run.uid = core::run_uid_for("", "a third");
  const auto copying = begin(told);
  core::Result<std::optional<EvidenceCopy>> done = std::optional<EvidenceCopy>();
  while (done && !*done) done = copying->go_on();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, core::Code::not_found);
  EXPECT_TRUE(unfinished().empty());
  EXPECT_FALSE(is_kept(evidence_directory(config_.dir, told)));
}

TEST_F(EvidenceCopyTest, WhatNobodyGoesOnWithIsRemovedAfterADay) {
  write(20'000);
  go_on(*begin(issue(20'000)), 3);
  const auto now = core::wall_time(std::chrono::system_clock::now().time_since_epoch().count());
  remove_unfinished_evidence(config_.dir, now - 24h, log_);
  EXPECT_EQ(unfinished().size(), 1U);
  remove_unfinished_evidence(config_.dir, now + 1h, log_);
  EXPECT_TRUE(unfinished().empty());
}

}  // namespace
}  // namespace tocsin::app
