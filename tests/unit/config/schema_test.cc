// The same declaration gives the JSON Schema and the docs table.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "config/config.h"

namespace tocsin::config {
namespace {

using namespace std::chrono_literals;

void declare(Reader& in) {
  double ratio = 10;
  core::Duration every = 500ms;
  std::string mode = "stop";
  in.optional("ratio", ratio, greater_than(1.0), "a ratio");
  in.required("mode", mode, one_of({"stop", "pause"}), "how");
  in.section("http", "listening",
             [&](Reader& http) { http.optional("every", every, positive(), "pace"); });
  in.map("receivers", "named", [](const std::string&, Reader& item) {
    std::string to;
    item.required("to", to, "whom");
  });
}

TEST(Schema, SaysTypesDefaultsRangesAndRequiredKeys) {
  const auto json = nlohmann::json::parse(schema("t", declare));
  EXPECT_EQ(json["$schema"], "http://json-schema.org/draft-07/schema#");
  EXPECT_EQ(json["properties"]["ratio"]["default"], 10);
  EXPECT_EQ(json["properties"]["ratio"]["exclusiveMinimum"], 1);
  EXPECT_EQ(json["properties"]["mode"]["anyOf"][0]["enum"],
            nlohmann::json::array({"stop", "pause"}));
  EXPECT_EQ(json["required"], nlohmann::json::array({"mode"}));
  EXPECT_EQ(json["properties"]["http"]["properties"]["every"]["default"], "500ms");
  EXPECT_EQ(json["additionalProperties"], false);
  EXPECT_TRUE(json["properties"]["receivers"]["additionalProperties"].contains("oneOf"));
}

void declare_more(Reader& in) {
  core::Value grid;
  in.any("every", grid, "pace", R"({"type": "integer"})");
  std::string use;
  in.required("use", use, "which");
  core::Value with;
  in.any("with", with, "how");
  const auto shape = [](const char* key) {
    return [key](Reader& inner) {
      double value = 1;
      inner.optional(key, value, "a number");
    };
  };
  in.depends("with", "use", {{{"a", "A"}, shape("x")}, {{"b"}, shape("y")}});
  in.section("route", "a tree", [](Reader& route) {
    route.list("routes", "below", [](Reader& child) {
      bool go = false;
      child.optional("continue", go, "on");
    });
  });
  in.recurs("route.routes");
}

TEST(Schema, SaysWhatDependsOnAnotherKeyAndWhatRecurs) {
  const auto json = nlohmann::json::parse(schema("t", declare_more));
  EXPECT_EQ(json["properties"]["every"]["type"], (nlohmann::json{"integer", "null"}));
  EXPECT_EQ(json["properties"]["use"]["anyOf"][0]["enum"], nlohmann::json::array({"a", "A", "b"}));
  ASSERT_EQ(json["allOf"].size(), 2U);
  EXPECT_EQ(json["allOf"][0]["if"]["properties"]["use"]["enum"], nlohmann::json::array({"a", "A"}));
  EXPECT_TRUE(json["allOf"][1]["then"]["properties"]["with"]["properties"].contains("y"));
  const auto& routes = json["properties"]["route"]["properties"]["routes"];
  EXPECT_EQ(routes["items"]["properties"]["routes"]["$ref"],
            "#/properties/route/properties/routes");
  EXPECT_EQ(describe(declare_more).size(), 5U);  // what recurs, and what depends, once
}

TEST(Schema, DescribesEveryKeyForTheDocsTable) {
  const auto keys = describe(declare);
  ASSERT_EQ(keys.size(), 5U);
  EXPECT_EQ(keys[0].path, "ratio");
  EXPECT_EQ(keys[0].fallback, "10");
  EXPECT_EQ(keys[0].range, "> 1");
  EXPECT_TRUE(keys[1].required);
  EXPECT_EQ(keys[2].path, "http.every");
  EXPECT_EQ(keys[4].path, "receivers.<name>.to");
}

}  // namespace
}  // namespace tocsin::config
