// What only the journal promises: recovery, rolls, snapshots, retention, one writer, one machine.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "ingest/journal_directory.h"
#include "ingest/journal_publisher.h"
#include "ingest/journal_source.h"
#include "ingest/journal_transport.h"
#include "tests/contract/transport_backends.h"
#include "tests/support/kafka_fixture.h"

namespace tocsin::tests {
namespace {

namespace fs = std::filesystem;
using ingest::JournalPublisher;
using ingest::JournalSource;
using ingest::JournalWriterOptions;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class Journal : public testing::Test {
 protected:
  Journal() : directory_((fs::temp_directory_path() / unique_name("tocsin-journal")).string()) {
    const auto prepared = ingest::prepare_journal(directory_, "here", 1);
    EXPECT_TRUE(prepared) << prepared.error().message;
  }
  ~Journal() override {
    std::error_code ignored;
    fs::remove_all(directory_, ignored);
  }

  core::Result<std::unique_ptr<JournalPublisher>> try_writer(const std::string& name,
                                                             std::size_t segment_bytes = 1 << 20) {
    JournalWriterOptions options;
    options.directory = directory_;
    options.writer = name;
    options.durable = true;
    options.topics = {"telemetry", "issues", "commands", "rules-state"};
    options.compacted = {"commands", "rules-state"};
    options.segment_bytes = segment_bytes;
    options.now = [this] { return ++now_; };
    return JournalPublisher::open(std::move(options), log_, telemetry_);
  }
  std::unique_ptr<JournalPublisher> writer(const std::string& name,
                                           std::size_t segment_bytes = 1 << 20) {
    auto opened = try_writer(name, segment_bytes);
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? std::move(*opened) : nullptr;
  }
  std::unique_ptr<JournalSource> reader(std::vector<std::string> topics, std::string own = "") {
    ingest::SourceOptions options;
    options.topics = std::move(topics);
    options.own_writer = std::move(own);
    return std::make_unique<JournalSource>(directory_, options, false, log_, telemetry_);
  }
  static std::vector<std::string> texts(core::RecordSource& source) {
    const auto read = read_to_end(source);
    EXPECT_TRUE(read) << read.error().message;
    std::vector<std::string> all;
    if (read) {
      for (const auto& kept : *read) all.push_back(kept.value);
    }
    return all;
  }
  static void put(JournalPublisher& to, const std::string& topic, const std::string& key,
                  const std::string& value) {
    const auto status = to.publish(record(topic, key, value));
    ASSERT_TRUE(status) << status.error().message;
  }
  [[nodiscard]] std::vector<std::string> segments(const std::string& name) const {
    std::vector<std::string> paths;
    for (const auto first : ingest::list_segments(directory_ + "/" + name)) {
      paths.push_back(directory_ + "/" + name + "/" + ingest::segment_name(first));
    }
    return paths;
  }
  static void flip_bit(const std::string& path, std::uintmax_t offset) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(offset));
    const char byte = static_cast<char>(file.get());
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(byte ^ 0x10));
  }
  static void set_age(const std::string& path, std::chrono::hours age) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - age);
  }
  static core::WallTime wall_now() {
    return std::chrono::time_point_cast<core::Duration>(std::chrono::system_clock::now());
  }

  std::string directory_;
  std::int64_t now_ = 1000;
  core::NullLog log_;
  core::NullTelemetry telemetry_;
};

TEST_F(Journal, ATornTailIsCutAndTheNextRecordTakesItsPlace) {
  put(*writer("engine"), "issues", "run", "first");
  const auto path = segments("engine").at(0);
  const auto whole = fs::file_size(path);
  put(*writer("engine"), "issues", "run", "torn");
  fs::resize_file(path, fs::file_size(path) - 5);
  auto source = reader({"issues"});
  EXPECT_THAT(texts(*source), ElementsAre("first"));  // a reader waits before the half batch

  auto successor = writer("engine");
  EXPECT_EQ(fs::file_size(path), whole);
  put(*successor, "issues", "run", "second");
  EXPECT_THAT(texts(*source), ElementsAre("second"));
  EXPECT_EQ(source->positions().at(0).next, 2);
}

TEST_F(Journal, EveryCutOfTheFileRecoversToWholeCommits) {
  {
    auto engine = writer("engine");
    for (int i = 1; i <= 3; ++i) {
      const std::vector<core::OutRecord> out = {record("issues", "a", std::to_string(i)),
                                                record("rules-state", "b", std::to_string(i))};
      const std::vector<core::Position> at = {{{"hook-1", 0}, 10 * i}};
      ASSERT_TRUE(engine->commit(out, at));
    }
  }
  const auto path = segments("engine").at(0);
  std::ifstream in(path, std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  for (std::size_t size = ingest::kSegmentHeaderBytes; size <= all.size(); size += 3) {
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(all.data(), static_cast<std::streamsize>(size));
    auto engine = writer("engine");
    ASSERT_NE(engine, nullptr);
    const auto issues = texts(*reader({"issues"}));
    const auto states = texts(*reader({"rules-state"}));
    EXPECT_EQ(issues, states) << size;
    const auto positions = ingest::read_positions(directory_, "engine");
    const auto hook = positions.find("hook-1");
    EXPECT_EQ(hook == positions.end() ? 0 : hook->second, 10 * static_cast<int>(issues.size()));
  }
}

TEST_F(Journal, AFlippedBitInTheLastBatchCutsItAway) {
  {
    auto engine = writer("engine");
    put(*engine, "issues", "run", "good");
    put(*engine, "issues", "run", "bad");
  }
  const auto path = segments("engine").at(0);
  flip_bit(path, fs::file_size(path) - 12);
  auto source = reader({"issues"});
  EXPECT_THAT(texts(*source), ElementsAre("good"));
  put(*writer("engine"), "issues", "run", "again");
  EXPECT_THAT(texts(*source), ElementsAre("again"));
}

TEST_F(Journal, DamageWithGoodSegmentsAfterItIsReportedAndReadingGoesOn) {
  {
    auto engine = writer("engine", 400);
    for (int i = 0; i < 20; ++i) put(*engine, "issues", "run", std::to_string(i));
  }
  const auto paths = segments("engine");
  ASSERT_GT(paths.size(), 3U);
  flip_bit(paths[1], fs::file_size(paths[1]) - 12);
  auto source = reader({"issues"});
  std::vector<std::string> seen;
  int losses = 0;
  for (int i = 0; i < 100 && (i < 5 || !source->at_end()); ++i) {
    const auto polled = source->poll(milliseconds{1}, 100, [&](const core::RecordView& view) {
      seen.emplace_back(view.text());
    });
    if (polled) continue;
    ++losses;
    EXPECT_EQ(polled.error().code, core::Code::data_loss);
    EXPECT_THAT(polled.error().message, HasSubstr("engine"));
  }
  EXPECT_EQ(losses, 1);
  EXPECT_LT(seen.size(), 20U);
  EXPECT_EQ(seen.front(), "0");
  EXPECT_EQ(seen.back(), "19");
}

TEST_F(Journal, ADamagedSegmentHeaderIsReportedAndReadingGoesOn) {
  {
    auto engine = writer("engine", 400);
    for (int i = 0; i < 20; ++i) put(*engine, "issues", "run", std::to_string(i));
  }
  flip_bit(segments("engine").at(1), 9);
  auto source = reader({"issues"});
  std::vector<std::string> seen;
  int losses = 0;
  for (int i = 0; i < 100 && (i < 5 || !source->at_end()); ++i) {
    const auto polled = source->poll(milliseconds{1}, 100, [&](const core::RecordView& view) {
      seen.emplace_back(view.text());
    });
    losses += polled ? 0 : 1;
  }
  EXPECT_GE(losses, 1);
  EXPECT_EQ(seen.back(), "19");
}

TEST_F(Journal, OnlyOneProcessMayAppendToAWriter) {
  auto first = writer("engine");
  const auto second = try_writer("engine");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, core::Code::failed_precondition);
  EXPECT_THAT(second.error().message, HasSubstr("process " + std::to_string(::getpid())));
  EXPECT_TRUE(try_writer("router"));
  first.reset();
  EXPECT_TRUE(try_writer("engine"));
}

TEST_F(Journal, AWriterNameThatIsNoFolderNameIsRefused) {
  for (const char* name : {"", ".", "..", "a/b"}) EXPECT_FALSE(try_writer(name)) << name;
}

TEST_F(Journal, AnotherMachinesJournalIsForReadingOnly) {
  put(*writer("engine"), "issues", "run", "theirs");
  ingest::TransportConfig cfg;
  cfg.journal = directory_;
  auto transport = ingest::open_journal(cfg, {}, log_, telemetry_, "elsewhere");
  ASSERT_TRUE(transport) << transport.error().message;
  const auto publisher = (*transport)->publisher({});
  ASSERT_FALSE(publisher);
  EXPECT_EQ(publisher.error().code, core::Code::failed_precondition);
  EXPECT_THAT(publisher.error().message, HasSubstr("transport.kafka"));
  ingest::SourceOptions options;
  options.topics = {"issues"};
  auto source = (*transport)->source(options);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_THAT(texts(**source), ElementsAre("theirs"));
}

TEST_F(Journal, ANewerFormatIsRefused) {
  std::ofstream(directory_ + "/journal.json") << R"({"format":2,"machine":"here"})";
  const auto prepared = ingest::prepare_journal(directory_, "here", 2);
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().code, core::Code::failed_precondition);
  std::ofstream(directory_ + "/journal.json") << "not json";
  EXPECT_FALSE(ingest::prepare_journal(directory_, "here", 2));
}

TEST_F(Journal, ARollRepeatsTheNewestOfEachKeyAndTailingReadersDoNotSeeItTwice) {
  auto source = reader({"commands", "issues"});
  auto engine = writer("engine", 600);
  std::vector<std::string> written;
  for (int i = 0; i < 40; ++i) {
    const std::string value = std::to_string(i);
    put(*engine, i % 4 == 0 ? "issues" : "commands", "key-" + std::to_string(i % 3), value);
    written.push_back(value);
  }
  ASSERT_GT(segments("engine").size(), 2U);
  EXPECT_EQ(texts(*source), written);

  // With only the newest segment left, a new reader still finds every key.
  const auto paths = segments("engine");
  for (std::size_t i = 0; i + 1 < paths.size(); ++i) fs::remove(paths[i]);
  std::map<std::string, std::string> newest;
  ASSERT_TRUE(reader({"issues"})->read_all("commands", 0, [&](const core::RecordView& view) {
    newest[std::string(*view.key)] = view.text();
  }));
  EXPECT_EQ(newest, (std::map<std::string, std::string>{
                        {"key-0", "39"}, {"key-1", "37"}, {"key-2", "38"}}));
}

TEST_F(Journal, AWithdrawnKeyIsNotRepeated) {
  {
    auto engine = writer("engine", 600);
    put(*engine, "commands", "gone", "x");
    auto withdrawn = record("commands", "gone", "");
    withdrawn.value.reset();
    ASSERT_TRUE(engine->publish(withdrawn));
    for (int i = 0; i < 40; ++i) put(*engine, "commands", "kept", std::to_string(i));
  }
  const auto paths = segments("engine");
  for (std::size_t i = 0; i + 1 < paths.size(); ++i) fs::remove(paths[i]);
  std::map<std::string, std::string> newest;
  ASSERT_TRUE(reader({"issues"})->read_all("commands", 0, [&](const core::RecordView& view) {
    newest[std::string(*view.key)] = view.text();
  }));
  EXPECT_EQ(newest, (std::map<std::string, std::string>{{"kept", "39"}}));
}

TEST_F(Journal, PositionsOutliveRollsAndTheRestartOfTheirOwner) {
  {
    auto hook = writer("hook-1");
    auto engine = writer("engine", 600);
    for (int i = 1; i <= 30; ++i) {
      const std::vector<core::Position> at = {{{"hook-1", 0}, i}};
      ASSERT_TRUE(engine->commit(std::vector{record("issues", "run", "x")}, at));
    }
  }
  ASSERT_GT(segments("engine").size(), 2U);
  EXPECT_EQ(ingest::read_positions(directory_, "engine"),
            (std::map<std::string, std::int64_t>{{"hook-1", 30}}));
  put(*writer("engine", 600), "issues", "run", "y");
  EXPECT_EQ(ingest::read_positions(directory_, "engine").at("hook-1"), 30);
}

TEST_F(Journal, ASnapshotDoesNotOvertakeWhatAnotherWriterSaidLater) {
  auto router = writer("router", 600);
  put(*router, "commands", "run/stop", "old");
  put(*writer("cli-1"), "commands", "run/stop", "new");
  for (int i = 0; i < 20; ++i) put(*router, "issues", "run", "fills the segment");
  ASSERT_GT(segments("router").size(), 1U);  // its snapshot is younger than "new"
  std::string last;
  ASSERT_TRUE(reader({"issues"})->read_all("commands", 0, [&](const core::RecordView& view) {
    last = view.text();
  }));
  EXPECT_EQ(last, "new");
}

TEST_F(Journal, WritersAreMergedInTheOrderOfTheirAppends) {
  auto a = writer("hook-a");
  auto b = writer("hook-b");
  std::vector<std::string> written;
  for (int i = 0; i < 50; ++i) {
    put(i % 3 == 0 ? *a : *b, "telemetry", "run", std::to_string(i));
    written.push_back(std::to_string(i));
  }
  EXPECT_EQ(texts(*reader({"telemetry"})), written);
}

TEST_F(Journal, APositionThatRetentionTookIsAGap) {
  {
    auto hook = writer("hook-1", 400);
    for (int i = 0; i < 30; ++i) put(*hook, "telemetry", "run", std::to_string(i));
  }
  ASSERT_TRUE(writer("engine")->commit({}, std::vector<core::Position>{{{"hook-1", 0}, 1}}));
  fs::remove(segments("hook-1").at(0));
  auto source = reader({"telemetry"}, "engine");
  const auto gap = source->poll(milliseconds{1}, 100, [](const core::RecordView&) {});
  ASSERT_FALSE(gap);
  EXPECT_EQ(gap.error().code, core::Code::data_loss);
  EXPECT_THAT(gap.error().message, HasSubstr("records 1 to"));
  EXPECT_EQ(texts(*source).back(), "29");
}

TEST_F(Journal, RetentionTakesOldSegmentsAndDeadHooks) {
  auto engine = writer("engine", 400);
  for (int i = 0; i < 30; ++i) put(*engine, "issues", "run", "x");
  auto live = writer("hook-live");
  put(*live, "telemetry", "run", "x");
  put(*writer("hook-dead"), "telemetry", "run", "x");
  put(*writer("router"), "issues", "run", "x");
  for (const char* name : {"engine", "hook-live", "hook-dead", "router"}) {
    for (const auto& path : segments(name)) set_age(path, std::chrono::hours{200});
  }
  ASSERT_GT(segments("engine").size(), 2U);
  ingest::apply_journal_retention(directory_, {std::chrono::hours{168}, 1ULL << 40}, wall_now(),
                                  log_);
  EXPECT_THAT(segments("engine"), SizeIs(1));
  EXPECT_THAT(segments("hook-live"), SizeIs(1));
  EXPECT_THAT(segments("router"), SizeIs(1));  // its state
  EXPECT_FALSE(fs::exists(directory_ + "/hook-dead"));
  put(*engine, "issues", "run", "goes on");
  put(*live, "telemetry", "run", "goes on");
  EXPECT_EQ(texts(*reader({"telemetry"})).back(), "goes on");
}

TEST_F(Journal, RetentionTakesTheOldestBeyondTheSize) {
  auto engine = writer("engine", 400);
  for (int i = 0; i < 30; ++i) put(*engine, "issues", "run", std::to_string(i));
  const auto before = segments("engine");
  for (std::size_t i = 0; i < before.size(); ++i) {
    set_age(before[i], std::chrono::hours{static_cast<int>(before.size() - i)});
  }
  const auto limit = fs::file_size(before.back()) + fs::file_size(before[before.size() - 2]);
  ingest::apply_journal_retention(directory_, {std::chrono::hours{168}, limit}, wall_now(), log_);
  EXPECT_THAT(segments("engine"), ElementsAre(before[before.size() - 2], before.back()));
}

TEST_F(Journal, AFullDiskFailsTheCommitWholeAndTheNextOneSucceeds) {
  auto engine = writer("engine");
  put(*engine, "issues", "run", "before");
  const auto size = fs::file_size(segments("engine").at(0));
  struct rlimit old {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  auto* handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit tight { size + 1000, old.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  const std::vector<core::OutRecord> big = {record("issues", "run", std::string(5000, 'x'))};
  const auto refused = engine->commit(big, {});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().retryable());
  EXPECT_EQ(fs::file_size(segments("engine").at(0)), size);
  ASSERT_TRUE(engine->commit(big, {}));
  EXPECT_THAT(texts(*reader({"issues"})), SizeIs(2));
}

TEST_F(Journal, AWaitingReaderWakesBeforeItsPollWouldHaveLooked) {
  auto hook = writer("hook-1");
  auto source = reader({"telemetry"});
  (void)texts(*source);
  std::vector<double> milliseconds_taken;
  for (int i = 0; i < 20; ++i) {
    std::chrono::steady_clock::time_point sent;
    std::thread other([&] {
      std::this_thread::sleep_for(milliseconds{5});  // until the reader waits
      sent = std::chrono::steady_clock::now();
      put(*hook, "telemetry", "run", "x");
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

TEST_F(Journal, AWriterThatAppearsLaterIsReadFromItsBeginning) {
  put(*writer("hook-1"), "telemetry", "run", "first");
  auto source = reader({"telemetry"});
  EXPECT_THAT(texts(*source), ElementsAre("first"));
  put(*writer("hook-2"), "telemetry", "run", "second");
  const auto read = read_records(*source, 1);
  ASSERT_TRUE(read);
  ASSERT_THAT(*read, SizeIs(1));
  EXPECT_EQ((*read)[0].value, "second");
  EXPECT_EQ((*read)[0].stream, "hook-2");
}

TEST_F(Journal, ASegmentWhoseHeaderIsNotWrittenYetIsWaitedFor) {
  put(*writer("hook-1"), "telemetry", "run", "first");
  const std::string made = segments("hook-1").at(0);
  const std::string late = directory_ + "/hook-2/" + ingest::segment_name(0);
  fs::create_directory(directory_ + "/hook-2");
  std::ofstream(late).flush();  // created, still empty
  auto source = reader({"telemetry"});
  EXPECT_THAT(texts(*source), ElementsAre("first"));
  fs::copy_file(made, late, fs::copy_options::overwrite_existing);
  const auto read = read_records(*source, 1);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_THAT(*read, SizeIs(1));
  EXPECT_EQ((*read)[0].stream, "hook-2");
}

TEST_F(Journal, RecordsOfOtherTopicsMoveThePositionWithoutBeingRead) {
  auto hook = writer("hook-1");
  put(*hook, "telemetry", "run", std::string(300'000, 'x'));
  put(*hook, "telemetry", "run", "small");
  put(*hook, "commands", "run/stop", "stop");
  put(*hook, "telemetry", "run", std::string(300'000, 'x'));
  auto source = reader({"commands"});
  EXPECT_THAT(texts(*source), ElementsAre("stop"));
  EXPECT_EQ(source->positions().at(0).next, 4);
}

}  // namespace
}  // namespace tocsin::tests
