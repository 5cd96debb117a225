#include "app/cli/suggest.h"

#include <algorithm>

#include "core/text.h"

namespace tocsin::app {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// "--config.file" and "-c" as they are typed.
std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> out;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) out.push_back("--" + name);
    for (const std::string& name : option->get_snames()) out.push_back("-" + name);
  }
  return out;
}

std::string meant(const std::string& word, const std::vector<std::string>& known) {
  if (word.size() < 3) return {};  // every short option is near every other
  std::string near = core::nearest(word, known);
  for (const std::string& name : known) {  // "--confg": the head of "--config.file"
    const std::size_t dot = name.find('.');
    if (!near.empty() || dot == std::string::npos) continue;
    if (!core::nearest(word, {name.substr(0, dot)}).empty()) near = name;
  }
  return near.empty() ? std::string() : "; did you mean \"" + near + "\"?";
}

}  // namespace

std::string unknown_word(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* at = &app;
  std::string path = "tocsin";
  for (const std::string& word : words) {
    if (word == "--") return {};  // what follows is somebody else's
    const auto commands = commands_of(*at);
    const bool number = word.size() > 1 && word[1] >= '0' && word[1] <= '9';
    if (word.starts_with("-") && word.size() > 1 && !number) {
      const std::string name = word.substr(0, word.find('='));
      const auto known = options_of(*at);
      const bool cluster = word[1] != '-' && word.size() > 2;  // "-cFILE"
      if (cluster || std::find(known.begin(), known.end(), name) != known.end()) continue;
      return path + ": no option \"" + name + "\"" + meant(name, known) + " (see " + path +
             " --help)";
    }
    if (commands.empty()) continue;  // an argument
    const auto found = std::find_if(commands.begin(), commands.end(),
                                    [&](const CLI::App* one) { return one->get_name() == word; });
    if (found == commands.end()) {
      std::vector<std::string> names;
      names.reserve(commands.size());
      for (const CLI::App* one : commands) names.push_back(one->get_name());
      return path + ": no command \"" + word + "\"" + meant(word, names) + " (see " + path +
             " --help)";
    }
    at = *found;
    path += " " + word;
  }
  return {};
}

std::string refused(const CLI::App& app, const std::vector<std::string>& words,
                    const CLI::ParseError& error) {
  const CLI::App* at = &app;
  std::string path = "tocsin";
  for (const std::string& word : words) {
    const auto commands = commands_of(*at);
    const auto found = std::find_if(commands.begin(), commands.end(),
                                    [&](const CLI::App* one) { return one->get_name() == word; });
    if (found == commands.end()) continue;
    at = *found;
    path += " " + word;
  }
  std::string problem = error.what();
  if (const auto commands = commands_of(*at); !commands.empty()) {
    problem = "name a subcommand:";
    for (const CLI::App* one : commands) problem += " " + one->get_name();
  }
  return path + ": " + problem + " (see " + path + " --help)";
}

}  // namespace tocsin::app
