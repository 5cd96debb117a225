// Reading YAML into structs: every error at its place, with what was expected and the nearest name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"

namespace tocsin::config {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Sample {
  double ratio = 10;
  std::uint64_t window_steps = 50;
  core::Duration every = 500ms;
  bool armed = false;
  std::string mode = "stop";
  std::vector<std::string> names;
  Bytes limit{1 << 20};
  Secret secret;
  std::vector<core::Parameter> effective;
};

void read(Reader& in, Sample& out) {
  in.optional("ratio", out.ratio, greater_than(1.0), "newest norm over the median");
  in.optional("window_steps", out.window_steps, at_least<std::uint64_t>(3), "history");
  in.optional("every", out.every, positive(), "time between samples");
  in.optional("armed", out.armed, "off = dry run");
  in.optional("mode", out.mode, one_of({"stop", "checkpoint_then_stop", "pause"}), "how");
  in.optional("names", out.names, "which");
  in.optional("limit", out.limit, "how much");
  in.secret("token", out.secret, "credential");
  out.effective = in.effective();
}

std::vector<std::string> problems(
    std::string_view yaml, Sample* out = nullptr,
    const Environment& environment = [](const std::string&) { return std::nullopt; }) {
  Diagnostics diagnostics;
  Sample sample;
  auto document = Document::parse(yaml, "t.yaml", environment, diagnostics);
  if (document) document->read(diagnostics, [&](Reader& in) { read(in, sample); });
  if (out != nullptr) *out = sample;
  std::vector<std::string> texts;
  for (const auto& item : diagnostics.items()) texts.push_back(to_text(item));
  return texts;
}

TEST(Config, AFileInAnotherEncodingIsRefusedAtItsFirstByteThatIsNotUtf8) {
  EXPECT_THAT(problems("ratio: 2.5\nmode: stop # gr\xFC\xDF\n"),
              ElementsAre("t.yaml:2:16: error: not UTF-8: save the file in this encoding"));
}

TEST(Config, FillsTheStructAndKeepsDefaultsForAbsentKeys) {
  Sample sample;
  EXPECT_THAT(problems("ratio: 2.5\nevery: 1m30s\nnames: [a, b]\nlimit: 64MiB\n", &sample),
              IsEmpty());
  EXPECT_EQ(sample.ratio, 2.5);
  EXPECT_EQ(sample.every, 90s);
  EXPECT_THAT(sample.names, ElementsAre("a", "b"));
  EXPECT_EQ(sample.limit.count, 64ULL << 20);
  EXPECT_EQ(sample.window_steps, 50U);
}

TEST(Config, RemembersWhereEachEffectiveValueCameFrom) {
  Sample sample;
  EXPECT_THAT(problems("ratio: 2\n", &sample), IsEmpty());
  ASSERT_GE(sample.effective.size(), 2U);
  EXPECT_EQ(sample.effective[0].name, "ratio");
  EXPECT_EQ(sample.effective[0].origin, "user");
  EXPECT_EQ(core::to_json(sample.effective[0].value), "2");
  EXPECT_EQ(sample.effective[1].origin, "default");
}

TEST(Config, NamesTheNearestKeyForAnUnknownOne) {
  EXPECT_THAT(
      problems("armd: true\n"),
      ElementsAre("t.yaml:1:1: error: unknown key \"armd\"; did you mean \"armed\"? (at armd)"));
}

TEST(Config, ListsTheKnownKeysWhenNoneIsNear) {
  EXPECT_THAT(problems("zzzzzzzzzz: 1\n"),
              ElementsAre(HasSubstr("known: ratio, window_steps, every")));
}

TEST(Config, ReportsEveryProblemInOneGo) {
  EXPECT_THAT(
      problems("ratio: 1\nwindow_steps: 2\nevery: soon\nmode: stp\narmed: maybe\n"),
      ElementsAre(
          HasSubstr("t.yaml:1:8: error: ratio must be > 1, found \"1\""),
          HasSubstr("window_steps must be >= 3"),
          HasSubstr("every: expected a duration such as 500ms, 30s or 1h30m, found \"soon\""),
          HasSubstr("armed: expected true or false"), HasSubstr("did you mean \"stop\"?")));
}

TEST(Config, RefusesADuplicateKeyAndSaysWhereTheFirstStands) {
  EXPECT_THAT(
      problems("ratio: 2\nevery: 1s\nratio: 3\n"),
      ElementsAre("t.yaml:3:1: error: duplicate key \"ratio\"; first given at line 1 (at ratio)"));
}

TEST(Config, ReportsASyntaxErrorAtItsPlace) {
  EXPECT_THAT(problems("ratio: [1, 2\nevery: 1s\n"), ElementsAre(HasSubstr("t.yaml:1:8:")));
}

TEST(Config, RefusesAnAliasThatContainsItself) {
  EXPECT_THAT(problems("names: &a [*a]\n"), ElementsAre(HasSubstr("error: ")));
}

TEST(Config, RefusesAnAliasBomb) {
  std::string yaml = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 8; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    yaml += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) yaml += (j == 0 ? "" : ", ") + before;
    yaml += "]\n";
  }
  EXPECT_THAT(problems(yaml), ElementsAre(HasSubstr("aliases")));
}

TEST(Config, SubstitutesVariablesWithDefaultsAndEscapes) {
  const Environment environment = [](const std::string& name) -> std::optional<std::string> {
    if (name == "RATIO") return "4";
    return std::nullopt;
  };
  Sample sample;
  EXPECT_THAT(problems("ratio: ${RATIO}\nevery: ${EVERY:-2s}\nnames: ['$${RATIO}']\n", &sample,
                       environment),
              IsEmpty());
  EXPECT_EQ(sample.ratio, 4);
  EXPECT_EQ(sample.every, 2s);
  EXPECT_THAT(sample.names, ElementsAre("${RATIO}"));
}

TEST(Config, ReportsAVariableThatIsNotSet) {
  EXPECT_THAT(problems("mode: ${NOWHERE}\n"),
              ::testing::Contains(HasSubstr("environment variable NOWHERE is not set")));
}

TEST(Config, AVariableCannotInjectStructure) {
  const Environment environment = [](const std::string&) {
    return std::optional<std::string>("stop\narmed: true");
  };
  Sample sample;
  problems("mode: ${X}\n", &sample, environment);
  EXPECT_FALSE(sample.armed);
}

TEST(Config, RefusesASecretGivenTwice) {
  EXPECT_THAT(problems("token: a\ntoken_file: b\n"), ElementsAre(HasSubstr("not both")));
}

TEST(Config, SaysWhenAMapWasExpected) {
  Diagnostics diagnostics;
  auto document =
      Document::parse("http: 3\nrules: 4\n", "t.yaml", process_environment(), diagnostics);
  ASSERT_TRUE(document);
  document->read(diagnostics, [](Reader& in) {
    in.section("http", "", [](Reader&) {});
    in.list("rules", "", [](Reader&) {});
  });
  ASSERT_EQ(diagnostics.items().size(), 2U);
  EXPECT_EQ(to_text(diagnostics.items()[0]),
            "t.yaml:1:7: error: http: expected a map, found \"3\" (at http)");
  EXPECT_THAT(diagnostics.items()[1].message, HasSubstr("expected a list"));
}

TEST(Config, ReadsAListOfMapsOrBareTexts) {
  Diagnostics diagnostics;
  auto document = Document::parse("rules:\n  - exploding_tensor\n  - use: overfit\n", "t.yaml",
                                  process_environment(), diagnostics);
  ASSERT_TRUE(document);
  std::vector<std::string> uses;
  document->read(diagnostics, [&](Reader& in) {
    in.list(
        "rules", "", [&](Reader& item) { item.required("use", uses.emplace_back(), "rule"); },
        "use");
  });
  EXPECT_FALSE(diagnostics.has_errors());
  EXPECT_THAT(uses, ElementsAre("exploding_tensor", "overfit"));
}

TEST(Config, InsistsOnExactlyOneOfSeveralKeys) {
  Diagnostics diagnostics;
  auto document = Document::parse("transport: {kafka: {}, journal: d}\n", "t.yaml",
                                  process_environment(), diagnostics);
  ASSERT_TRUE(document);
  document->read(diagnostics, [](Reader& in) {
    in.section("transport", "", [](Reader& transport) {
      transport.exactly_one_of({"kafka", "journal"});
    });
  });
  ASSERT_TRUE(diagnostics.has_errors());
  EXPECT_THAT(diagnostics.items()[0].message, HasSubstr("exactly one of kafka or journal"));
}

}  // namespace
}  // namespace tocsin::config
