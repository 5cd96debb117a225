// What only the journal promises: its files, ids, positions, many processes, forks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "ingest/journal/headers.h"
#include "tests/contract/child.h"
#include "tests/contract/journal_fixture.h"
#include "tests/support/sanitizers.h"

namespace tocsin::tests {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

TEST_F(Journal, ItsFilesAreWhatTheyAreSaidToBe) {
  for (const char* name : {"telemetry.db", "control.db"}) {
    EXPECT_EQ(sql(name, "PRAGMA application_id"), 0x544F4353) << name;
    EXPECT_EQ(sql(name, "PRAGMA user_version"), 2) << name;
    EXPECT_EQ(sql(name, "PRAGMA page_size"), 16384) << name;
    EXPECT_EQ(sql(name, "PRAGMA auto_vacuum"), 2) << name;  // incremental
    EXPECT_EQ(sql(name, "SELECT count(*) FROM pragma_journal_mode WHERE journal_mode = 'wal'"), 1);
  }
  // What a training process writes is in one file, what tocsin decides on in the other.
  EXPECT_EQ(sql("telemetry.db", "SELECT count(*) FROM topic"), 3);
  EXPECT_EQ(sql("control.db", "SELECT count(*) FROM topic"),
            static_cast<std::int64_t>(ingest::topic_plan(topics_).size()) - 3);
}

TEST_F(Journal, IdsCountFromZeroPerTopicAndOutliveTheRecords) {
  put("telemetry", "run", "a");
  put("acks", "run", "b");
  put("telemetry", "run", "c");
  const auto read = read_to_end(*reader({"telemetry"}));
  ASSERT_TRUE(read);
  ASSERT_THAT(*read, SizeIs(2));
  EXPECT_EQ((*read)[1].offset, 1);
  EXPECT_EQ((*read)[1].stream, "telemetry");
  sql("telemetry.db", "DELETE FROM telemetry");
  put("telemetry", "run", "d");
  EXPECT_EQ(sql("telemetry.db", "SELECT id FROM telemetry"), 2);
}

TEST_F(Journal, IdsThatAPowerCutTookAreNotUsedAgain) {
  put("telemetry", "run", "kept");
  close();
  sql("telemetry.db", "PRAGMA wal_checkpoint(TRUNCATE)");
  fs::copy_file(file("telemetry.db"), file("before"));
  transport_ = open();
  put("telemetry", "run", "lost");
  auto source = reader({"telemetry"}, "engine");
  ASSERT_EQ(texts(*source).size(), 2U);
  ingest::PublisherOptions options;
  options.source = source.get();
  ASSERT_TRUE(publisher(options)->commit({}, source->positions()));
  source.reset();
  close();
  // control.db was synced, the tail of telemetry.db was not.
  for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(file("telemetry.db") + suffix);
  fs::rename(file("before"), file("telemetry.db"));

  transport_ = open();
  put("telemetry", "run", "new");
  auto again = reader({"telemetry"}, "engine");
  EXPECT_THAT(texts(*again), ElementsAre("new"));  // and not: behind its position for ever
  EXPECT_EQ(again->positions().at(0).next, 3);
}

TEST_F(Journal, ACompactedTopicHoldsOneRecordPerKey) {
  for (int i = 0; i < 50; ++i) put("commands", "run/" + std::to_string(i % 3), std::to_string(i));
  EXPECT_EQ(sql("control.db", "SELECT count(*) FROM commands"), 3);
  EXPECT_EQ(state("commands"), (std::map<std::string, std::string>{
                                   {"run/0", "48"}, {"run/1", "49"}, {"run/2", "47"}}));
  // A reader from the oldest on meets holes, which are no loss.
  EXPECT_THAT(texts(*reader({"commands"})), ElementsAre("47", "48", "49"));
}

TEST_F(Journal, PositionsStandInControlAlsoThoseOfTelemetry) {
  put("telemetry", "run", "a");
  auto source = reader({"telemetry", "router-lease"}, "engine");
  EXPECT_THAT(texts(*source), ElementsAre("a"));
  ingest::PublisherOptions options;
  options.source = source.get();
  ASSERT_TRUE(
      publisher(options)->commit(std::vector{record("issues", "run", "x")}, source->positions()));
  EXPECT_EQ(sql("control.db",
                "SELECT next FROM position WHERE consumer = 'engine' AND topic = 'telemetry'"),
            1);
  EXPECT_EQ(sql("control.db", "SELECT count(*) FROM position"), 1);  // -1 is no position
}

TEST_F(Journal, OneReaderPerGroupAndTheSecondIsToldWhoHasIt) {
  put("telemetry", "run", "a");
  auto first = reader({"telemetry"}, "engine");
  ingest::SourceOptions options;
  options.topics = {"telemetry"};
  options.group = "engine";
  const auto second = transport_->source(options);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, core::Code::failed_precondition);
  EXPECT_THAT(second.error().message, HasSubstr("process " + std::to_string(::getpid())));
  EXPECT_NE(reader({"telemetry"}, "router"), nullptr);

  ingest::PublisherOptions writing;
  writing.source = first.get();
  auto committer = publisher(writing);
  first->close(seconds{1});
  EXPECT_TRUE(transport_->source(options));
  const auto late = committer->commit({}, std::vector<core::Position>{{{"telemetry", 0}, 1}});
  ASSERT_FALSE(late) << "it moved the positions of a group that is not its own any more";
  EXPECT_EQ(late.error().code, core::Code::failed_precondition);
}

TEST_F(Journal, AGroupIsFreeAsSoonAsItsReaderIsKilled) {
  Child other({TOCSIN_JOURNAL_WORKER, "group", directory_});
  ASSERT_TRUE(other.line());
  ingest::SourceOptions options;
  options.topics = {"telemetry"};
  options.group = "engine";
  const auto refused = transport_->source(options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("process " + std::to_string(other.pid())));
  other.kill();
  EXPECT_TRUE(transport_->source(options));
}

TEST_F(Journal, TwoProcessesWriteWhileOneReads) {
  constexpr int kEach = 3000;
  auto source = reader({"telemetry"});
  Child a({TOCSIN_JOURNAL_WORKER, "write", directory_, std::to_string(kEach), "a"});
  Child b({TOCSIN_JOURNAL_WORKER, "write", directory_, std::to_string(kEach), "b"});
  const auto read = read_records(*source, 2 * kEach);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_THAT(*read, SizeIs(2 * kEach));
  std::map<std::string, int> next;
  for (std::size_t i = 0; i < read->size(); ++i) {
    const auto& kept = (*read)[i];
    ASSERT_EQ(kept.offset, static_cast<std::int64_t>(i));
    ASSERT_EQ(kept.value, *kept.key + " " + std::to_string(next[*kept.key]++));
  }
  EXPECT_EQ(a.wait(), 0);
  EXPECT_EQ(b.wait(), 0);
}

TEST_F(Journal, ARecordTooLargeForItsTopicIsRefused) {
  const auto refused = publisher()->publish(record("issues", "run", std::string(2 << 20, 'x')));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::Code::invalid_argument);
  EXPECT_TRUE(publisher()->publish(record("issues", "run", std::string(1'000'000, 'x'))));
}

TEST_F(Journal, AWaitingReaderWakesBeforeItsPollWouldHaveLooked) {
  auto source = reader({"telemetry"});
  (void)texts(*source);
  auto hook = publisher();
  std::vector<double> milliseconds_taken;
  for (int i = 0; i < 20; ++i) {
    std::chrono::steady_clock::time_point sent;
    std::thread other([&] {
      std::this_thread::sleep_for(milliseconds{8});  // until the reader waits
      sent = std::chrono::steady_clock::now();
      EXPECT_TRUE(hook->commit(std::vector{record("telemetry", "run", "x")}, {}));
    });
    std::chrono::steady_clock::time_point seen;
    const auto polled = source->poll(milliseconds{2000}, 10, [&](const core::RecordView&) {
      seen = std::chrono::steady_clock::now();
    });
    other.join();
    ASSERT_TRUE(polled);
    ASSERT_EQ(*polled, 1U);
    milliseconds_taken.push_back(std::chrono::duration<double, std::milli>(seen - sent).count());
  }
  std::sort(milliseconds_taken.begin(), milliseconds_taken.end());
  RecordProperty("median_wake_up_microseconds", static_cast<int>(milliseconds_taken[10] * 1000));
  EXPECT_LT(milliseconds_taken[10], 20.0);  // without inotify: 25 on average
}

TEST_F(Journal, WakeEndsAPollThatWaitsAndTheNextOne) {
  auto source = reader({"telemetry"});
  const auto timed = [&] {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(source->poll(seconds{5}, 10, [](const core::RecordView&) {}));
    return std::chrono::steady_clock::now() - begin;
  };
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds{30});
    source->wake();
  });
  EXPECT_LT(timed(), seconds{2});
  other.join();
  source->wake();
  EXPECT_LT(timed(), seconds{2});
}

TEST_F(Journal, AForkedChildMayWriteTheJournalThatItsParentWrites) {
  if (!kForksSafely) GTEST_SKIP() << "no sanitizer can";
  // As a data loader that opens a hook of its own: SQLite's own state does not survive a fork.
  auto hook = publisher();
  std::atomic<bool> done{false};
  std::thread busy([&] {
    for (int i = 0; !done || i < 50; ++i) {
      EXPECT_TRUE(hook->commit(std::vector{record("acks", "parent", std::string(9000, 'x'))}, {}));
    }
  });
  for (int round = 0; round < 5; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto transport = try_open();
      if (!transport) ::_exit(3);
      auto own = (*transport)->publisher({});
      if (!own) ::_exit(4);
      for (int i = 0; i < 20; ++i) {
        if (!(*own)->publish(record("telemetry", "child", "x"))) ::_exit(5);
      }
      ::_exit((*own)->flush(seconds{10}) ? 0 : 6);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_EQ(WEXITSTATUS(status), 0);
  }
  done = true;
  busy.join();
  EXPECT_THAT(texts(*reader({"telemetry"})), SizeIs(100));
  EXPECT_EQ(sql("telemetry.db", "SELECT count(*) FROM pragma_quick_check WHERE quick_check = 'ok'"),
            1);
}

// Registered before the journal's own handlers, so it runs once those hold the journal.
thread_local bool forks_slowly = false;
const int kSlowForks = pthread_atfork(
    [] {
      if (forks_slowly) std::this_thread::sleep_for(milliseconds{400});
    },
    nullptr, nullptr);

TEST_F(Journal, TwoThreadsThatForkAtOnceLeaveItUsable) {
  if (!kForksSafely) GTEST_SKIP() << "no sanitizer can";
  ASSERT_EQ(kSlowForks, 0);
  put("telemetry", "run", "before");
  const auto fork_once = [](bool slowly) {
    forks_slowly = slowly;
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    ::waitpid(child, nullptr, 0);
  };
  std::thread slow(fork_once, true);
  std::this_thread::sleep_for(milliseconds{50});
  std::thread impatient(fork_once, false);  // waits for the first in vain
  slow.join();
  impatient.join();
  auto written = std::async(std::launch::async, [this] { put("telemetry", "run", "after"); });
  if (written.wait_for(seconds{20}) != std::future_status::ready) {
    std::fputs("the journal is held by nobody\n", stderr);
    std::abort();  // its threads could not be joined
  }
  EXPECT_THAT(texts(*reader({"telemetry"})), ElementsAre("before", "after"));
}

TEST_F(Journal, EachTopicHasItsOwnEnd) {
  put("telemetry", "run", "a");
  put("telemetry", "run", "b");
  auto source = reader({"telemetry", "issues"});
  ASSERT_TRUE(source->poll(milliseconds{0}, 1, [](const core::RecordView&) {}));
  EXPECT_FALSE(source->at_end({"telemetry", 0}));
  ASSERT_TRUE(source->poll(milliseconds{0}, 10, [](const core::RecordView&) {}));
  ASSERT_TRUE(source->poll(milliseconds{0}, 10, [](const core::RecordView&) {}));
  EXPECT_TRUE(source->at_end({"telemetry", 0}));
  EXPECT_TRUE(source->at_end({"issues", 0}));
  EXPECT_FALSE(source->at_end({"acks", 0}));
  EXPECT_FALSE(source->at_end({"issues", 1}));
}

TEST_F(Journal, AHandlerThatThrowsLeavesTheSourceUsable) {
  for (const char* text : {"a", "b", "c"}) put("telemetry", "run", text);
  auto source = reader({"telemetry"});
  EXPECT_THROW((void)source->poll(milliseconds{0}, 10,
                                  [](const core::RecordView& view) {
                                    if (view.text() == "b") throw std::runtime_error("b");
                                  }),
               std::runtime_error);
  EXPECT_THAT(texts(*source), ElementsAre("c"));
}

TEST(JournalHeaders, BytesThatAreNoHeadersAreNoHeaders) {
  const auto packed = ingest::pack_headers({{"a", "1"}, {"empty", ""}, {"", "x"}});
  ASSERT_TRUE(packed);
  EXPECT_THAT(
      ingest::unpack_headers(*packed),
      ElementsAre(testing::Pair("a", "1"), testing::Pair("empty", ""), testing::Pair("", "x")));
  EXPECT_EQ(ingest::find_header(*packed, "empty"), "");
  for (std::size_t size = 0; size < packed->size(); ++size) {
    EXPECT_LT(ingest::unpack_headers(packed->substr(0, size)).size(), 3U);
    EXPECT_EQ(ingest::find_header(packed->substr(0, size), "b"), std::nullopt);
  }
  EXPECT_EQ(ingest::find_header(std::string("\xff\xff\xff\xff\xff\xff", 6), "a"), std::nullopt);
  EXPECT_EQ(ingest::pack_headers({{std::string(70'000, 'n'), "v"}}), std::nullopt);
}

/// More of them than it keeps places of, some of one name, cut off anywhere.
TEST(JournalHeaders, AnIndexFindsWhatASearchFinds) {
  ingest::RecordHeaders headers;
  for (int i = 0; i < 20; ++i) {
    headers.emplace_back("name" + std::to_string(i % 13), std::to_string(i));
  }
  headers.emplace_back("last", "");
  const auto packed = ingest::pack_headers(headers);
  ASSERT_TRUE(packed);
  ingest::HeaderIndex index;
  for (std::size_t size = packed->size() + 1; size-- > 0;) {
    const std::string cut = packed->substr(0, size);
    index.read(cut);
    for (const char* name : {"name0", "name1", "name9", "name12", "name13", "last", ""}) {
      EXPECT_EQ(index.find(name), ingest::find_header(cut, name)) << name << " of " << size;
    }
  }
}

}  // namespace
}  // namespace tocsin::tests
