// Silences written to a journal and read back, also when two people change one at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>

#include "app/cli/silence_writer.h"
#include "app/view/silence_records.h"
#include "app/view/topic_view.h"
#include "core/log.h"
#include "core/system_clock.h"
#include "core/telemetry.h"

namespace tocsin::app {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using routing::Silence;
using ::testing::HasSubstr;

class SilenceWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ingest::TransportConfig config;
    config.journal = (folder_ / "journal").string();
    auto opened = ingest::Transport::open(config, {}, log_, telemetry_);
    ASSERT_TRUE(opened) << opened.error().message;
    transport_ = std::move(*opened);
    ASSERT_TRUE(transport_->ensure_topics());
  }
  ~SilenceWriterTest() override {
    transport_.reset();
    fs::remove_all(folder_);
  }
  std::map<std::string, Silence> standing() {
    TopicView view;
    EXPECT_TRUE(read_view(*transport_, view, 10s));
    return view.silences();
  }
  Silence fresh() {
    Silence asked;
    asked.matchers = "{job=\"digits\"}";
    asked.starts_at = now_;
    asked.ends_at = now_ + 1h;
    asked.created_by = "ada";
    asked.comment = "known";
    return new_silence(asked, now_);
  }

  const core::WallTime now_ = core::SystemClock().now();
  const fs::path folder_ = [] {
    std::string name = (fs::temp_directory_path() / "tocsin-silence-XXXXXX").string();
    return fs::path(mkdtemp(name.data()));
  }();
  core::NullLog log_;
  core::NullTelemetry telemetry_;
  std::unique_ptr<ingest::Transport> transport_;
};

TEST_F(SilenceWriterTest, WhatIsWrittenStands) {
  const Silence silence = fresh();
  ASSERT_TRUE(write_silences(*transport_, {silence}, {}, now_));
  EXPECT_EQ(standing().at(silence.id), silence);
  Silence longer = silence;
  longer.ends_at += 1h;
  const auto change = changed_silence(silence, longer, now_ + 1s);
  ASSERT_EQ(change.size(), 1U);
  ASSERT_TRUE(write_silences(*transport_, change, standing(), now_ + 1s));
  EXPECT_EQ(standing().at(silence.id).version, 2U);
  EXPECT_EQ(standing().at(silence.id).ends_at, longer.ends_at);
}

TEST_F(SilenceWriterTest, OfTwoWhoChangeItAtOnceTheSecondIsTold) {
  const Silence silence = fresh();
  ASSERT_TRUE(write_silences(*transport_, {silence}, {}, now_));
  Silence first = silence;
  first.comment = "first";
  Silence second = silence;
  second.comment = "second";
  // Both have read version 1.
  ASSERT_TRUE(
      write_silences(*transport_, changed_silence(silence, first, now_ + 1s), {}, now_ + 1s));
  TopicView follows;
  auto source = view_source(*transport_);
  ASSERT_TRUE(source);
  const auto apply = [&](const core::RecordView& record) { follows.apply(record); };
  ASSERT_TRUE(read_to_end(**source, apply, 10s));
  Silence late = changed_silence(silence, second, now_ + 2s).at(0);
  for (const core::OutRecord& record : silence_records(std::vector<Silence>{late}, {}, now_)) {
    auto publisher = transport_->publisher({});
    ASSERT_TRUE(publisher);
    ASSERT_TRUE((*publisher)->publish(record));
    ASSERT_TRUE((*publisher)->flush(10s));
  }
  ASSERT_TRUE(read_to_end(**source, apply, 10s));
  EXPECT_EQ(follows.silences().at(silence.id).comment, "first")
      << "whoever follows takes the first";
}

TEST_F(SilenceWriterTest, WhatTakesAnothersPlaceIsThereBeforeThatEnds) {
  const Silence silence = fresh();
  ASSERT_TRUE(write_silences(*transport_, {silence}, {}, now_));
  Silence other = silence;
  other.matchers = "{job=\"words\"}";
  const auto change = changed_silence(silence, other, now_ + 1s);
  ASSERT_EQ(change.size(), 2U);
  EXPECT_EQ(change.back().replaces, silence.id);
  const auto records = silence_records(change, {}, now_);
  EXPECT_EQ(records.at(0).key, "silence/" + change.back().id);
  EXPECT_EQ(records.at(1).key, "silence/" + silence.id);
  ASSERT_TRUE(write_silences(*transport_, change, standing(), now_ + 1s));
  EXPECT_EQ(silence_state(standing().at(silence.id), now_ + 2s), "expired");
  EXPECT_EQ(silence_state(standing().at(change.back().id), now_ + 2s), "active");
}

TEST_F(SilenceWriterTest, ThoseThatEndedLongAgoAreTakenBack) {
  Silence old = fresh();
  old.starts_at = now_ - 24h * 10;
  old.ends_at = now_ - 24h * 9;
  ASSERT_TRUE(write_silences(*transport_, {old}, {}, now_));
  Silence silence = fresh();
  silence.id = "sil_new";
  ASSERT_TRUE(write_silences(*transport_, {silence}, standing(), now_));
  EXPECT_EQ(standing().size(), 1U);
}

}  // namespace
}  // namespace tocsin::app
