// Which rules judge a recording: those that are named, those of a file, or the default group.
#pragma once

#include <string>

#include "rules/embedded/embedded.h"

namespace tocsin::app {

/// As given on the command line; empty = not given.
struct RuleChoice {
  std::string config_file;
  std::string rules;   // names of rules and groups, comma between them, or a YAML file
  std::string preset;  // tocsin | original; for names and the default group
};

/// The configuration, if one is named or there, gives engine, labels and rules; `rules` replaces
/// its rules; without either those named by `otherwise` judge. Errors are told on stderr. Returns an exit
/// code: 0, 2 (an unknown name, with the nearest), 3 (a file with errors).
int choose_rules(const RuleChoice& choice, embedded::ChosenRules& out,
                 const char* otherwise = "default");

}  // namespace tocsin::app
