// docs/routing.md says what the code does: its example loads and routes as described there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string example() {
  std::ifstream file("docs/routing.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string page = text.str();
  const std::size_t begin = page.find("```yaml\n") + 8;
  return page.substr(begin, page.find("```", begin) - begin);
}

TEST(RoutingPage, TheExampleLoadsAndRoutesAsItSays) {
  Harness h;
  h.integrations.clear();
  const std::vector<std::string> names{"oncall", "page", "metrics-only", "nlp-chat"};
  for (const std::string& name : names) h.integrations.push_back(webhook(name));
  config::Diagnostics diagnostics;
  const auto environment = [](const std::string&) { return std::optional<std::string>(); };
  const auto document = config::Document::parse(example(), "routing.md", environment, diagnostics);
  ASSERT_TRUE(document);
  document->read(diagnostics, [&](config::Reader& root) {
    read_route(root, h.tree, names);
    root.section("router", "", [&](config::Reader& in) { read(in, h.options.limits); });
  });
  std::vector<std::string> problems;
  for (const auto& item : diagnostics.items()) problems.push_back(config::to_text(item));
  EXPECT_THAT(problems, IsEmpty());
  h.open();
  const auto routes = [&](const core::Labels& labels) {
    std::vector<std::string> out;
    for (const auto& leaf : h.router().explain(labels).leaves) out.push_back(leaf.route_id);
    return out;
  };
  EXPECT_THAT(routes({{"severity", "error"}, {"team", "nlp"}}), ElementsAre("page", "nlp"));
  EXPECT_THAT(routes({{"severity", "error"}}), ElementsAre("page"));
  EXPECT_THAT(routes({{"severity", "info"}}), ElementsAre("{}"));
}

TEST(RoutingPage, TheTimeLineIsWhatHappens) {
  Harness h;
  h.open();
  const auto labels = [](const char* name) {
    return core::Labels{{"rule", "nan"}, {"job", "j"}, {"tensor", name}};
  };
  h.fire(labels("a"));
  h.at(20s);
  h.fire(labels("b"));
  h.at(2min);
  h.fire(labels("c"));
  h.at(7min);
  h.resolve(labels("a"));
  h.at(5h);
  h.resolve(labels("b"));
  h.resolve(labels("c"));
  h.at(6h);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 2/0", "new_issues update oncall 3/0",
                                    "some_resolved update oncall 2/1", "repeat repeat oncall 2/0",
                                    "all_resolved close oncall 0/2 over"));
  EXPECT_EQ(h.sent[2].decided_at, kStart + 10min + 30s);
  EXPECT_EQ(h.sent[3].decided_at, kStart + 4h + 10min + 30s);
}

}  // namespace
}  // namespace tocsin::routing
