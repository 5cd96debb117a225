// The examples of the pages are configurations that load.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

class ActionPage : public ::testing::TestWithParam<std::string> {};

TEST_P(ActionPage, HasAnExampleThatLoadsAndAPlaceForItsTable) {
  std::ifstream file("docs/actions/" + GetParam() + ".md");
  std::stringstream content;
  content << file.rdbuf();
  const std::string page = content.str();
  const std::size_t begin = page.find("```yaml\n");
  ASSERT_NE(begin, std::string::npos);
  const std::size_t end = page.find("```", begin + 8);
  // Without the transport that an example may need: this room reads receivers.
  const std::string example = page.substr(begin + 8, end - begin - 8);
  const auto loaded = testing_support::load(example.substr(example.find("receivers:")));
  EXPECT_EQ(loaded.errors, "");
  EXPECT_EQ(loaded.receivers.integrations.at(0).type, GetParam());
  EXPECT_NE(page.find("<!-- config:begin -->"), std::string::npos);
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& descriptor : builtin_actions()) out.emplace_back(descriptor.name);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Each, ActionPage, ::testing::ValuesIn(names()),
                         [](const auto& page) { return page.param; });

}  // namespace
}  // namespace tocsin::actions
