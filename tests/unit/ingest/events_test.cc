// Events there and back, as the published names, from other producers, and refused ones.
#include "ingest/events/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/record_fixture.h"
#include "tests/unit/ingest/event_fixture.h"

namespace tocsin::ingest {
namespace {

using namespace fixture;
using nlohmann::json;
using testing::HasSubstr;

constexpr std::string_view kRun = "4e3046d4-8c1f-5278-82e3-ea3595bc5999";

core::Issue issue_of(const core::OutRecord& record) {
  const auto decoded = decode_event(view_of(record));
  EXPECT_TRUE(decoded) << decoded.error().message;
  if (!decoded) return {};
  return std::get<core::Issue>(decoded->event);
}

std::string refusal(const core::OutRecord& record) {
  const auto decoded = decode_event(view_of(record));
  return decoded ? "accepted" : decoded.error().message;
}

TEST(IssueEvent, HasTheEnvelopeOfThePage) {
  const core::OutRecord record = encode_issue(full_issue());
  EXPECT_EQ(record.topic, "issues");
  EXPECT_EQ(record.key, kRun);
  EXPECT_EQ(header_of(record, "content-type"), "application/json");
  EXPECT_EQ(header_of(record, "ce_specversion"), "1.0");
  EXPECT_EQ(header_of(record, "ce_type"), "dev.tocsin.issue.v1");
  EXPECT_EQ(header_of(record, "ce_source"), "/c1/rules/exploding_tensor");
  EXPECT_EQ(header_of(record, "ce_id"), "iss_6c5duorosylmw5zjzjdy55lrk5");
  EXPECT_EQ(header_of(record, "ce_time"), "2026-01-02T03:04:05.678000001Z");
  EXPECT_EQ(header_of(record, "ce_subject"), kRun);
  EXPECT_EQ(header_of(record, "ce_sequence"), "00000000000000000042");
  EXPECT_EQ(header_of(record, "ce_severitytext"), "FATAL");
  EXPECT_EQ(header_of(record, "ce_severitynumber"), "21");
  EXPECT_THAT(std::string(header_of(record, "ce_dataschema")), HasSubstr("issue.v1"));
}

TEST(IssueEvent, HasTheDataOfThePage) {
  const json data = json::parse(*encode_issue(full_issue()).value);
  EXPECT_EQ(data["status"], "resolved");
  EXPECT_EQ(data["labels"]["severity"], "critical");
  EXPECT_EQ(data["annotations"]["recommendation"], "lower the learning rate");
  EXPECT_EQ(data["starts_at"], "2026-01-02T03:04:05.677999993Z");
  EXPECT_EQ(data["expiry"], "explicit");
  EXPECT_EQ(data["resolution"], "job_ended");
  EXPECT_EQ(data["run"]["uid"], kRun);
  EXPECT_EQ(data["run"]["ref"]["pid"], 4711);
  EXPECT_EQ(data["mode"], "eval");
  const json& evidence = data["evidence"];
  EXPECT_EQ(evidence["observed"], (json{{"name", "l2"}, {"value", "Infinity"}}));
  EXPECT_EQ(evidence["operator"], ">=");
  EXPECT_EQ(evidence["tensor"]["shape"], (json{32, 3, 3, 3}));
  EXPECT_EQ(evidence["tensor"]["dtype"], "bf16");
  EXPECT_EQ(evidence["window"]["missing_ranks"], (json{1, 3}));
  EXPECT_EQ(evidence["parameters"]["only_nan"], (json{{"value", false}, {"origin", "default"}}));
  EXPECT_EQ(evidence["affected"]["worst"][1]["value"], "NaN");
  EXPECT_EQ(evidence["data_refs"][0]["last"], 8813);
  EXPECT_EQ(data["stages"]["measured_at"], "2026-01-02T03:04:05.677999900Z");
}

TEST(IssueEvent, ComesBackWhole) {
  const core::Issue issue = full_issue();
  const core::Issue back = issue_of(encode_issue(issue));
  EXPECT_EQ(issue_json(back), issue_json(issue));
  EXPECT_EQ(back.event_id, issue.event_id);
  EXPECT_EQ(back.source, issue.source);
  EXPECT_EQ(back.sequence, issue.sequence);
  EXPECT_EQ(back.time, issue.time);
  EXPECT_EQ(back.labels, issue.labels);
  EXPECT_EQ(back.severity, core::Severity::critical);
  EXPECT_EQ(back.measured_at, issue.measured_at);
  EXPECT_EQ(back.evidence.values, issue.evidence.values);
  EXPECT_EQ(back.evidence.window.first_time, issue.evidence.window.first_time);
  EXPECT_EQ(back.run.ref, issue.run.ref);
}

TEST(IssueEvent, AnEmptyIssueComesBackAsEmptyAsItWas) {
  core::Issue issue;
  issue.event_id = "iss_1";
  issue.rule = "r";
  issue.labels = {{"team", "nlp"}};
  const core::Issue back = issue_of(encode_issue(issue));
  EXPECT_EQ(back.labels, issue.labels);
  EXPECT_EQ(back.source, "/rules/r");
  EXPECT_TRUE(back.run.uid.nil());
  EXPECT_FALSE(back.step || back.mode || back.epoch || back.ends_at || back.evidence.tensor);
  EXPECT_EQ(back.resolution, core::Resolution::none);
}

TEST(IssueEvent, LabelsAreNeverAddedNeitherByAnEventNorByTheOutbox) {
  core::Issue issue;
  issue.event_id = "iss_1";
  issue.source = "/mine";
  issue.rule = "r";
  issue.severity = core::Severity::critical;
  issue.labels = {{"alertname", "Down"}, {"kind", "x"}};
  core::Notification outbox;
  outbox.notification_id = outbox.integration = "n";
  outbox.issues = {{"k", 1, issue, std::nullopt}};
  const auto record = encode_notification(outbox);
  const auto told = decode_notification(view_of(record));
  ASSERT_TRUE(told) << told.error().message;
  for (const core::Issue& back : {issue_of(encode_issue(issue)), told->issues.at(0).issue}) {
    EXPECT_EQ(back.labels, issue.labels);
    EXPECT_EQ(core::issue_key(back.labels), core::issue_key(issue.labels));
    EXPECT_EQ(back.rule, "r");
    EXPECT_EQ(back.severity, core::Severity::critical) << "carried by a field";
    EXPECT_EQ(back.kind, "") << "the label is not the field";
  }
}

TEST(RuleStatusEvent, WhatARuleSumsUpIsAnEventPerPeriodAndOneAtTheEnd) {
  core::RuleStatusEvent event;
  event.rule = "overall_system_usage";
  event.previous = event.status = core::RuleState::in_progress;
  event.summary = {{"nodes", std::int64_t{1}}};
  const auto id_at = [&](std::int64_t time) {
    event.time = core::wall_time(time);
    const core::OutRecord record = encode_rule_status(event, "");
    return std::string(header_of(record, "ce_id"));
  };
  const auto first = id_at(60);
  EXPECT_EQ(id_at(60), first) << "the same after a restart";
  EXPECT_NE(id_at(120), first);
  event.previous = event.status = core::RuleState::issues_found;
  EXPECT_EQ(id_at(60), id_at(60));
  EXPECT_NE(id_at(60), id_at(120)) << "what a rule tells while the run goes on";
  event.previous = event.status = core::RuleState::no_issues_found;
  EXPECT_EQ(id_at(60), id_at(120)) << "the end is one";
  event.previous = core::RuleState::in_progress;
  EXPECT_EQ(id_at(60), id_at(120));
}

TEST(IssueEvent, SeverityIsAFieldOnlyWhereTheLabelDoesNotSayIt) {
  EXPECT_FALSE(json::parse(*encode_issue(full_issue()).value).contains("severity"))
      << "the bytes of our own events stay";
}

TEST(IssueEvent, TraceContextTravelsInTheHeadersOfTheEvent) {
  const core::OutRecord record = encode_issue(full_issue());
  EXPECT_EQ(header_of(record, "ce_traceparent"), full_issue().traceparent);
  EXPECT_EQ(header_of(record, "ce_tracestate"), full_issue().tracestate);
  EXPECT_FALSE(json::parse(*record.value).contains("traceparent"));
}

TEST(IssueEvent, AnyTextOfLabelsAndAnnotationsIsValidUtf8Afterwards) {
  EXPECT_TRUE(rc::check([](const std::string& value, const std::string& summary) {
    core::Issue issue;
    issue.event_id = "iss_1";
    issue.rule = "r";
    issue.labels = {{"x", "1"}, {"y", value}};
    issue.summary = summary;
    const core::OutRecord record = encode_issue(issue);
    RC_ASSERT(json::accept(*record.value));
    RC_ASSERT(static_cast<bool>(decode_event(view_of(record))));
  }));
}

/// A binary mode event of a foreign producer.
core::OutRecord foreign(std::string data, std::string type = "dev.tocsin.issue.v1") {
  core::OutRecord out;
  out.topic = "issues";
  out.value = std::move(data);
  out.headers = {{"ce_specversion", "1.0"}, {"ce_id", "1"}, {"ce_source", "/mine"}};
  out.headers.emplace_back("ce_type", std::move(type));
  return out;
}

TEST(ForeignIssue, NeedsStatusAndLabelsAndNothingElse) {
  const auto decoded =
      decode_event(view_of(foreign(R"({"status":"firing","labels":{"rule":"mine","job":"j"}})")));
  ASSERT_TRUE(decoded) << decoded.error().message;
  const auto& issue = std::get<core::Issue>(decoded->event);
  EXPECT_EQ(issue.status, core::IssueStatus::firing);
  EXPECT_EQ(issue.rule, "mine");
  EXPECT_EQ(issue.rule_type, "mine");
  EXPECT_EQ(issue.run.job, "j");
  EXPECT_EQ(issue.severity, core::Severity::warning);
  EXPECT_FALSE(issue.explicit_expiry) << "only producers that resolve say explicit";
  EXPECT_FALSE(decoded->has_starts_at);
  EXPECT_FALSE(decoded->has_sequence);
  EXPECT_FALSE(decoded->envelope.time);
  EXPECT_EQ(decoded->envelope.source, "/mine");
}

TEST(ForeignIssue, ASeverityOutsideTheSetIsKeptAndCountsAsError) {
  const core::Issue issue = issue_of(foreign(R"({"status":"firing","labels":{"severity":"P1"}})"));
  EXPECT_EQ(issue.severity, core::Severity::error);
  EXPECT_EQ(issue.labels.get("severity"), "P1");
}

TEST(ForeignIssue, TheRunIsLookedForInDataThenSubjectThenLabel) {
  const std::string uid(kRun);
  const std::string other = "00000000-0000-4000-8000-000000000001";
  const std::string labels = R"("status":"firing","labels":{"a":"b","run_uid":")" + other + "\"}";
  core::OutRecord record = foreign("{" + labels + R"(,"run":{"uid":")" + uid + "\"}}");
  EXPECT_EQ(core::to_text(issue_of(record).run.uid), uid);
  record = foreign("{" + labels + "}");
  EXPECT_EQ(core::to_text(issue_of(record).run.uid), other);
  record.headers.emplace_back("ce_subject", uid);
  EXPECT_EQ(core::to_text(issue_of(record).run.uid), uid);
  record = foreign("{" + labels + "}");
  record.headers.emplace_back("ce_subject", "my run");
  EXPECT_EQ(core::to_text(issue_of(record).run.uid), other)
      << "a subject that is no UUID is passed over";
}

TEST(ForeignIssue, AnAttemptThatIsNotSaidIsNone) {
  const std::string uid(kRun);
  const std::string labels = R"({"status":"firing","labels":{"run_uid":")" + uid + "\"}";
  EXPECT_EQ(issue_of(foreign(labels + "}")).run.attempt, 0u);
  EXPECT_EQ(issue_of(foreign(labels + R"(,"run":{"uid":")" + uid + "\"}}")).run.attempt, 0u);
  EXPECT_EQ(issue_of(foreign(labels + R"(,"run":{"attempt":3}})")).run.attempt, 3u);
}

TEST(ForeignIssue, AnnotationsAndLinksComeAsTheyAre) {
  const core::Issue issue = issue_of(foreign(
      R"({"status":"firing","labels":{"a":"b"},"generator_url":"https://g/x",
          "annotations":{"summary":"s","value":3,"dashboard":"https://d"}})"));
  EXPECT_EQ(issue.summary, "s");
  EXPECT_EQ(issue.generator_url, "https://g/x");
  EXPECT_EQ(issue.annotations, (std::vector<std::pair<std::string, std::string>>{
                                   {"value", "3"}, {"dashboard", "https://d"}}));
}

TEST(ForeignIssue, EmptyLabelValuesAreAbsentLabels) {
  EXPECT_THAT(refusal(foreign(R"({"status":"firing","labels":{"a":""}})")),
              HasSubstr("at least one"));
}

TEST(ForeignIssue, StructuredModeIsRead) {
  core::OutRecord record;
  record.topic = "issues";
  record.value =
      R"({"specversion":"1.0","type":"dev.tocsin.issue.v1","source":"/x","id":"7","subject":"s",
          "time":"2026-01-02T04:04:05.678+01:00","sequence":"0012","traceparent":"00-ab-cd-01",
          "data":{"status":"resolved","labels":{"a":"b"}}})";
  record.headers = {{"content-type", "Application/CloudEvents+json; charset=UTF-8"}};
  const auto decoded = decode_event(view_of(record));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->envelope.id, "7");
  EXPECT_EQ(decoded->envelope.sequence, 12u);
  EXPECT_EQ(decoded->envelope.traceparent, "00-ab-cd-01");
  EXPECT_EQ(decoded->envelope.time, at());
  EXPECT_EQ(std::get<core::Issue>(decoded->event).status, core::IssueStatus::resolved);
  record.headers.clear();
  EXPECT_TRUE(decode_event(view_of(record))) << "a whole event says so itself";
  EXPECT_TRUE(decode_structured_event(*record.value));
}

TEST(ForeignIssue, ASequenceThatIsNoNumberIsPassedOver) {
  core::OutRecord record = foreign(R"({"status":"firing","labels":{"a":"b"}})");
  record.headers.emplace_back("ce_sequence", "abc");
  const auto decoded = decode_event(view_of(record));
  ASSERT_TRUE(decoded);
  EXPECT_FALSE(decoded->has_sequence);
}

TEST(BadEvent, IsRefusedWithTheReason) {
  const std::string good = R"({"status":"firing","labels":{"a":"b"}})";
  EXPECT_EQ(refusal(foreign(good)), "accepted");
  EXPECT_THAT(refusal(foreign("{")), HasSubstr("data: not JSON"));
  EXPECT_THAT(refusal(foreign("[]")), HasSubstr("expected a JSON object"));
  EXPECT_THAT(refusal(foreign(R"({"labels":{"a":"b"}})")), HasSubstr("status is missing"));
  EXPECT_THAT(refusal(foreign(R"({"status":"on","labels":{"a":"b"}})")),
              HasSubstr("status: expected firing or resolved"));
  EXPECT_THAT(refusal(foreign(R"({"status":"firing"})")), HasSubstr("labels: at least one"));
  EXPECT_THAT(refusal(foreign(R"({"status":"firing","labels":{"a":1}})")),
              HasSubstr("labels: expected an object of texts"));
  EXPECT_THAT(
      refusal(foreign(
          R"({"status":"firing","labels":{"a":"b"},"starts_at":"2026-01-02T00:00:00Z","ends_at":"2026-01-01T00:00:00Z"})")),
      HasSubstr("ends_at is before starts_at"));
  EXPECT_THAT(
      refusal(foreign(
          R"({"status":"firing","labels":{"a":"b"},"evidence":{"observed":{"value":"big"}}})")),
      HasSubstr("evidence.observed.value: expected a number"));
  EXPECT_THAT(refusal(foreign(R"({"status":"firing","labels":{"a":"b"},"run":{"uid":"x"}})")),
              HasSubstr("run.uid: expected a UUID"));
}

TEST(BadEvent, TheEnvelopeIsCheckedFirst) {
  EXPECT_THAT(refusal(foreign("{}", "dev.tocsin.issue.v2")), HasSubstr("dev.tocsin.issue.v2"));
  EXPECT_THAT(refusal(foreign("{}", "")), HasSubstr("attribute type is missing"));
  core::OutRecord record = foreign("{}");
  record.headers = {{"ce_specversion", "0.3"}, {"ce_type", "x"}};
  EXPECT_THAT(refusal(record), HasSubstr("specversion"));
  record.headers = {{"ce_specversion", "1.0"}, {"ce_type", "x"}, {"ce_id", "1"}};
  EXPECT_THAT(refusal(record), HasSubstr("attribute source is missing"));
  record.headers.clear();
  EXPECT_THAT(refusal(record), HasSubstr("no CloudEvent"));
  record.headers = {{"content-type", "application/cloudevents-batch+json"}};
  EXPECT_THAT(refusal(record), HasSubstr("batch"));
  record = foreign("{}");
  record.value.reset();
  EXPECT_THAT(refusal(record), HasSubstr("tombstone"));
}

TEST(EventLimit, TooManyOrTooLongLabelsRefuseTheEvent) {
  const auto with = [](const core::Labels& labels) {
    json given = json::object();
    for (const auto& [name, value] : labels.entries()) given[name] = value;
    return refusal(foreign(json{{"status", "firing"}, {"labels", given}}.dump()));
  };
  core::Labels many{{"rule", "r"}, {"severity", "info"}};
  for (int i = 0; i < 62; ++i) many.set("l" + std::to_string(i), "v");
  EXPECT_EQ(with(many), "accepted");
  many.set("one_more", "v");
  EXPECT_THAT(with(many), HasSubstr("labels: 65, at most 64"));
  EXPECT_EQ(with({{std::string(256, 'n'), "v"}}), "accepted");
  EXPECT_THAT(with({{std::string(257, 'n'), "v"}}), HasSubstr("a name of 257 bytes"));
  EXPECT_EQ(with({{"n", std::string(4096, 'v')}}), "accepted");
  EXPECT_THAT(with({{"n", std::string(4097, 'v')}}), HasSubstr("labels.n: 4097 bytes"));
}

TEST(EventLimit, OurOwnLabelsAreMadeToFitBeforeTheyAreSent) {
  const auto sent = [](const core::Labels& labels) {
    core::Issue issue;
    issue.event_id = "iss_1";
    issue.labels = labels;
    return issue_of(encode_issue(issue)).labels;
  };
  core::Labels many{{"rule", "r"}, {"severity", "info"}};
  for (int i = 0; i < 62; ++i) many.set("l" + std::to_string(i), "v");
  EXPECT_EQ(sent(many), many);
  many.set("a_first_one", "v");
  const core::Labels cut = sent(many);
  EXPECT_EQ(cut.entries().size(), 64U);
  EXPECT_EQ(cut.get("labels_left_out"), "2");
  EXPECT_EQ(cut.get("rule") + cut.get("severity") + cut.get("a_first_one"), "rinfov");
  const core::Labels name = sent({{std::string(257, 'n'), "v"}});
  EXPECT_EQ(name.entries().begin()->first.size(), 256U);
  EXPECT_THAT(name.entries().begin()->first, HasSubstr("n\xE2\x80\xA6#"));
  EXPECT_EQ(sent({{"n", std::string(4097, 'v')}}).get("n").size(), 4096U);
  EXPECT_EQ(sent({{"a\nb", "c\nd"}}), (core::Labels{{"a\xEF\xBF\xBD"
                                                     "b",
                                                     "c\nd"}}));
}

TEST(EventLimit, LongAnnotationsAreCutBetweenCharacters) {
  std::string text;
  while (text.size() < 40'000) text += "ü";
  core::OutRecord record = foreign(
      R"({"status":"firing","labels":{"a":"b"},"annotations":{"summary":"short","description":")" +
      text + "\"}}");
  const auto decoded = decode_event(view_of(record));
  ASSERT_TRUE(decoded) << decoded.error().message;
  const auto& issue = std::get<core::Issue>(decoded->event);
  EXPECT_TRUE(decoded->annotations_cut);
  EXPECT_EQ(issue.summary, "short");
  EXPECT_LE(issue.description.size() + issue.summary.size(), 32u * 1024);
  EXPECT_GT(issue.description.size(), 32'000u);
  EXPECT_TRUE(json::accept("\"" + issue.description + "\"")) << "still UTF-8";
  EXPECT_TRUE(issue.description.ends_with(" … (cut)"));
}

TEST(EventLimit, FurtherAnnotationsCountToo) {
  core::Issue issue = full_issue();
  issue.annotations.assign(1, {"log", std::string(40 * 1024, 'x')});
  const core::Issue back = issue_of(encode_issue(issue));
  EXPECT_EQ(back.summary, issue.summary) << "the longest is cut";
  ASSERT_EQ(back.annotations.size(), 1u);
  EXPECT_LE(back.annotations[0].second.size(), EventLimits{}.annotation_bytes);
  issue.annotations.clear();
  for (int i = 0; i < 400; ++i) {
    issue.annotations.emplace_back(std::to_string(i) + std::string(100, 'n'), "text");
  }
  const core::Issue fewer = issue_of(encode_issue(issue));
  EXPECT_LT(fewer.annotations.size(), 400u) << "names alone are too long: the last ones go";
  EXPECT_EQ(fewer.annotations.front(), issue.annotations.front());
}

TEST(EventLimit, OurOwnLongAnnotationsAreCutBeforeTheyAreSent) {
  core::Issue issue = full_issue();
  issue.description = std::string(100'000, 'x');
  EXPECT_LT(encode_issue(issue).value->size(), 40'000u);
}

TEST(EventLimit, TooLargeEventsAreRefused) {
  EXPECT_THAT(refusal(foreign(R"({"status":"firing","labels":{"a":"b"},"x":")" +
                              std::string(61'440, 'x') + "\"}")),
              HasSubstr("at most 61440"));
}

}  // namespace
}  // namespace tocsin::ingest
