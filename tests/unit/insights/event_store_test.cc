// The store alone: what a later record takes the place of, what a crash leaves, what is forgotten.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/fields/run_pin.h"
#include "insights/insights.h"
#include "insights/store/database.h"

namespace tocsin::insights {
namespace {

using namespace std::chrono_literals;

const core::WallTime kNoon = core::WallTime(std::chrono::hours(24 * 365 * 50));

class EventStoreTest : public ::testing::Test {
 protected:
  EventStoreTest() {
    folder_ = std::filesystem::temp_directory_path() / ("insights-" + std::to_string(getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~EventStoreTest() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path() const { return folder_ / "insights.db"; }
  std::unique_ptr<EventWriter> writer(const std::string& source = "here") {
    auto made = EventWriter::open(path(), source, moved_);
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return made ? std::move(*made) : nullptr;
  }
  std::unique_ptr<EventReader> reader() {
    auto made = EventReader::open(path());
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return made ? std::move(*made) : nullptr;
  }
  static KeptRecord kept(std::int64_t offset, const std::string& text = "{}") {
    KeptRecord out;
    out.record.topic = "issues";
    out.record.key = "k";
    out.record.value = text;
    out.record.headers = {{"ce_id", "a:b"}, {"ce_type", ""}};
    out.offset = offset;
    out.timestamp = offset;
    return out;
  }
  static core::RunUid run(std::uint8_t last) {
    core::RunUid out;
    out.bytes.back() = last;
    return out;
  }
  static core::Issue issue(const std::string& id, core::IssueStatus status, std::uint8_t of = 1) {
    core::Issue out;
    out.event_id = id;
    out.status = status;
    out.rule = "exploding_tensor";
    out.labels.set("rule", "exploding_tensor");
    out.labels.set("run_uid", core::to_text(run(of)));
    out.severity = core::Severity::error;
    out.summary = "loss became NaN";
    out.step = 187;
    out.time = kNoon;
    out.run.uid = run(of);
    return out;
  }
  static core::JobEvent job(core::JobPhase phase, core::WallTime time, std::uint8_t of = 1) {
    core::JobEvent out;
    out.phase = phase;
    out.run.uid = run(of);
    out.run.job = "digits";
    out.time = time;
    out.step = 5;
    return out;
  }
  static core::Delivery told(const std::string& id, const core::Issue& of, std::uint64_t episode) {
    core::Delivery out;
    out.notification_id = id;
    out.state = core::DeliveryState::delivered;
    out.issues = {{core::issue_key(of.labels), episode, of.event_id}};
    return out;
  }

  std::filesystem::path folder_;
  SetAside moved_;
};

TEST_F(EventStoreTest, ARecordComesBackAsItWas) {
  auto store = writer();
  store->saw(kept(7, std::string("\0{x", 3)), job(core::JobPhase::started, kNoon));
  ASSERT_TRUE(store->commit({}));
  const auto events = reader()->events_of(core::to_text(run(1)));
  ASSERT_EQ(events.size(), 1);
  const core::RecordView view = events[0].view();
  EXPECT_EQ(view.text(), std::string_view("\0{x", 3));
  EXPECT_EQ(view.header("ce_id"), "a:b");
  EXPECT_EQ(view.header("ce_type"), "");
  EXPECT_EQ(view.header("other"), std::nullopt);
  EXPECT_EQ(view.offset, 7);
}

TEST_F(EventStoreTest, AnIssueThatComesAgainIsAnotherEpisode) {
  auto store = writer();
  store->saw(kept(1), issue("iss_1", core::IssueStatus::firing));
  store->saw(kept(2), issue("iss_2", core::IssueStatus::firing));
  store->saw(kept(3), issue("iss_3", core::IssueStatus::resolved));
  store->saw(kept(4), issue("iss_4", core::IssueStatus::firing));
  store->saw(kept(4), issue("iss_4", core::IssueStatus::firing));  // read twice
  ASSERT_TRUE(store->commit({}));
  const auto issues = reader()->issues_of(core::to_text(run(1)));
  ASSERT_EQ(issues.size(), 2);
  EXPECT_EQ(issues[0].ordinal, 1);
  EXPECT_FALSE(issues[0].firing);
  EXPECT_EQ(issues[0].reports, 3);
  EXPECT_TRUE(issues[1].firing);
  EXPECT_EQ(issues[1].reports, 1);
}

TEST_F(EventStoreTest, AnEpisodeIsFoundByTheNumberThatPeopleWereTold) {
  auto store = writer();
  const core::Issue first = issue("iss_1", core::IssueStatus::firing);
  const std::string key = core::issue_key(first.labels);
  store->saw(kept(1), told("ntf_1", first, 41));  // deliveries may be read before issues
  store->saw(kept(2), first);
  store->saw(kept(3), issue("iss_2", core::IssueStatus::resolved));
  store->saw(kept(4), issue("iss_3", core::IssueStatus::firing));
  ASSERT_TRUE(store->commit({}));
  auto ask = reader();
  EXPECT_EQ(ask->issue(key, "41")->event_id, "iss_1");
  EXPECT_EQ(ask->issue(key, "newest")->event_id, "iss_3");
  EXPECT_EQ(ask->issue(key, "2")->event_id, "iss_3");
  EXPECT_FALSE(ask->issue(key, "1"));
  EXPECT_EQ(ask->runs(std::nullopt, 10).size(), 1);  // known by its issue alone
}

TEST_F(EventStoreTest, NobodyIsToldByACommandToTheRun) {
  auto store = writer();
  const core::Issue first = issue("iss_1", core::IssueStatus::firing);
  store->saw(kept(1), job(core::JobPhase::started, kNoon));
  store->saw(kept(2), first);
  core::Delivery stop = told("ntf_1", first, 1);
  stop.type = "stop_training";
  store->saw(kept(3), stop);
  ASSERT_TRUE(store->commit({}));
  EXPECT_EQ(reader()->runs(std::nullopt, 10).at(0).told, 0);
  core::Delivery mail = told("ntf_2", first, 1);
  mail.type = "email";
  store->saw(kept(4), mail);
  ASSERT_TRUE(store->commit({}));
  EXPECT_EQ(reader()->runs(std::nullopt, 10).at(0).told, 1);
}

TEST_F(EventStoreTest, AnEndIsAnEndAndHeartbeatsTakeOneRow) {
  auto store = writer();
  store->saw(kept(1), job(core::JobPhase::started, kNoon));
  for (int i = 0; i < 100; ++i) store->saw(kept(2 + i), job(core::JobPhase::heartbeat, kNoon + 1s));
  core::JobEvent end = job(core::JobPhase::ended, kNoon + 2s);
  end.outcome = "failed";
  store->saw(kept(200), end);
  store->saw(kept(201), job(core::JobPhase::heartbeat, kNoon + 1s));  // late
  ASSERT_TRUE(store->commit({}));
  auto ask = reader();
  const auto line = ask->run(core::to_text(run(1)).substr(0, 6));
  ASSERT_TRUE(line);
  EXPECT_EQ(line->phase, "ended");
  EXPECT_EQ(line->outcome, "failed");
  EXPECT_EQ(ask->events_of(line->uid).size(), 3);
}

TEST_F(EventStoreTest, ARunBeganWithItsFirstAttemptWhateverCameFirst) {
  auto store = writer();
  core::JobEvent second = job(core::JobPhase::started, kNoon + 60s, 1);
  second.run.attempt = 2;
  second.started_at = kNoon + 60s;
  core::JobEvent first = job(core::JobPhase::started, kNoon, 1);
  first.run.attempt = 1;
  first.started_at = kNoon;
  store->saw(kept(1), second);
  store->saw(kept(2), first);
  ASSERT_TRUE(store->commit({}));
  const auto line = reader()->run(core::to_text(run(1)));
  ASSERT_TRUE(line && line->started);
  EXPECT_EQ(
      *line->started,
      std::chrono::duration_cast<std::chrono::microseconds>(kNoon.time_since_epoch()).count());
  EXPECT_EQ(line->attempt, 2);
}

TEST_F(EventStoreTest, WhatIsNotCommittedIsGoneWithItsPositions) {
  {
    auto store = writer();
    store->saw(kept(1), job(core::JobPhase::started, kNoon));
    ASSERT_TRUE(store->commit({{{"issues", 0}, 2}}));
  }
  const pid_t child = fork();
  if (child == 0) {
    SetAside moved;
    auto store = EventWriter::open(path(), "here", moved);
    if (!store) _exit(1);
    (*store)->saw(kept(2), job(core::JobPhase::started, kNoon, 2));
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  auto store = writer();
  EXPECT_EQ(store->positions(), (std::vector<core::Position>{{{"issues", 0}, 2}}));
  EXPECT_EQ(reader()->runs(std::nullopt, 10).size(), 1);
}

TEST_F(EventStoreTest, ASecondWriterIsRefused) {
  auto store = writer();
  const auto other = EventWriter::open(path(), "here", moved_);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, core::Code::unavailable);
}

TEST_F(EventStoreTest, ADamagedFileAndOneOfAnotherPlaceAreBegunAnew) {
  {
    std::ofstream(path()) << "this is no database, and long enough to be taken for one"
                          << std::string(5000, 'x');
  }
  writer()->saw(kept(1), job(core::JobPhase::started, kNoon));
  EXPECT_NE(moved_.why, "");
  EXPECT_TRUE(moved_.damaged);
  EXPECT_TRUE(std::filesystem::exists(path() + ".damaged"));
  {
    auto store = writer();
    store->saw(kept(1), job(core::JobPhase::started, kNoon));
    ASSERT_TRUE(store->commit({{{"issues", 0}, 2}}));
  }
  EXPECT_EQ(writer()->positions().size(), 1);
  EXPECT_EQ(writer("elsewhere")->positions().size(), 0);
}

// Tables as version 1 had them.
void make_old(const std::string& path) {
  auto database = StoreDatabase::open(path, true);
  ASSERT_TRUE(database);
  (*database)->run(
      "CREATE TABLE report(event_id TEXT PRIMARY KEY, key TEXT, ordinal INTEGER) STRICT,"
      " WITHOUT ROWID; CREATE INDEX report_of ON report(key, ordinal);"
      "INSERT INTO report SELECT event_id, key, ordinal FROM report_of_issue;"
      "DROP TABLE report_of_issue; DROP INDEX event_of_run; DROP INDEX event_control;"
      "DROP INDEX event_loose; CREATE INDEX event_run ON event(run, time);"
      "CREATE INDEX event_kind ON event(kind, time); PRAGMA user_version = 1");
  ASSERT_TRUE((*database)->failure());
}

TEST_F(EventStoreTest, AFileOfTheVersionBeforeIsGoneOnWith) {
  const core::Issue first = issue("iss_1", core::IssueStatus::firing);
  {
    auto store = writer();
    store->saw(kept(1), first);
    store->saw(kept(2), told("ntf_1", first, 7));
    ASSERT_TRUE(store->commit({{{"issues", 0}, 3}}));
  }
  make_old(path());
  auto store = writer();
  EXPECT_EQ(moved_.why, "");
  EXPECT_EQ(store->positions(), (std::vector<core::Position>{{{"issues", 0}, 3}}));
  store->saw(kept(1), first);  // read again: it counts once
  store->saw(kept(3), issue("iss_2", core::IssueStatus::firing));
  ASSERT_TRUE(store->commit({{{"issues", 0}, 4}}));
  const auto lines = reader()->issues_of(core::to_text(run(1)), 10);
  ASSERT_EQ(lines.size(), 1);
  EXPECT_EQ(lines[0].reports, 2);
  EXPECT_EQ(lines[0].episode, 7);
  EXPECT_EQ(reader()->events_of(core::to_text(run(1)), 10).size(), 3);
}

TEST_F(EventStoreTest, ARunThatWasForgottenIsHeardOfAnew) {
  auto store = writer();
  store->saw(kept(1), issue("iss_1", core::IssueStatus::firing));
  ASSERT_TRUE(store->commit({}));
  EXPECT_EQ(*store->forget(kNoon + 24h, 1'000'000'000, 10), 1);
  EXPECT_EQ(reader()->runs(std::nullopt, 10).size(), 0);
  store->saw(kept(2), issue("iss_2", core::IssueStatus::firing));
  ASSERT_TRUE(store->commit({}));
  EXPECT_EQ(reader()->runs(std::nullopt, 10).size(), 1);
}

TEST_F(EventStoreTest, RunsAreForgottenWithAllThatBelongsToThem) {
  auto store = writer();
  const core::Issue old = issue("iss_1", core::IssueStatus::firing, 1);
  store->saw(kept(1), job(core::JobPhase::started, kNoon, 1));
  store->saw(kept(2), old);
  store->saw(kept(3), told("ntf_1", old, 1));
  store->saw(kept(4), job(core::JobPhase::started, kNoon + 1h, 2));
  ASSERT_TRUE(store->commit({}));
  EXPECT_EQ(*store->forget(kNoon + 30min, 1'000'000'000, 10), 1);
  auto ask = reader();
  EXPECT_EQ(ask->runs(std::nullopt, 10).size(), 1);
  EXPECT_EQ(ask->size().issues, 0);
  EXPECT_EQ(ask->size().events, 1);
  EXPECT_EQ(*store->forget(kNoon - 1h, 1, 10), 1);  // larger than it may be
}

// The pinned one is the oldest: neither its age nor the size of the file takes it.
TEST_F(EventStoreTest, ASparedRunStaysWithAllThatBelongsToIt) {
  auto store = writer();
  const core::Issue old = issue("iss_1", core::IssueStatus::firing, 1);
  store->saw(kept(1), job(core::JobPhase::started, kNoon, 1));
  store->saw(kept(2), old);
  store->saw(kept(3), told("ntf_1", old, 1));
  store->saw(kept(4), job(core::JobPhase::started, kNoon + 1h, 2));
  store->saw(kept(5), job(core::JobPhase::started, kNoon + 2h, 3));
  ASSERT_TRUE(store->commit({}));
  const std::string uid = core::to_text(old.run.uid);
  const auto events = reader()->events_of(uid).size();
  store->spare({uid});
  EXPECT_EQ(*store->forget(kNoon + 90min, 1'000'000'000, 10), 1);
  EXPECT_EQ(*store->forget(kNoon - 1h, 1, 10), 1) << "larger than it may be";
  auto ask = reader();
  const auto runs = ask->runs(std::nullopt, 10);
  ASSERT_EQ(runs.size(), 1);
  EXPECT_EQ(runs.front().uid, uid);
  EXPECT_EQ(ask->size().issues, 1);
  EXPECT_EQ(ask->events_of(uid).size(), events);
  store->spare({});
  EXPECT_EQ(*store->forget(kNoon + 90min, 1'000'000'000, 10), 1);
  EXPECT_EQ(reader()->size().runs, 0);
}

TEST_F(EventStoreTest, ARunSaysWhoPinnedItUntilThePinIsTakenAway) {
  auto store = writer();
  const core::JobEvent begun = job(core::JobPhase::started, kNoon, 1);
  const std::string uid = core::to_text(begun.run.uid);
  store->saw(kept(1), begun);
  ASSERT_TRUE(store->commit({}));
  EXPECT_FALSE(reader()->run(uid)->pin);
  KeptRecord pin = kept(2);
  pin.record = core::pin_record({uid, "ada", kNoon + 1h, "api"});
  store->saw_control(pin, uid);
  EXPECT_TRUE(store->changed().contains(uid));
  ASSERT_TRUE(store->commit({}));
  const auto line = reader()->run(uid);
  ASSERT_TRUE(line->pin);
  EXPECT_EQ(line->pin->by, "ada");
  EXPECT_EQ(line->pin->at, kNoon + 1h);
  EXPECT_TRUE(reader()->run_list({}).runs.front().pin);
  pin = kept(3);
  pin.record = core::pin_tombstone(uid);
  store->saw_control(pin, uid);
  ASSERT_TRUE(store->commit({}));
  EXPECT_FALSE(reader()->run(uid)->pin);
}

TEST_F(EventStoreTest, PagesFilesAreWhole) {
  ASSERT_NE(page_file("app.js"), nullptr);
  EXPECT_TRUE(page_file("index.html")->bytes.starts_with("<!doctype html>"));
  EXPECT_TRUE(page_file("index.html")->bytes.ends_with("</html>\n"));
  EXPECT_GT(page_file("app.css")->bytes.size(), 1000);
  EXPECT_EQ(page_file("../../etc/passwd"), nullptr);
}

}  // namespace
}  // namespace tocsin::insights
