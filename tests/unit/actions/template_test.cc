#include "actions/message/template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "actions/message/json_body.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::HasSubstr;
using namespace testing_support;
using core::ValueList;
using core::ValueMap;

std::string filled(const std::string& text, const core::Value& view, Escape escape = Escape::none) {
  return *Template::parse(text, escape)->render(view);
}

std::string refused(const std::string& text) {
  const auto form = Template::parse(text, Escape::none);
  return form ? "" : form.error().message;
}

TEST(Template, FillsInValuesListsAndWhatIsMissing) {
  const core::Value view = ValueMap{
      {"job", "digits"},
      {"step", 412},
      {"empty", ""},
      {"none", {}},
      {"home", ValueMap{{"value", "x"}}},
      {"issues", ValueList{ValueMap{{"rule", "a"}, {"more", true}}, ValueMap{{"rule", "b"}}}}};
  EXPECT_EQ(filled("{{job}} at {{ step }}{{! no more }}", view), "digits at 412");
  EXPECT_EQ(filled("[{{#issues}}{{rule}}{{#more}},{{/more}}{{/issues}}]", view), "[a,b]");
  EXPECT_EQ(filled("{{#empty}}x{{/empty}}{{^none}}y{{/none}}{{absent}}", view), "y");
  EXPECT_EQ(filled("{{home.value}} {{#home}}{{value}} {{job}}{{/home}}", view), "x x digits");
}

TEST(Template, EscapesByWhereTheTextGoes) {
  const core::Value view = ValueMap{{"x", "<b> \"&'\\\n"}};
  EXPECT_EQ(filled("{{x}}", view, Escape::none), "<b> \"&'\\\n");
  EXPECT_EQ(filled("{{x}}", view, Escape::html), "&lt;b&gt; &quot;&amp;&#39;\\\n");
  EXPECT_EQ(nlohmann::json::parse("\"" + filled("{{x}}", view, Escape::json) + "\""),
            "<b> \"&'\\\n");
}

TEST(Template, AValueIsNeverReadAsATemplate) {
  const core::Value view = ValueMap{{"a", "{{b}}{{>b}}{{#a}}"}, {"b", "secret"}};
  EXPECT_EQ(filled("{{a}}", view), "{{b}}{{>b}}{{#a}}");
}

TEST(Template, TakesNothingThatReachesOutOrGoesAroundTheEscaping) {
  for (const char* text : {"{{>file}}", "{{&raw}}", "{{{raw}}}", "{{=<% %>=}}", "{{a b}}",
                           "{{../a}}", "{{.}}", "{{}}", "{{a..b}}"}) {
    EXPECT_THAT(refused(text), HasSubstr("at byte 0: only {{name}}")) << text;
  }
}

TEST(Template, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(refused("ab {{c"), "at byte 3: {{ without }}");
  EXPECT_EQ(refused("{{#a}}{{/b}}"), "at byte 6: {{/b}} closes no open section");
  EXPECT_EQ(refused("{{#a}}{{^b}}{{/b}}"), "{{#a}} is never closed");
  EXPECT_EQ(Template::parse("{{a}}{{#b.c}}{{/b.c}}", Escape::none)->names(),
            (std::vector<std::string>{"a", "b.c"}));
}

TEST(Template, IsBoundedInTextDepthOutputAndSteps) {
  EXPECT_THAT(refused(std::string(Template::kMaxText + 1, 'x')), HasSubstr("64 KiB"));
  std::string deep;
  for (int i = 0; i < 17; ++i) deep += "{{#a}}";
  EXPECT_THAT(refused(deep), HasSubstr("more than 16 nested sections"));
  ValueList many;
  for (int i = 0; i < 1000; ++i) many.emplace_back(ValueMap{{"x", 1}});
  const core::Value view = ValueMap{{"a", std::move(many)}};
  const auto loops = Template::parse("{{#a}}{{#a}}{{#a}}{{/a}}{{/a}}{{/a}}", Escape::none);
  EXPECT_THAT(loops->render(view).error().message, HasSubstr("too many steps"));
  const auto large =
      Template::parse("{{#a}}{{#a}}" + std::string(100, 'x') + "\n{{/a}}{{/a}}", Escape::none);
  EXPECT_THAT(large->render(view).error().message, HasSubstr("too long"));
}

TEST(JsonBody, IsJsonWhateverTheDataHolds) {
  const auto body = JsonBody::parse(R"({"text": "{{headline}}", "n": {{firing}}, "issues":
      [{{#issues}}{"rule": "{{rule}}", "what": "{{summary}}", "job": "{{labels.job}}"}{{#more}},{{/more}}{{/issues}}]})");
  ASSERT_TRUE(body) << body.error().message;
  auto notification = sample_notification();
  notification.issues.push_back(sample_issue("a\"b\\c\n"));
  const auto json = nlohmann::json::parse(body->fill(notification, {}));
  EXPECT_EQ(json["text"],
            "[error] digits: gradient/conv1.weight holds 17 values that are NaN or infinite since "
            "step 412");
  EXPECT_EQ(json["n"], 1);
  EXPECT_EQ(json["issues"][1]["what"], "a\"b\\c  holds 17 values that are NaN or infinite.");
  EXPECT_EQ(json["issues"][0]["job"], "digits");
}

TEST(JsonBody, IsCheckedBeforeItIsNeeded) {
  EXPECT_THAT(JsonBody::parse(R"({"a": "{{headlin}}"})").error().message,
              HasSubstr("no \"headlin\""));
  EXPECT_THAT(JsonBody::parse(R"({"a": {{headline}}})").error().message, HasSubstr("is no JSON"));
  EXPECT_TRUE(JsonBody::parse(R"({"a": {{#issues}}{{step}}{{/issues}}, "b": "{{labels.x}}"})"));
}

TEST(JsonBody, GivesWayToTheNativeBodyWhereItMakesNoJson) {
  const auto body = JsonBody::parse(R"({"step": {{#issues}}{{step}}{{/issues}}})");
  ASSERT_TRUE(body);
  auto notification = sample_notification();
  EXPECT_EQ(body->fill(notification, {}), R"({"step": 412})");
  notification.issues[0].issue.step.reset();
  EXPECT_EQ(nlohmann::json::parse(body->fill(notification, {}))["status"], "firing");
}

TEST(Webhook, SendsABodyOfOnesOwn) {
  Workbench bench;
  const std::string url = "{url: 'https://example.com/', ";
  deliver(*bench.make("webhook", url + "format: template, body: '{\"text\": \"{{headline}}\"}'}"),
          sample_notification());
  EXPECT_EQ(
      bench.http.requests[0].body,
      R"({"text": "[error] digits: gradient/conv1.weight holds 17 values that are NaN or infinite since step 412"})");
  const auto errors = [&](const std::string& rest) {
    return load("receivers: {a: {webhook: " + url + rest + "}}}").errors;
  };
  EXPECT_THAT(errors("format: template"), HasSubstr("body"));
  EXPECT_THAT(errors("body: '{}'"), HasSubstr("belongs to format: template"));
  EXPECT_THAT(errors("format: template, body: '{{>x}}'"), HasSubstr("at byte 0"));
}

}  // namespace
}  // namespace tocsin::actions
