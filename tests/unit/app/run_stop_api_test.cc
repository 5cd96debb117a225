// A person's stop by /api/v1, over a journal; the token of a server that only its machine reaches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "app/serve/local_token.h"
#include "tests/unit/app/api_fixture.h"

namespace tocsin::app {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kStopper = "0123456789-the-guard";

class RunStopApiTest : public ApiTest {
 protected:
  void write_records(const std::vector<core::OutRecord>& records) {
    ingest::PublisherOptions options;
    options.writer = "test";
    options.durable = true;
    auto publisher = transport_->publisher(options);
    ASSERT_TRUE(publisher);
    for (const core::OutRecord& record : records) ASSERT_TRUE((*publisher)->publish(record));
    ASSERT_TRUE((*publisher)->flush(std::chrono::seconds(10)));
  }
  core::JobEvent heard_run(std::uint32_t attempt, core::JobPhase phase, std::string outcome = "") {
    core::JobEvent out;
    out.phase = phase;
    out.run.uid = core::run_uid_for("digits", "one");
    out.run.attempt = attempt;
    out.run.job = "digits";
    out.time = clock_.now();
    out.started_at = clock_.now();
    out.world_size = 1;
    out.step = 12;
    out.outcome = std::move(outcome);
    out.launch = {{"worker_0", "launch-1"}};
    return out;
  }
  Told stop_it(const std::string& body, const std::string& query = "",
               std::string_view token = kStopper) {
    const std::string path =
        "/api/v1/runs/" + core::to_text(core::run_uid_for("digits", "one")) + "/stop";
    return ask("POST", path, query, body, token);
  }
  /// Asks until the view has read what was written.
  Told stop_until(int status, const std::string& body, const std::string& query = "") {
    Told out;
    for (int i = 0; i < 500; ++i) {
      out = stop_it(body, query);
      if (out.status == status) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return out;
  }
};

TEST_F(RunStopApiTest, IsAskedOnceOfTheAttemptThatIsMeant) {
  write_records({ingest::encode_registry(heard_run(2, core::JobPhase::heartbeat), "lab")});
  const std::string order = R"({"attempt": 2, "reason": "the data is wrong"})";
  const Told tried = stop_until(200, order, "dry_run=true");
  ASSERT_EQ(tried.status, 200) << tried.text;
  EXPECT_EQ(tried.json["state"], "dry_run");
  EXPECT_EQ(ask("GET", "/api/v1/stops").json["items"].size(), 0u) << "nothing was written";
  EXPECT_EQ(stop_it(order, "", "0123456789-the-shift").status, 403) << "an operator may not";

  const Told older = stop_it(R"({"attempt": 1, "reason": "x"})");
  EXPECT_EQ(older.status, 409);
  EXPECT_THAT(older.text, HasSubstr("attempt 1 of digits"));
  EXPECT_THAT(older.text, HasSubstr("is not the newest: that is 2"));

  const Told asked = stop_it(order);
  ASSERT_EQ(asked.status, 202) << asked.text;
  Json stops;
  for (int i = 0; i < 500; ++i) {
    stops = ask("GET", "/api/v1/stops").json["items"];
    if (stops.size() == 1) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_EQ(stops.size(), 1u);
  EXPECT_EQ(stops[0]["command_id"], asked.json["command_id"]);
  EXPECT_EQ(stops[0]["requested_by"], "guard");
  EXPECT_EQ(stops[0]["args"]["mode"], "checkpoint_then_stop");
  const Told again = stop_it(order);
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.json["state"], "under_way");

  write_records({ingest::encode_registry(heard_run(2, core::JobPhase::ended, "completed"), "lab")});
  const Told late = stop_until(409, order);
  EXPECT_EQ(late.status, 409);
  EXPECT_THAT(late.text, HasSubstr("has ended already: completed"));
}

// One rank has heard of it, the other refuses: nobody obeys, so it is asked again.
TEST_F(RunStopApiTest, IsAskedAgainWhereNobodyObeys) {
  core::JobEvent run = heard_run(1, core::JobPhase::heartbeat);
  run.world_size = 2;
  run.step_seconds = 0.1;
  write_records({ingest::encode_registry(run, "lab")});
  const std::string order = R"({"attempt": 1, "reason": "x"})";
  const Told first = stop_until(202, order);
  ASSERT_EQ(first.status, 202) << first.text;
  core::Ack heard;
  heard.command_id = first.json["command_id"];
  heard.run = run.run.uid;
  heard.attempt = 1;
  heard.revision = 1;
  heard.action = "stop";
  heard.phase = "received";
  core::Ack refused = heard;
  refused.rank = 1;
  refused.phase = "refused";
  refused.reason = "not_registered";
  write_records({ingest::encode_ack(heard, "lab"), ingest::encode_ack(refused, "lab")});
  const Told again = stop_until(202, order);
  EXPECT_EQ(again.status, 202) << again.text;
}

TEST_F(RunStopApiTest, ABodyThatIsNoneIsNamed) {
  EXPECT_EQ(stop_it(R"({"attempt": 1, "reason": "x"})").status, 404) << "no such run";
  for (const auto& [body, why] : std::vector<std::pair<std::string, std::string>>{
           {R"({"reason": "x"})", "attempt: expected"},
           {R"({"attempt": 1})", "reason: expected"},
           {R"({"attempt": 0, "reason": "x"})", "attempt: expected the number"},
           {R"({"attempt": "1", "reason": "x"})", "attempt: expected the number"},
           {R"({"attempt": 1, "reason": ""})", "reason: expected a text"},
           {R"({"attempt": 1, "reason": "x", "mode": "kill"})", "mode: expected checkpoint"},
           {R"({"attempt": 1, "raeson": "x"})", "did you mean \\\"reason\\\"?"},
           {"[]", "expected an object"}}) {
    const Told told = stop_it(body);
    EXPECT_EQ(told.status, 400) << body;
    EXPECT_THAT(told.text, HasSubstr(why)) << body;
  }
}

TEST(LocalToken, IsMadeOnceForAServerThatOnlyThisMachineReaches) {
  const std::string folder = ::testing::TempDir() + "local-token-" + std::to_string(getpid());
  AccessConfig access;
  const auto made = add_local_token(access, "127.0.0.1:9760", folder);
  ASSERT_TRUE(made);
  EXPECT_EQ(*made, folder + "/page-token");
  ASSERT_EQ(access.tokens.size(), 1u);
  EXPECT_EQ(access.tokens[0].role, ApiRole::admin);
  const std::string token = *access.tokens[0].token.reveal();
  EXPECT_GE(token.size(), 50u);
  struct stat found {};
  ASSERT_EQ(stat(made->c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0600U);

  AccessConfig second;
  ASSERT_TRUE(add_local_token(second, "localhost:9760", folder));
  EXPECT_TRUE(second.tokens.empty()) << "a name may lead anywhere";
  ASSERT_TRUE(add_local_token(second, "[::1]:9760", folder));
  EXPECT_EQ(*second.tokens.at(0).token.reveal(), token) << "a restart keeps it";
  const auto needless = add_local_token(second, "127.0.0.1:9760", folder);
  EXPECT_TRUE(needless && needless->empty()) << "the configuration has tokens";
  AccessConfig open;
  const auto beyond = add_local_token(open, "0.0.0.0:9760", folder);
  EXPECT_TRUE(beyond && beyond->empty() && open.tokens.empty());

  std::ofstream(folder + "/page-token", std::ios::trunc) << "short\n";
  ASSERT_TRUE(add_local_token(open, "127.0.0.1:9760", folder));
  EXPECT_GE(open.tokens.at(0).token.reveal()->size(), 50u) << "one that opens nothing is replaced";
  AccessConfig barred;
  EXPECT_FALSE(add_local_token(barred, "127.0.0.1:9760", "/proc/none"));
  EXPECT_TRUE(barred.tokens.empty());
}

}  // namespace
}  // namespace tocsin::app
