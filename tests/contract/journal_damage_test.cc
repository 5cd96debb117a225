// Files that are not a journal, or not a whole one: told by name, never read as empty.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/contract/journal_fixture.h"

namespace tocsin::tests {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class JournalDamage : public Journal {
 protected:
  /// Everything in the files, no log beside them.
  void settle() {
    close();
    for (const char* name : {"telemetry.db", "control.db"}) {
      sql(name, "PRAGMA wal_checkpoint(TRUNCATE)");
    }
  }
  std::unique_ptr<core::RecordSource> backed(const ingest::SourceOptions& options) {
    auto opened = transport_->source(options);
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? std::move(*opened) : nullptr;
  }
  void overwrite(const std::string& name, std::uintmax_t offset, std::size_t bytes) {
    std::fstream out(file(name), std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(static_cast<std::streamoff>(offset));
    out << std::string(bytes, '\x5a');
  }
};

TEST_F(JournalDamage, AnotherProgramsFileIsRefusedByName) {
  settle();
  sql("control.db", "PRAGMA application_id = 77");
  const auto opened = try_open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, core::Code::failed_precondition);
  EXPECT_THAT(opened.error().message, AllOf(HasSubstr("control.db"), HasSubstr("not a file of")));
}

TEST_F(JournalDamage, AnotherFormatIsRefusedByName) {
  settle();
  sql("telemetry.db", "PRAGMA user_version = 3");
  const auto opened = try_open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, core::Code::failed_precondition);
  EXPECT_THAT(opened.error().message, AllOf(HasSubstr("telemetry.db"), HasSubstr("format 3")));
}

TEST_F(JournalDamage, TheSegmentsOfAnEarlierVersionAreRefusedByName) {
  settle();
  fs::remove(file("telemetry.db"));
  fs::remove(file("control.db"));
  std::ofstream(file("journal.json")) << R"({"format":1,"machine":""})";
  const auto opened = try_open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, core::Code::failed_precondition);
  EXPECT_THAT(opened.error().message, HasSubstr("earlier version"));
  EXPECT_FALSE(fs::exists(file("telemetry.db")));
}

TEST_F(JournalDamage, WhatIsNoDatabaseIsDamageAndNotAnEmptyJournal) {
  settle();
  for (const std::string& text :
       {std::string("not a database, and longer than a header is. ") + std::string(200, '.'),
        std::string()}) {
    std::ofstream(file("control.db"), std::ios::trunc) << text;
    const auto opened = try_open();
    ASSERT_FALSE(opened) << "of " << text.size() << " bytes";
    EXPECT_THAT(opened.error().message, HasSubstr("control.db"));
    EXPECT_EQ(fs::file_size(file("control.db")), text.size()) << "it was written over";
  }
}

TEST_F(JournalDamage, AFileThatLostItsEndIsToldWithTheWayOut) {
  for (int i = 0; i < 100; ++i) put("issues", "run", std::string(5000, 'x'));
  settle();
  fs::resize_file(file("control.db"), fs::file_size(file("control.db")) / 2);
  const auto opened = try_open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, core::Code::data_loss);
  EXPECT_THAT(opened.error().message,
              AllOf(HasSubstr("control.db"), HasSubstr("tocsin journal salvage " + directory_)));
}

TEST_F(JournalDamage, ALogWithoutItsFileIsNotStartedAnew) {
  put("issues", "run", "x");
  auto source = reader({"issues"});
  ASSERT_THAT(texts(*source), ElementsAre("x"));
  fs::remove(file("control.db"));
  const auto opened = try_open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, core::Code::data_loss);
  EXPECT_FALSE(fs::exists(file("control.db")));
}

TEST_F(JournalDamage, ADamagedPageEndsReadingWithAnErrorEachTime) {
  for (int i = 0; i < 200; ++i) put("issues", "run", std::to_string(i) + std::string(5000, 'x'));
  settle();
  overwrite("control.db", fs::file_size(file("control.db")) / 2 / 16384 * 16384, 16384);
  transport_ = open();
  auto source = reader({"issues"});
  std::size_t seen = 0;
  int told = 0;
  for (int i = 0; i < 20; ++i) {
    const auto polled = source->poll(milliseconds{0}, 10, [&](const core::RecordView&) { ++seen; });
    if (polled) continue;
    ++told;
    EXPECT_EQ(polled.error().code, core::Code::failed_precondition);  // only a new start can help
    EXPECT_THAT(polled.error().message, HasSubstr("journal salvage"));
    EXPECT_FALSE(source->at_end());
  }
  EXPECT_GT(seen, 0U);
  EXPECT_LT(seen, 200U);
  EXPECT_GT(told, 1);
  const auto all = source->read_all("issues", 0, std::nullopt, [](const core::RecordView&) {});
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code, core::Code::data_loss);
}

TEST_F(JournalDamage, CheckSaysOkOfAWholeJournalAndWhereADamagedOneHurts) {
  for (int i = 0; i < 200; ++i) put("issues", "run", std::to_string(i) + std::string(5000, 'x'));
  settle();
  const auto sound = ingest::check_journal(directory_);
  ASSERT_TRUE(sound) << sound.error().message;
  EXPECT_TRUE(sound->sound);
  EXPECT_THAT(sound->lines, testing::Contains(HasSubstr("issues: 200 records, next id 200")));

  overwrite("control.db", fs::file_size(file("control.db")) / 2 / 16384 * 16384, 16384);
  const auto hurt = ingest::check_journal(directory_);
  ASSERT_TRUE(hurt) << hurt.error().message;
  EXPECT_FALSE(hurt->sound);
  EXPECT_THAT(hurt->lines, testing::Contains(file("telemetry.db") + ": ok"));
  EXPECT_THAT(hurt->lines, testing::Contains(file("control.db") + ": damaged"));
  EXPECT_FALSE(ingest::check_journal(directory_ + "/nowhere"));
}

TEST_F(JournalDamage, SalvageCopiesAllThatCanBeReadAndSaysWhatIsMissing) {
  for (int i = 0; i < 200; ++i) put("issues", "run", std::to_string(i) + std::string(5000, 'x'));
  put("rules-state", "unit", "state");
  put("telemetry", "run", "a frame");
  {
    auto source = reader({"telemetry", "issues"}, "engine");
    ASSERT_EQ(texts(*source).size(), 201U);
    ingest::PublisherOptions options;
    options.source = source.get();
    ASSERT_TRUE(publisher(options)->commit({}, source->positions()));
  }
  settle();
  const auto middle = sql("control.db",
                          "SELECT pageno FROM dbstat WHERE name = 'issues' AND pagetype = 'leaf' "
                          "ORDER BY pageno LIMIT 1 OFFSET 20");
  overwrite("control.db", static_cast<std::uintmax_t>(middle - 1) * 16384, 16384);

  const std::string fresh = directory_ + "/new";
  const auto report = ingest::salvage_journal(directory_, fresh, topics_);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->sound);
  EXPECT_THAT(report->lines, testing::Contains(HasSubstr("unreadable (ids ")));
  EXPECT_THAT(report->lines, testing::Contains("positions: 2 copied"));
  const auto again = ingest::salvage_journal(directory_, fresh, topics_);
  EXPECT_FALSE(again) << "it wrote into a journal that was there";

  config_.journal = fresh;
  transport_ = open();
  EXPECT_EQ(state("rules-state"), (std::map<std::string, std::string>{{"unit", "state"}}));
  ingest::SourceOptions options;
  options.topics = {"issues", "telemetry"};
  auto source = backed(options);
  std::vector<std::int64_t> ids;
  for (int i = 0; i < 500; ++i) {
    (void)source->poll(milliseconds{0}, 10, [&](const core::RecordView& view) {
      if (view.topic != "issues") return;
      EXPECT_TRUE(view.text().starts_with(std::to_string(view.offset) + "x"));
      ids.push_back(view.offset);
    });
  }
  EXPECT_GE(ids.size(), 190U);  // one page holds three of these
  EXPECT_LT(ids.size(), 200U);
  EXPECT_EQ(ids.back(), 199);
  put("issues", "run", "goes on");
  options.group = "engine";
  auto engine = backed(options);
  EXPECT_THAT(texts(*engine), ElementsAre("goes on"));
  EXPECT_EQ(ingest::check_journal(fresh)->sound, true);
}

TEST_F(JournalDamage, AnotherMachinesJournalIsForReadingOnly) {
  put("issues", "run", "theirs");
  auto opened = try_open("elsewhere");
  ASSERT_TRUE(opened) << opened.error().message;
  close();
  transport_ = std::move(*opened);
  const auto publisher = transport_->publisher({});
  ASSERT_FALSE(publisher);
  EXPECT_EQ(publisher.error().code, core::Code::failed_precondition);
  EXPECT_THAT(publisher.error().message, HasSubstr("transport.kafka"));
  EXPECT_THAT(texts(*reader({"issues"})), ElementsAre("theirs"));
}

}  // namespace
}  // namespace tocsin::tests
