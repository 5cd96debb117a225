// Issues of the last days among those of years: what the question reads, counted in pages of the file.
#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "insights/insights.h"
#include "insights/store/database.h"

namespace tocsin::insights {
namespace {

using namespace std::chrono_literals;

const core::WallTime kNow = core::WallTime(std::chrono::hours(24 * 365 * 50));
constexpr std::int64_t kOld = 4000;
constexpr std::int64_t kNew = 20;
constexpr std::int64_t kPageBytes = 4096;

std::int64_t micros_of(core::WallTime time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}

class IssuesSinceTest : public ::testing::Test {
 protected:
  IssuesSinceTest()
      : folder_(std::filesystem::temp_directory_path() /
                ("issues-since-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~IssuesSinceTest() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path() const { return folder_ / "insights.db"; }
  std::unique_ptr<EventWriter> writer() {
    SetAside moved;
    auto made = EventWriter::open(path(), "here", moved);
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    EXPECT_EQ(moved.why, "");
    return made ? std::move(*made) : nullptr;
  }
  // Issue `number` opened at `time`; each is of a run and a tensor of its own.
  static void put(EventWriter& store, std::int64_t number, core::WallTime time) {
    core::Issue issue;
    issue.event_id = "iss_" + std::to_string(number);
    issue.rule = "exploding_tensor";
    issue.run.uid = core::run_uid_for("job", std::to_string(number));
    issue.labels = {{"rule", issue.rule}, {"run_uid", core::to_text(issue.run.uid)}};
    issue.summary = std::string(200, 'x');
    issue.time = issue.starts_at = time;
    KeptRecord kept;
    kept.record.topic = "issues";
    kept.record.value = "{}";
    kept.offset = number;
    store.saw(kept, issue);
  }
  void fill(std::int64_t old) {
    auto store = writer();
    for (std::int64_t at = 0; at < old; ++at) put(*store, at, kNow - 24h * (100 + at));
    // In no order of keys.
    for (std::int64_t at = 0; at < kNew; ++at) put(*store, kOld + at, kNow - 1h * (at * 7 % kNew));
    ASSERT_TRUE(store->commit({}));
  }
  // Bytes of the pages that readers have read and still hold, of all of the process.
  static std::int64_t held() {
    sqlite3_int64 now = 0;
    sqlite3_int64 most = 0;
    EXPECT_EQ(sqlite3_status64(SQLITE_STATUS_PAGECACHE_OVERFLOW, &now, &most, 0), SQLITE_OK);
    return now;
  }
  // Pages that the issues of seven days take to read; a reader holds 500 of them at most.
  std::int64_t pages() {
    auto reader = EventReader::open(path());
    EXPECT_TRUE(reader);
    const std::int64_t before = held();
    const auto lines = (*reader)->issues_since(micros_of(kNow - 7 * 24h), 1000);
    EXPECT_EQ(lines.size(), kNew);
    for (std::size_t at = 1; at < lines.size(); ++at)
      EXPECT_LT(lines[at].opened, lines[at - 1].opened) << "the newest first";
    EXPECT_TRUE((*reader)->failure());
    return (held() - before) / kPageBytes;
  }
  std::int64_t all_pages() {
    return (*StoreDatabase::open(path(), false))->number("PRAGMA page_count");
  }

  std::filesystem::path folder_;
};

TEST_F(IssuesSinceTest, YearsOfIssuesAreNotReadForThoseOfAWeek) {
  fill(kOld);
  const std::int64_t some = pages();
  EXPECT_GT(some, 0);
  // Each is a way down three trees: by its time, by its key, and to what people were told of it.
  EXPECT_LE(some, kNew * 9) << "of " << all_pages();
  EXPECT_GT(all_pages(), kNew * 40);
}

// Before there was an index by time a file of the same version had none: whoever writes it makes it.
TEST_F(IssuesSinceTest, AFileWithoutTheIndexGetsIt) {
  fill(kOld);
  const std::int64_t some = pages();
  {
    auto database = StoreDatabase::open(path(), true);
    (*database)->run("DROP INDEX issue_opened");
    ASSERT_TRUE((*database)->failure());
  }
  EXPECT_GT(pages(), 2 * some) << "it is read whole";
  (void)writer();
  EXPECT_LE(pages(), some + kNew);
}

}  // namespace
}  // namespace tocsin::insights
