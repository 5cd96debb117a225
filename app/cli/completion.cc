#include "app/cli/completion.h"

#include <algorithm>
#include <sstream>
#include <vector>

namespace tocsin::app {
namespace {

struct Word {
  std::string name;  // a command, or an option with its dashes
  std::string help;
  std::vector<std::string> values;  // of an option; empty: a file or anything
  bool option = false;
  bool takes_value = false;
};

/// One command: "" is the program itself, "topics plan" a command of a command.
struct CommandWords {
  std::string path;
  std::vector<Word> words;
};

/// First sentence in one line, without what shells read as syntax.
std::string plain(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  for (const char c : {'\'', '"', '`', '$', '\\', '[', ']'}) std::erase(text, c);
  return text;
}

/// CLI11 says "TEXT:{a,b}" of an option with a list.
std::vector<std::string> values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const auto begin = type.find('{');
  const auto end = type.rfind('}');
  if (begin == std::string::npos || end == std::string::npos) return {};
  std::vector<std::string> out;
  std::istringstream list(type.substr(begin + 1, end - begin - 1));
  for (std::string one; std::getline(list, one, ',');) out.push_back(one);
  return out;
}

void collect(const CLI::App& app, const std::string& path, std::vector<CommandWords>& out) {
  CommandWords own{path, {}};
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  for (const auto* command : commands) {
    own.words.push_back({command->get_name(), plain(command->get_description()), {}, false, false});
  }
  for (const auto* option : app.get_options([](const CLI::Option*) { return true; })) {
    if (option->get_group().empty()) continue;  // a former name
    const auto add = [&](const std::string& name) {
      own.words.push_back({name, plain(option->get_description()), values_of(*option), true,
                           option->get_items_expected_max() > 0});
    };
    for (const auto& name : option->get_lnames()) add("--" + name);
    for (const auto& name : option->get_snames()) add("-" + name);
    if (option->get_positional()) {
      for (const auto& value : values_of(*option))
        own.words.push_back({value, "", {}, false, false});
    }
  }
  out.push_back(std::move(own));
  for (const auto* command : commands) {
    collect(*command, path.empty() ? command->get_name() : path + " " + command->get_name(), out);
  }
}

/// Each way to get from a command to one of its own, as patterns of `case`.
std::string steps(const std::vector<CommandWords>& commands) {
  std::string out;
  for (const auto& command : commands) {
    if (command.path.empty()) continue;
    const auto cut = command.path.rfind(' ');
    const bool inner = cut != std::string::npos;
    out += (out.empty() ? "" : "|") + std::string("'") +
           (inner ? command.path.substr(0, cut) : "") + "/" +
           (inner ? command.path.substr(cut + 1) : command.path) + "'";
  }
  return out;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

constexpr std::string_view kRules = "tocsin rules list 2>/dev/null | cut -d' ' -f1";

std::string bash(const std::vector<CommandWords>& commands) {
  std::ostringstream out;
  out << "# bash completion of tocsin; written by `tocsin completion bash`\n_tocsin() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} place= "
         "word words=\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    [[ $word != -- ]] || { COMPREPLY=($(compgen -c -f -- \"$current\")); return; }\n"
         "    case \"$place/$word\" in "
      << steps(commands)
      << ") place=\"${place:+$place }$word\" ;; esac\n  done\n  case \"$place/$previous\" in\n";
  for (const auto& command : commands) {
    for (const auto& word : command.words) {
      if (!word.takes_value) continue;
      out << "    '" << command.path << "/" << word.name << "') COMPREPLY=($(compgen "
          << (word.values.empty() ? "-f" : "-W '" + joined(word.values) + "'")
          << " -- \"$current\")); return ;;\n";
    }
  }
  out << "  esac\n  case $place in\n";
  for (const auto& command : commands) {
    std::vector<std::string> names;
    for (const auto& word : command.words) names.push_back(word.name);
    out << "    '" << command.path << "') words='" << joined(names) << "' ;;\n";
  }
  out << "  esac\n  [[ $place != 'rules describe' ]] || words+=\" $(" << kRules
      << ")\"\n  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "  [[ ${#COMPREPLY[@]} -gt 0 || -z $place ]] || COMPREPLY=($(compgen -f -- "
         "\"$current\"))\n}\n"
         "complete -o filenames -F _tocsin tocsin\n";
  return out.str();
}

std::string zsh(const std::vector<CommandWords>& commands) {
  std::ostringstream out;
  out << "#compdef tocsin\n# zsh completion of tocsin; written by `tocsin completion "
         "zsh`\n_tocsin() {\n"
         "  local place= word previous=${words[CURRENT-1]}\n  local -a found\n"
         "  for word in \"${(@)words[2,CURRENT-1]}\"; do\n"
         "    [[ $word != -- ]] || { _files; return; }\n    case \"$place/$word\" in "
      << steps(commands)
      << ") place=\"${place:+$place }$word\" ;; esac\n  done\n  case \"$place/$previous\" in\n";
  for (const auto& command : commands) {
    for (const auto& word : command.words) {
      if (!word.takes_value) continue;
      out << "    '" << command.path << "/" << word.name << "') "
          << (word.values.empty() ? "_files" : "compadd -- " + joined(word.values))
          << "; return ;;\n";
    }
  }
  out << "  esac\n  case $place in\n";
  for (const auto& command : commands) {
    out << "    '" << command.path << "') found=(";
    for (const auto& word : command.words) out << "'" << word.name << ":" << word.help << "' ";
    out << ") ;;\n";
  }
  out << "  esac\n  [[ $place != 'rules describe' ]] || compadd -- $(" << kRules
      << ")\n  _describe tocsin found\n  [[ -z $place ]] || _files\n}\n"
         "if [[ $funcstack[1] = _tocsin ]]; then _tocsin \"$@\"; else compdef _tocsin tocsin; fi\n";
  return out.str();
}

std::string fish(const std::vector<CommandWords>& commands) {
  std::ostringstream out;
  out << "# fish completion of tocsin; written by `tocsin completion fish`\n"
         "function __tocsin_at --description 'whether the commands before the cursor are these'\n"
         "  set -l place ''\n  for word in (commandline -opc)[2..-1]\n    switch "
         "\"$place/$word\"\n      case ";
  std::string patterns = steps(commands);
  std::replace(patterns.begin(), patterns.end(), '|', ' ');
  out << patterns << "\n        set place (string trim -- \"$place $word\")\n    end\n  end\n"
      << "  test \"$place\" = \"$argv[1]\"\nend\ncomplete -c tocsin -f\n";
  for (const auto& command : commands) {
    const std::string when = "complete -c tocsin -n \"__tocsin_at '" + command.path + "'\"";
    const bool inner =
        std::any_of(commands.begin(), commands.end(), [&](const CommandWords& other) {
          return other.path.starts_with(command.path.empty() ? "" : command.path + " ");
        });
    if (!inner) out << when << " -F\n";
    for (const auto& word : command.words) {
      out << when;
      if (word.option) {
        out << (word.name.starts_with("--") ? " -l " + word.name.substr(2)
                                            : " -s " + word.name.substr(1));
        if (word.takes_value) out << " -r";
        if (!word.values.empty()) out << " -f -a '" << joined(word.values) << "'";
      } else {
        out << " -f -a " << word.name;
      }
      out << " -d '" << word.help << "'\n";
    }
    if (command.path == "rules describe") out << when << " -f -a \"(" << kRules << ")\"\n";
  }
  return out.str();
}

}  // namespace

std::string completion_script(const CLI::App& app, std::string_view shell) {
  std::vector<CommandWords> commands;
  collect(app, "", commands);
  return shell == "zsh" ? zsh(commands) : shell == "fish" ? fish(commands) : bash(commands);
}

}  // namespace tocsin::app
