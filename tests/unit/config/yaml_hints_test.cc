// A file that is not valid YAML: where the mistake stands, and how to mend it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/config.h"

namespace tocsin::config {
namespace {

std::string problem(const std::string& text) {
  Diagnostics diagnostics;
  const auto none = [](const std::string&) -> std::optional<std::string> { return std::nullopt; };
  const auto document = Document::parse(text, "t.yaml", none, diagnostics);
  return diagnostics.items().empty() ? "" : to_text(diagnostics.items().front());
}

struct Case {
  const char* name;
  const char* text;
  const char* where;  // file, line and column
  const char* remedy;
};

class YamlHints : public ::testing::TestWithParam<Case> {};

TEST_P(YamlHints, NamePlaceAndRemedy) {
  const std::string told = problem(GetParam().text);
  EXPECT_TRUE(
      told.starts_with(std::string("t.yaml:") + GetParam().where + ": error: not valid YAML: "))
      << told;
  EXPECT_NE(told.find(GetParam().remedy), std::string::npos) << told;
}

INSTANTIATE_TEST_SUITE_P(
    Files, YamlHints,
    ::testing::Values(
        Case{"colon", "labels:\n  note: loss: it is NaN\n", "2:13",
             "put the value in quotes: 'loss: it is NaN'"},
        Case{"colon_in_a_list", "a:\n  - when: x > 1: y\n", "2:16", "put the value in quotes"},
        Case{"colon_at_the_end", "a:\n  note: what is it:\nb: 1\n", "2:19",
             "put the value in quotes"},
        Case{"list", "rules: [a, b\nroute: {receiver: x}\n", "1:8", "\"[\" is never closed; add ]"},
        Case{"map", "transport: {journal: ./d\nrules: [a]\n", "1:12",
             "\"{\" is never closed; add }"},
        Case{"inner_map", "receivers:\n  a: {webhook: {url: 'x'}\nrules: []\n", "2:6",
             "\"{\" is never closed"},
        Case{"wrong_pair", "rules: [a, {b: c]\n", "1:12", "\"{\" is never closed; add }"},
        Case{"last_line", "a: 1\nb: [1, 2", "2:4", "\"[\" is never closed"},
        Case{"quote", "a: \"b\nc: d\n", "1:4", "a quote is never closed, so"},
        Case{"single_quote", "m: ['severity=\"error\"]\nb: 1\n", "1:5",
             "a quote is never closed; add '"},
        Case{"tab", "a:\n\tb: 1\n", "2:1", "indent it with spaces"},
        Case{"tab_behind_spaces", "a:\n  b: 1\n  \tc: 2\n", "3:3", "indent it with spaces"},
        Case{"at", "a: @home\n", "1:4", "put it in quotes"},
        Case{"backtick", "a: `x`\n", "1:4", "put it in quotes"},
        Case{"star", "include: *.yaml\n", "1:10", "put it in quotes"},
        Case{"indentation", "a:\n    b: 1\n  c: 2\n", "3:3", "indented alike"},
        Case{"no_blank", "a:\n  b: 1\n  c:2\n  d: 3\n", "3:5", "no space after the colon"}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(YamlHints, ValidFilesSayNothing) {
  for (const char* text :
       {"a: 'b: c'\n", "a: \"[\"\n", "a: it's fine [really\n", "a: \"b \\\" c\"\nd: 'it''s'\n",
        "a: 'b\n  c'\nd: \"e\n  f\"\n", "a: |\n  b: c: d [\n  \"\ne: 1\n",
        "# a comment: with [ brackets\na: 1\n", "a: http://x:80/y\n", "a: {b: 'x}'}\n"}) {
    EXPECT_EQ(problem(text), "") << text;
  }
}

}  // namespace
}  // namespace tocsin::config
