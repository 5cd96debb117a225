// The journal at the limits of a machine: descriptors, busy files, a full disk, a folder taken away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/contract/child.h"
#include "tests/contract/journal_fixture.h"

namespace tocsin::tests {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::size_t open_files() {
  const fs::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// Sets a limit for a scope.
class Limit {
 public:
  Limit(int what, rlim_t value) : what_(what) {
    EXPECT_EQ(::getrlimit(what, &old_), 0);
    const struct rlimit tight { value, old_.rlim_max };
    EXPECT_EQ(::setrlimit(what, &tight), 0);
  }
  ~Limit() { ::setrlimit(what_, &old_); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

 private:
  int what_;
  struct rlimit old_ {};
};

TEST_F(Journal, TwelveHundredRunsCostNoFileDescriptors) {
  const Limit limit(RLIMIT_NOFILE, 1024);
  auto source = reader({"telemetry"});
  std::vector<std::unique_ptr<core::RecordPublisher>> kept;
  put("telemetry", "run", "0");
  ASSERT_THAT(texts(*source), SizeIs(1));
  const std::size_t before = open_files();
  for (int run = 1; run <= 1200; ++run) {
    const auto status = publisher()->commit(
        std::vector{record("telemetry", "run-" + std::to_string(run), std::to_string(run))}, {});
    ASSERT_TRUE(status) << "run " << run << ": " << status.error().message;
  }
  EXPECT_THAT(texts(*source), SizeIs(1200));
  EXPECT_THAT(texts(*reader({"telemetry"})), SizeIs(1201));
  EXPECT_LE(open_files(), before + 2);  // SQLite keeps one to use again
}

TEST_F(Journal, AHookNeverWaitsForSomebodyElsesTransaction) {
  put("telemetry", "run", "before");
  ingest::PublisherOptions options;
  options.max_queued_records = 500;
  auto hook = publisher(options);
  Child holder({TOCSIN_JOURNAL_WORKER, "hold", file("telemetry.db")});
  ASSERT_TRUE(holder.line());
  int taken = 0;
  int refused = 0;
  std::vector<double> took;
  for (int i = 0; i < 600; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const auto status = hook->publish(record("telemetry", "run", std::to_string(i)));
    took.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
            .count());
    status ? ++taken : ++refused;
    if (!status) {
      EXPECT_EQ(status.error().code, core::Code::resource_exhausted);
    }
  }
  EXPECT_EQ(taken, 500);
  EXPECT_EQ(refused, 100);
  std::sort(took.begin(), took.end());
  EXPECT_LT(took[594], 5.0);
  const auto early = hook->flush(milliseconds{50});
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, core::Code::deadline_exceeded);
  holder.kill();
  const auto flushed = hook->flush(seconds{10});
  ASSERT_TRUE(flushed) << flushed.error().message;
  EXPECT_THAT(texts(*reader({"telemetry"})), SizeIs(501));
}

TEST_F(Journal, ACommitAgainstABusyFileEndsInTimeAndCanBeRepeated) {
  ingest::PublisherOptions options;
  options.commit_timeout = milliseconds{100};
  auto engine = publisher(options);
  const std::vector<core::OutRecord> out = {record("issues", "run", "x")};
  Child holder({TOCSIN_JOURNAL_WORKER, "hold", file("control.db")});
  ASSERT_TRUE(holder.line());
  const auto begin = std::chrono::steady_clock::now();
  const auto busy = engine->commit(out, {});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds{5});
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, core::Code::unavailable);
  EXPECT_TRUE(engine->commit(std::vector{record("telemetry", "run", "x")}, {}));  // the other file
  holder.kill();
  ASSERT_TRUE(engine->commit(out, {}));
  EXPECT_THAT(texts(*reader({"issues"})), ElementsAre("x"));
}

TEST_F(Journal, AFullDiskFailsTheCommitWholeAndTheNextOneSucceeds) {
  put("issues", "run", "before");
  auto engine = publisher();
  ASSERT_TRUE(engine->commit(std::vector{record("issues", "run", "one more")}, {}));
  auto* handler = std::signal(SIGXFSZ, SIG_IGN);
  std::vector<core::OutRecord> big;
  for (int i = 0; i < 20; ++i) big.push_back(record("issues", "run", std::string(50'000, 'x')));
  core::Status refused = core::ok();
  {
    const Limit limit(RLIMIT_FSIZE, fs::file_size(file("control.db-wal")) + 100'000);
    refused = engine->commit(big, std::vector<core::Position>{{{"telemetry", 0}, 7}});
    EXPECT_THAT(texts(*reader({"issues"})), SizeIs(2));  // reading goes on
  }
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().retryable());
  EXPECT_THAT(refused.error().message, HasSubstr("control.db"));
  EXPECT_EQ(sql("control.db", "SELECT count(*) FROM position"), 0);
  ASSERT_TRUE(engine->commit(big, {}));
  EXPECT_THAT(texts(*reader({"issues"})), SizeIs(22));
}

TEST_F(Journal, AHookOutlivesAFullDiskAndLosesNothing) {
  auto hook = publisher();
  ASSERT_TRUE(hook->publish(record("telemetry", "run", "first")));
  ASSERT_TRUE(hook->flush(seconds{10}));
  auto* handler = std::signal(SIGXFSZ, SIG_IGN);
  {
    const Limit limit(RLIMIT_FSIZE, fs::file_size(file("telemetry.db-wal")));
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(hook->publish(record("telemetry", "run", std::string(50'000, 'x'))));
    }
    const auto full = hook->flush(seconds{2});
    ASSERT_FALSE(full);
    EXPECT_THAT(full.error().message, HasSubstr("telemetry.db"));
  }
  std::signal(SIGXFSZ, handler);
  const auto flushed = hook->flush(seconds{10});
  ASSERT_TRUE(flushed) << flushed.error().message;
  EXPECT_THAT(texts(*reader({"telemetry"})), SizeIs(21));
}

TEST_F(Journal, AFolderThatIsTakenAwayIsNoticedAndMadeAnew) {
  put("telemetry", "run", "gone");
  auto hook = publisher();
  ASSERT_TRUE(hook->publish(record("telemetry", "run", "gone too")));
  ASSERT_TRUE(hook->flush(seconds{10}));
  auto source = reader({"telemetry"});
  ASSERT_THAT(texts(*source), SizeIs(2));
  fs::remove_all(directory_);
  // A deleted file can be read and written for ever, and nobody sees it.
  ASSERT_TRUE(hook->publish(record("telemetry", "run", "new")));
  ASSERT_TRUE(hook->flush(seconds{10}));
  EXPECT_THAT(texts(*reader({"telemetry"})), ElementsAre("new"));
  core::Status told = core::ok();
  for (int i = 0; i < 50 && told; ++i) {
    const auto polled = source->poll(milliseconds{100}, 10, [](const core::RecordView&) {});
    if (!polled) told = polled.error();
  }
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, core::Code::failed_precondition);
}

}  // namespace
}  // namespace tocsin::tests
