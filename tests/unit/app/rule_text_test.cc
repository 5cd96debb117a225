// A rule as a text that somebody edits in a browser.
#include "app/replay/rule_text.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/json.h"

namespace tocsin::app {
namespace {

std::string problems(const std::string& text) {
  return rule_text_problems(read_rule_text(text).problems);
}
std::string names(const std::string& text) {
  std::string out = problems(text);
  for (const auto& rule : read_rule_text(text).rules.rules)
    out += (out.empty() ? "" : " ") + rule.name;
  return out;
}

TEST(RuleText, IsAListOfRulesOneRuleOrWhatAConfigurationHas) {
  EXPECT_EQ(names("- use: exploding_tensor\n- use: loss_not_decreasing\n"),
            "exploding_tensor loss_not_decreasing");
  EXPECT_EQ(names("- exploding_tensor"), "exploding_tensor");
  EXPECT_EQ(names("[exploding_tensor, loss_not_decreasing]"),
            "exploding_tensor loss_not_decreasing");
  EXPECT_EQ(names("# mine\n\nname: late\nuse: exploding_tensor\nwith:\n  min_hits: 3\n"), "late");
  EXPECT_EQ(names("rules:\r\n  - use: exploding_tensor\r\n"), "exploding_tensor");
  EXPECT_EQ(names("---\nrules:\n- use: exploding_tensor\n"), "exploding_tensor");
  EXPECT_EQ(names("- name: own\n  select: metric(\"loss\")\n  when: last(value) > 3\n"), "own");
}

TEST(RuleText, ProblemsHaveTheLineAndTheColumnOfTheText) {
  EXPECT_EQ(problems("- use: exploding_tensor\n  with:\n    min_hit: 3\n"),
            problems("\n- use: exploding_tensor\n  with:\n    min_hit: 3\n").replace(5, 1, "3"));
  EXPECT_EQ(problems("- use: exploding_tensor\n  with:\n    min_hit: 3\n").substr(0, 18),
            "line 3, column 5: ");
  EXPECT_EQ(problems("use: exploding_tensor\nwith:\n  min_hit: 3\n").substr(0, 18),
            "line 3, column 3: ");
  EXPECT_NE(problems("use: exploding_tensor\nwith:\n  min_hit: 3\n").find("min_hits"),
            std::string::npos);
  EXPECT_EQ(problems("rules:\n- use: exploding_tensr\n").substr(0, 18), "line 2, column 8: ");
  EXPECT_EQ(problems("- use: [\n").substr(0, 5), "line ") << problems("- use: [\n");
  for (const std::string text : {"", "\n# nothing\n", "rules:\n"})
    EXPECT_NE(problems(text).find("expected"), std::string::npos) << problems(text);
}

TEST(RuleText, NothingOfThisMachineIsReadAndNoProgramRuns) {
  const auto folder = std::filesystem::temp_directory_path() / "tocsin-rule-text-test";
  std::filesystem::create_directories(folder);
  const std::string file = (folder / "more.yaml").string();
  std::ofstream(file) << "rules: [{use: loss_not_decreasing}]\n";
  const std::string include = "include: " + file + "\n";
  for (const std::string& text :
       {include + "rules: [exploding_tensor]\n", "rules: [exploding_tensor]\n" + include,
        "rules:\n- use: exploding_tensor\n" + include, "- use: exploding_tensor\n" + include,
        "[exploding_tensor]\n" + include, "- use: exploding_tensor\r" + include,
        "- use: exploding_tensor\n...\n" + include, "- use: exploding_tensor\n---\n" + include,
        "\"\\u0069nclude\": " + file + "\n- use: exploding_tensor\n"}) {
    EXPECT_EQ(names(text).find("loss_not_decreasing"), std::string::npos) << text << names(text);
    EXPECT_NE(problems(text), "") << text;
  }
  std::filesystem::remove_all(folder);
  EXPECT_NE(problems("- use: ${HOME}\n").find("HOME is not set"), std::string::npos);
  EXPECT_NE(problems("- type: python\n  source: /etc/hostname\n").find("is a program"),
            std::string::npos);
  EXPECT_NE(problems("- library: ./rule.so\n").find("is a program"), std::string::npos);
  EXPECT_NE(problems(std::string("- use: a\x1b[0m")).find("control character"), std::string::npos);
}

TEST(RuleText, OfEveryBuiltInRuleReadsBackAsThatRule) {
  for (const auto& descriptor : rules::builtin_rules()) {
    for (const auto preset : {rules::Preset::tocsin, rules::Preset::original}) {
      auto rule = rules::make_rule(descriptor.name, preset);
      if (!rule) continue;
      const auto text = rule_text(*rule);
      ASSERT_TRUE(text.has_value()) << descriptor.name;
      const RuleTextAnswer back = read_rule_text(*text);
      ASSERT_EQ(rule_text_problems(back.problems), "") << *text;
      const rules::RuleSettings& same = back.rules.rules.front();
      ASSERT_EQ(same.parameters.size(), rule->parameters.size()) << *text;
      for (std::size_t at = 0; at < same.parameters.size(); ++at)
        EXPECT_EQ(core::to_json(same.parameters[at].value),
                  core::to_json(rule->parameters[at].value))
            << descriptor.name << " " << same.parameters[at].name;
    }
  }
}

TEST(RuleText, OfARuleOfOnesOwnReadsBack) {
  const std::string own =
      "- name: own\n  select: metric(\"loss\")\n  when: last(value) > 3\n  for: 2\n";
  const auto first = read_rule_text(own);
  ASSERT_EQ(rule_text_problems(first.problems), "");
  const auto text = rule_text(first.rules.rules.front());
  ASSERT_TRUE(text.has_value());
  EXPECT_EQ(names(*text), "own") << *text;
  EXPECT_EQ(read_rule_text(*text).rules.rules.front().params_hash,
            first.rules.rules.front().params_hash);
}

}  // namespace
}  // namespace tocsin::app
