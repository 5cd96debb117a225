// Every command: its help, its examples, and the options that all commands have alike.
#include "app/cli/command_line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace tocsin::app {
namespace {

using Commands = std::map<std::string, const CLI::App*>;

/// The whole command line, declared anew: CLI11 keeps what it has parsed.
struct CommandLine {
  CommandLine() { declare_command_line(app, work); }
  CLI::App app;
  CommandRun work;
};

void collect(const CLI::App& app, const std::string& path, Commands& out) {
  out[path] = &app;
  for (const auto* one : app.get_subcommands([](const CLI::App*) { return true; })) {
    collect(*one, path.empty() ? one->get_name() : path + " " + one->get_name(), out);
  }
}

Commands commands_of(const CommandLine& line) {
  Commands out;
  collect(line.app, "", out);
  return out;
}

bool has_commands(const CLI::App& app) {
  return !app.get_subcommands([](const CLI::App*) { return true; }).empty();
}

/// As a shell reads it: quotes group, what redirects or pipes ends it.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> out;
  std::string word;
  bool inside = false;
  char quote = '\0';
  for (const char c : line + " ") {
    if (quote == '\0' && (c == '>' || c == '|')) break;
    if (quote != '\0' ? c == quote : c == '"' || c == '\'') {
      quote = quote != '\0' ? '\0' : c;
      inside = true;
    } else if (quote == '\0' && c == ' ') {
      if (inside) out.push_back(word);
      word.clear();
      inside = false;
    } else {
      word += c;
      inside = true;
    }
  }
  return out;
}

/// The lines below "Examples:".
std::vector<std::string> examples_of(const CLI::App& app) {
  const std::string footer = app.get_footer();
  std::vector<std::string> out;
  std::size_t at = footer.find("Examples:\n");
  if (at == std::string::npos) return out;
  for (at = footer.find('\n', at) + 1; at < footer.size();) {
    const std::size_t end = std::min(footer.find('\n', at), footer.size());
    const std::string line = footer.substr(at, end - at);
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin != std::string::npos) out.push_back(line.substr(begin));
    at = end + 1;
  }
  return out;
}

/// Why these words are refused; empty: they are not.
std::string refusal(std::vector<std::string> words) {
  CommandLine line;
  std::reverse(words.begin(), words.end());
  try {
    line.app.parse(words);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return line.work ? "" : "nothing would run";
}

// An imperative, as far as a machine can tell: one capitalised word that is no article and no question.
bool begins_with_a_verb(const std::string& text) {
  static const std::set<std::string> kNoVerbs{"The", "A",    "An",  "Of",    "What", "Which", "Who",
                                              "For", "Each", "All", "Every", "This", "That",  "In"};
  const std::string word = text.substr(0, text.find(' '));
  return word.size() > 1 && std::isupper(static_cast<unsigned char>(word[0])) != 0 &&
         std::islower(static_cast<unsigned char>(word[1])) != 0 && !kNoVerbs.contains(word);
}

TEST(CommandLine, EveryHelpBeginsWithAVerb) {
  const CommandLine line;
  for (const auto& [path, command] : commands_of(line)) {
    const std::string summary = command->get_description();
    EXPECT_TRUE(begins_with_a_verb(summary)) << path << ": " << summary;
    EXPECT_FALSE(summary.ends_with('.')) << path << ": " << summary;
    for (const auto* option : command->get_options([](const CLI::Option*) { return true; })) {
      if (option->get_group().empty() || option->get_positional()) continue;
      const std::string help = option->get_description();
      EXPECT_TRUE(begins_with_a_verb(help)) << path << " " << option->get_name() << ": " << help;
      EXPECT_FALSE(help.ends_with('.')) << path << " " << option->get_name() << ": " << help;
    }
  }
}

TEST(CommandLine, EveryCommandHasItsOwnExamplesAndExitCodes) {
  const CommandLine line;
  for (const auto& [path, command] : commands_of(line)) {
    const auto examples = examples_of(*command);
    EXPECT_FALSE(examples.empty()) << path;
    const std::string begin = path.empty() ? "tocsin" : "tocsin " + path;
    for (const std::string& example : examples) {
      EXPECT_TRUE(example.starts_with(begin)) << path << ": " << example;
    }
    EXPECT_TRUE(command->get_footer().starts_with("Exit codes:\n")) << path;
    EXPECT_NE(command->get_footer().find("\n  2  "), std::string::npos)
        << path << ": every command refuses wrong usage";
  }
}

TEST(CommandLine, EveryExampleParses) {
  const CommandLine line;
  std::size_t seen = 0;
  for (const auto& [path, command] : commands_of(line)) {
    for (const std::string& example : examples_of(*command)) {
      std::vector<std::string> words = words_of(example);
      ASSERT_EQ(words.front(), "tocsin");
      words.erase(words.begin());
      EXPECT_EQ(refusal(words), "") << example;
      ++seen;
    }
  }
  EXPECT_GT(seen, 50U);
}

TEST(CommandLine, AWrongExampleWouldBeNoticed) {
  EXPECT_NE(refusal({"status", "--form", "./x"}), "");
  EXPECT_NE(refusal({"stop"}), "");
  EXPECT_NE(refusal({"issues"}), "");
}

// Servers log (--log.format json); these print what is for other programs already.
const std::set<std::string> kPrintsNothingToConvert{"up",     "collect",    "route", "rule-worker",
                                                    "schema", "completion", "run"};

TEST(CommandLine, OutputJsonIsTheOneFlagForMachines) {
  const CommandLine line;
  for (const auto& [path, command] : commands_of(line)) {
    if (has_commands(*command) || kPrintsNothingToConvert.contains(path)) continue;
    const CLI::Option* output = command->get_option_no_throw("--output");
    ASSERT_NE(output, nullptr) << path;
    EXPECT_NE(output->get_type_name().find("json"), std::string::npos) << path;
    const CLI::Option* hidden = command->get_option_no_throw("--json");
    ASSERT_NE(hidden, nullptr) << path;
    EXPECT_TRUE(hidden->get_group().empty()) << path << ": a former name is hidden";
  }
}

// What is read stands at --from; the others read a file, the program itself, or nothing.
const std::set<std::string> kReadNoRecords{
    "init",      "check", "topics export", "rules list",  "rules describe",  "schema",
    "version",   "up",    "collect",       "route",       "completion",      "run",
    "send-test", "test",  "routes tree",   "config show", "insights rebuild"};

TEST(CommandLine, FromNamesWhatIsReadEverywhere) {
  const CommandLine line;
  for (const auto& [path, command] : commands_of(line)) {
    if (has_commands(*command) || kReadNoRecords.contains(path)) continue;
    EXPECT_NE(command->get_option_no_throw("--from"), nullptr) << path;
  }
}

TEST(CommandLine, FormerNamesStillWork) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"status", "--out", "./d"},
           {"status", "--json"},
           {"issues", "list", "--out", "kafka://h:1", "-o", "json"},
           {"tail", "--json"},
           {"check", "t.yaml", "--format", "json"},
           {"evaluate", "--from", "./d", "--format", "json"},
           {"replay", "--out", "./d", "--from", "2h", "--to", "1h", "--format", "json"},
           {"topics", "export", "--format", "strimzi"},
           {"sync", "./d", "--to", "kafka://h:1"},
           {"report", "--out", "./d", "digits"},
           {"rule-worker", "r.py", "--out", "./d"},
           {"journal", "salvage", "./a", "./b"}}) {
    EXPECT_EQ(refusal(words), "") << words[0] << " " << words[1];
  }
}

}  // namespace
}  // namespace tocsin::app
