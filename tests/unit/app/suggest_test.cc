// Mistyped commands and options.
#include <gtest/gtest.h>

#include "app/cli/suggest.h"

namespace tocsin::app {
namespace {

std::string problem(const std::vector<std::string>& words) {
  CLI::App app{"test"};
  std::string text;
  auto* up = app.add_subcommand("up", "");
  up->add_option("--config.file,-c", text, "");
  auto* topics = app.add_subcommand("topics", "");
  topics->add_subcommand("plan", "")->add_option("name", text, "");
  return unknown_word(app, words);
}

TEST(Suggest, NamesTheNearestCommandAndOption) {
  EXPECT_EQ(problem({"upp"}),
            "tocsin: no command \"upp\"; did you mean \"up\"? (see tocsin --help)");
  EXPECT_EQ(problem({"topics", "pln"}),
            "tocsin topics: no command \"pln\"; did you mean \"plan\"? (see tocsin topics --help)");
  EXPECT_EQ(problem({"up", "--confg.file=x"}),
            "tocsin up: no option \"--confg.file\"; did you mean \"--config.file\"? (see tocsin up "
            "--help)");
  EXPECT_EQ(problem({"up", "--zzzzzzzz"}),
            "tocsin up: no option \"--zzzzzzzz\" (see tocsin up --help)");
}

TEST(Suggest, KnowsTheHeadOfADottedOption) {
  EXPECT_EQ(problem({"up", "--confg=x"}),
            "tocsin up: no option \"--confg\"; did you mean \"--config.file\"? (see tocsin up "
            "--help)");
  EXPECT_EQ(problem({"up", "-V"}), "tocsin up: no option \"-V\" (see tocsin up --help)");
}

std::string refusal(const std::vector<std::string>& words) {
  CLI::App app{"test"};
  std::string text;
  app.require_subcommand(1);
  auto* rules = app.add_subcommand("rules", "");
  rules->require_subcommand(1);
  rules->add_subcommand("list", "");
  rules->add_subcommand("describe", "")->add_option("name", text, "")->required();
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    return refused(app, words, error);
  }
  return "";
}

TEST(Suggest, SaysWhatIsMissingAndWhere) {
  EXPECT_EQ(refusal({"rules"}),
            "tocsin rules: name a subcommand: list describe (see tocsin rules --help)");
  EXPECT_EQ(refusal({"rules", "describe"}),
            "tocsin rules describe: name is required (see tocsin rules describe --help)");
  EXPECT_EQ(refusal({}), "tocsin: name a subcommand: rules (see tocsin --help)");
  EXPECT_EQ(refusal({"rules", "list"}), "");
}

TEST(Suggest, HasNothingToSayOfWhatIsKnownOrSomebodyElses) {
  for (const auto& words : std::vector<std::vector<std::string>>{{},
                                                                 {"--help"},
                                                                 {"up", "-c", "x"},
                                                                 {"up", "-cx"},
                                                                 {"up", "--config.file=x"},
                                                                 {"up", "-c", "-1"},
                                                                 {"topics", "plan", "anything"},
                                                                 {"up", "--", "--train"}}) {
    EXPECT_EQ(problem(words), "");
  }
}

}  // namespace
}  // namespace tocsin::app
