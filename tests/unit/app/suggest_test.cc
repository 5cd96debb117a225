// Mistyped commands and options.
#include <gtest/gtest.h>

#include "app/suggest.h"

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
