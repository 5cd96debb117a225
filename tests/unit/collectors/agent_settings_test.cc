// What a node's agent can be told while it runs: read, written and put over its own file.
#include "collectors/node/agent_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/json.h"

namespace tocsin::collectors {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

core::Result<AgentSettings> told(const std::string& json) {
  const auto value = core::parse_json(json, 4096);
  EXPECT_TRUE(value) << json;
  return read_agent_settings(*value);
}

std::string refusal_of(const std::string& json) {
  const auto read = told(json);
  return read ? "it was read" : read.error().message;
}

TEST(AgentSettings, BothMayBeMissing) {
  EXPECT_TRUE(told("{}")->empty());
  EXPECT_TRUE(told("null")->empty());
  EXPECT_TRUE(told(R"({"interval":null,"collectors":null})")->empty());
  const auto paced = told(R"({"interval":"100ms"})");
  EXPECT_EQ(paced->interval, 100ms);
  EXPECT_FALSE(paced->collectors);
  const auto chosen = told(R"({"collectors":["gpu","cpu","gpu"]})");
  EXPECT_FALSE(chosen->interval);
  EXPECT_THAT(*chosen->collectors, ElementsAre("gpu", "cpu"));
}

TEST(AgentSettings, EndsOfTheRange) {
  EXPECT_EQ(told(R"({"interval":"1m"})")->interval, 1min);
  for (const char* wrong : {"\"99ms\"", "\"61s\"", "\"fast\"", "\"-1s\"", "500", "true"}) {
    EXPECT_THAT(refusal_of(std::string(R"({"interval":)") + wrong + "}"),
                HasSubstr("interval: expected a time from 100ms to 1m"))
        << wrong;
  }
}

TEST(AgentSettings, WhatIsWrongIsNamedWithTheNearestName) {
  EXPECT_EQ(refusal_of(R"({"collectors":["cpu","gpuu"]})"),
            "collectors: no collector is called \"gpuu\"; did you mean \"gpu\"?");
  EXPECT_EQ(refusal_of(R"({"collectors":[]})"), "collectors: expected a list of at least one name");
  EXPECT_EQ(refusal_of(R"({"collectors":"cpu"})"),
            "collectors: expected a list of at least one name");
  EXPECT_EQ(refusal_of(R"({"collectors":[7]})"), "collectors: expected names");
  EXPECT_EQ(refusal_of(R"({"intervall":"1s"})"),
            "unknown field \"intervall\"; did you mean \"interval\"?");
  EXPECT_EQ(refusal_of("[1]"), "expected an object");
}

TEST(AgentSettings, IsReadAsItIsWritten) {
  AgentSettings settings;
  for (int both = 0; both < 4; ++both) {
    settings.interval = both % 2 == 1 ? std::optional<core::Duration>(1500ms) : std::nullopt;
    settings.collectors.reset();
    if (both >= 2) settings.collectors = {"disk", "cpu"};
    EXPECT_EQ(*read_agent_settings(agent_settings_value(settings)), settings) << both;
  }
}

TEST(AgentSettings, WhatIsNotSaidStaysAsTheFileHasIt) {
  Config file;
  file.interval = 2s;
  file.collectors = {"cpu"};
  file.node = "n7";
  EXPECT_EQ(sampling_words(with_settings(file, {})), "cpu every 2s");
  EXPECT_EQ(sampling_words(with_settings(file, {100ms, {}})), "cpu every 100ms");
  const Config changed = with_settings(file, {{}, {{"cpu", "memory", "gpu"}}});
  EXPECT_EQ(sampling_words(changed), "cpu, memory and gpu every 2s");
  EXPECT_EQ(changed.node, "n7");
}

}  // namespace
}  // namespace tocsin::collectors
