#include "tests/unit/actions/far_side_talk.h"

namespace tocsin::actions {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing_support;
using core::NotificationKind;
using core::OutcomeClass;

constexpr char kGrafanaIrm[] =
    "{url: 'https://oncall.example/integrations/v1/formatted_webhook/canary-token/'}";

TEST(GrafanaIrm, AlertsWhileSomethingFiresAndIsOkWithTheSameUidAtTheEnd) {
  TalkBench bench("grafana_irm", kGrafanaIrm);
  auto open = told_as(NotificationKind::open, "one");
  open.issues[0].issue.generator_url = "https://runs.example/r1";
  open.issues[0].issue.runbook_url = "https://runbook.example";
  EXPECT_EQ(bench.told(open).outcome, OutcomeClass::delivered);
  EXPECT_EQ(bench.http.requests[0].url,
            "https://oncall.example/integrations/v1/formatted_webhook/canary-token/");
  const auto first = bench.last();
  EXPECT_EQ(first["alert_uid"], TalkBench::kHash);
  EXPECT_EQ(first["state"], "alerting");
  EXPECT_EQ(first["severity"], "error");
  EXPECT_EQ(first["job"], "digits");
  EXPECT_EQ(first["link_to_upstream_details"], "https://runs.example/r1");
  EXPECT_THAT(std::string(first["title"]), HasSubstr("digits: gradient/conv1.weight"));
  EXPECT_THAT(std::string(first["message"]), HasSubstr("tocsin ack iss_"));
  EXPECT_THAT(std::string(first["message"]), HasSubstr("Runbook: https://runbook.example"));
  (void)bench.told(told_as(NotificationKind::close, "two"));
  EXPECT_EQ(bench.last()["state"], "ok");
  EXPECT_EQ(bench.last()["alert_uid"], first["alert_uid"]);
  EXPECT_FALSE(bench.last().contains("link_to_upstream_details"));
}

TEST(GrafanaIrm, TheTokenIsNotStoredAndDoesNotComeBack) {
  TalkBench bench("grafana_irm", kGrafanaIrm);
  EXPECT_THAT(*bench.action->render(sample_notification()), Not(HasSubstr("canary")));
  bench.answer(403, "canary-token was not found");
  const auto out = bench.told(sample_notification());
  EXPECT_EQ(out.outcome, OutcomeClass::configuration);
  EXPECT_THAT(out.detail, Not(HasSubstr("canary")));
}

}  // namespace
}  // namespace tocsin::actions
