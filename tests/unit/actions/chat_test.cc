// What every chat tool does, tool by tool. A new one is a line of kChats, and its own test says what
// is its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing_support;
using nlohmann::json;

struct ChatTool {
  std::string name;
  std::string settings;
  std::size_t limit;  // bytes of a request
};

const std::vector<ChatTool> kChats{
    {"discord", "{url: 'https://discord.com/api/webhooks/1/canary-token'}", 4'200},
    {"mattermost", "{url: 'https://chat.example/hooks/canary-token'}", 16'000},
    {"msteams", "{url: 'https://flows.example/workflows/canary-token'}", 14'000},
    {"ntfy", "{topic: canary-token}", 4'200},
    {"slack", "{url: 'https://hooks.slack.com/services/T/B/canary-token'}", 16'000},
    {"telegram", "{bot_token: '1:canary-token', chat_id: '-100200'}", 4'200},
};

class EachChat : public ::testing::TestWithParam<ChatTool> {
 protected:
  std::string posted(const core::Notification& notification) {
    const auto action = bench.make(GetParam().name, GetParam().settings);
    answered();
    EXPECT_EQ(deliver(*action, notification).outcome, core::OutcomeClass::delivered);
    return bench.http.requests.back().body;
  }
  void answered(int status = 200, std::string body = "") {
    if (body.empty()) body = GetParam().name == "slack" ? "ok" : R"({"ok":true})";
    bench.http.answers.push_back({HttpFailure::none, "", {status, {}, std::move(body)}});
  }
  Workbench bench;
};

// Every text in `value`, a line each.
void texts_of(const json& value, std::string& out) {
  if (value.is_string()) out += value.get<std::string>() + "\n";
  for (const auto& one : value) {
    if (value.is_structured()) texts_of(one, out);
  }
}

core::Notification hostile_chat() {
  core::Notification out = stopped_notification();
  core::Issue& issue = out.issues[0].issue;
  issue.summary =
      "<!channel> <@U1> @everyone @here @channel ** __x__ `y` [a](https://evil.example) <b>&";
  issue.labels.set("metric", "@all *loss* <script>");
  issue.recommendation = "```\n# end\n> <https://evil.example|here>";
  return out;
}

core::Notification endless_chat() {
  core::Notification out = stopped_notification();
  core::Issue& issue = out.issues[0].issue;
  issue.description = std::string(50'000, '_');
  issue.recommendation = "Lower the rate. " + std::string(50'000, '<');
  issue.runbook_url = "https://example.com/" + std::string(900, 'r');
  for (int i = 0; i < 60; ++i) {
    out.issues.push_back(sample_issue("layer" + std::to_string(i) + std::string(3'000, '*')));
    out.issues.back().issue.recommendation = std::to_string(i) + std::string(5'000, '"');
  }
  return out;
}

TEST_P(EachChat, SaysTheFindingWhatBecameOfItAndWhatToDo) {
  std::string text;
  texts_of(json::parse(posted(stopped_notification())), text);
  for (const char* part : {"llm", "loss is NaN since step 302", "stopped, checkpoint saved",
                           "loss became NaN at train step 302", "414.pt", "Lower the learning rate",
                           "tocsin issues show iss_6c5duorosylmw5zjzjdy55lrk5"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST_P(EachChat, OfAnEndlessMessageTheFindingStaysAndTheWholeIsInsideTheLimit) {
  const std::string body = posted(endless_chat());
  EXPECT_LE(body.size(), GetParam().limit);
  std::string text;
  texts_of(json::parse(body), text);
  EXPECT_THAT(text, HasSubstr("loss is NaN since step 302"));
  EXPECT_THAT(text, HasSubstr("loss became NaN at train step 302"));
}

core::Notification failed_chat(const std::string& console) {
  core::Notification out = sample_notification();
  core::Issue& issue = out.issues[0].issue;
  issue.evidence.values.emplace_back("console", console);
  return out;
}

TEST_P(EachChat, WhatAFailedProcessSaidLastIsThereLineByLine) {
  std::string text;
  texts_of(
      json::parse(posted(failed_chat("Caused by KeyError: 'x'\nTraceback:\n  train.py:8 in main"))),
      text);
  EXPECT_THAT(text, HasSubstr("Last lines"));
  for (const char* line : {"Caused by KeyError: 'x'", "Traceback:", "\n  train.py:8 in main"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  std::string other;
  texts_of(json::parse(posted(stopped_notification())), other);
  EXPECT_THAT(other, Not(HasSubstr("Last lines")));
}

TEST_P(EachChat, OfManyLinesTheNewestStayAndNoneEndsItsBlock) {
  std::string lines;
  for (int i = 0; i < 400; ++i) lines += "<b> line " + std::to_string(i) + "\n";
  const std::string body = posted(failed_chat(lines + "``` <!channel> @everyone\r\x1b[31m end"));
  EXPECT_LE(body.size(), GetParam().limit);
  std::string text;
  texts_of(json::parse(body), text);
  EXPECT_THAT(text, HasSubstr("line 399"));
  EXPECT_THAT(text, Not(HasSubstr("line 200\n")));
  EXPECT_THAT(text, HasSubstr("\'\'\' "));
  EXPECT_THAT(text, HasSubstr("gradient/conv1.weight holds 17 values"));
}

TEST_P(EachChat, TheShortFormHasTheFinding) {
  auto notification = stopped_notification();
  notification.minimal = true;
  EXPECT_THAT(posted(notification), HasSubstr("loss became NaN at train step 302"));
}

TEST_P(EachChat, NoCredentialIsStoredOrComesBack) {
  const auto action = bench.make(GetParam().name, GetParam().settings);
  EXPECT_THAT(*action->render(stopped_notification()), Not(HasSubstr("canary-token")));
  answered(400, R"({"description": "not with 1:canary-token"})");
  const core::AttemptOutcome out = deliver(*action, stopped_notification());
  EXPECT_NE(out.outcome, core::OutcomeClass::delivered);
  EXPECT_THAT(out.detail, Not(HasSubstr("canary-token")));
}

TEST_P(EachChat, IsPostedAgainAfterTheTimeThatTheToolAsksFor) {
  const auto action = bench.make(GetParam().name, GetParam().settings);
  bench.http.answers.push_back({HttpFailure::none, "", {429, {{"retry-after", "7"}}, "{}"}});
  const core::AttemptOutcome out = deliver(*action, stopped_notification());
  EXPECT_EQ(out.outcome, core::OutcomeClass::throttled);
  EXPECT_EQ(out.retry_after, core::Duration(7s));
}

// As the person has it before them: TOCSIN_WRITE_GOLDEN=1 writes the file anew.
TEST_P(EachChat, IsWrittenAsItWas) {
  std::string written;
  for (const auto& [name, notification] :
       {std::pair<std::string, core::Notification>{"stopped", stopped_notification()},
        {"resolved", sample_notification("ntf_two", core::NotificationKind::close)},
        {"hostile", hostile_chat()}}) {
    written += "=== " + name + "\n" + json::parse(posted(notification)).dump(1) + "\n";
  }
  const std::string path = "tests/data/messages/" + GetParam().name + ".txt";
  if (std::getenv("TOCSIN_WRITE_GOLDEN") != nullptr)
    std::ofstream(path, std::ios::binary) << written;
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  EXPECT_EQ(content.str(), written);
}

INSTANTIATE_TEST_SUITE_P(Of, EachChat, ::testing::ValuesIn(kChats),
                         [](const auto& tool) { return tool.param.name; });

}  // namespace
}  // namespace tocsin::actions
