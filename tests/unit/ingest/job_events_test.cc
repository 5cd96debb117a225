// Events of jobs and of rules' states, there and back.
#include <gtest/gtest.h>

#include <string>

#include "ingest/events/events.h"
#include "tests/support/record_fixture.h"
#include "tests/unit/ingest/event_fixture.h"

namespace tocsin::ingest {
namespace {

using namespace fixture;

TEST(JobEvent, ComesBackOnBothTopicsWithOneId) {
  const core::JobEvent job = full_job();
  const core::OutRecord record = encode_job(job, "c1");
  const core::OutRecord registered = encode_registry(job, "c1");
  EXPECT_EQ(record.topic, "issues");
  EXPECT_EQ(registered.topic, "registry");
  EXPECT_EQ(record.key, "4e3046d4-8c1f-5278-82e3-ea3595bc5999");
  EXPECT_EQ(record.value, registered.value);
  EXPECT_EQ(header_of(record, "ce_id"), header_of(registered, "ce_id"));
  EXPECT_EQ(header_of(record, "ce_id"), core::make_id("job_", {record.key, "2", "ended", "2"}));
  const auto decoded = decode_event(view_of(registered));
  ASSERT_TRUE(decoded) << decoded.error().message;
  const auto& back = std::get<core::JobEvent>(decoded->event);
  EXPECT_EQ(encode_job(back, "c1").value, record.value);
  EXPECT_EQ(back.phase, core::JobPhase::ended);
  EXPECT_EQ(back.exit_code, 77);
  EXPECT_EQ(back.rules, job.rules);
  EXPECT_EQ(back.time, job.time);
  EXPECT_EQ(back.started_at, job.started_at);
}

TEST(RuleStatusEvent, ComesBack) {
  const core::RuleStatusEvent status = full_rule_status();
  const core::OutRecord record = encode_rule_status(status, "");
  EXPECT_EQ(header_of(record, "ce_source"), "/rules/loss_plateau");
  EXPECT_EQ(header_of(record, "ce_id"),
            core::make_id("rul_", {"loss_plateau", record.key, "2", "IssuesFound"}));
  const auto decoded = decode_event(view_of(record));
  ASSERT_TRUE(decoded) << decoded.error().message;
  const auto& back = std::get<core::RuleStatusEvent>(decoded->event);
  EXPECT_EQ(encode_rule_status(back, "").value, record.value);
  EXPECT_EQ(back.status, core::RuleState::issues_found);
  EXPECT_EQ(back.previous, core::RuleState::in_progress);
  EXPECT_EQ(back.evaluations, status.evaluations);
  EXPECT_EQ(core::to_json(back.summary), core::to_json(status.summary));
}

TEST(RuleStatusEvent, ASummaryUnderTheSameStatusIsAnotherEvent) {
  core::RuleStatusEvent status = full_rule_status();
  const auto id = [&] { return std::string(header_of(encode_rule_status(status, ""), "ce_id")); };
  const std::string first = id();
  status.previous = status.status;
  const std::string told = id();
  EXPECT_NE(told, first);
  status.time += std::chrono::seconds(1);
  EXPECT_NE(id(), told) << "what a rule tells while the run goes on";
  status.summary.clear();
  EXPECT_EQ(id(), first);
}

}  // namespace
}  // namespace tocsin::ingest
