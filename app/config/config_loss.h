// What a configuration held when it was read, and what a later reading of it has lost. A full disk, an
// editor that was killed or a folder that is not mounted leave a file that is valid and says nothing:
// such a file is never meant (docs/configuration.md#reload).
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "config/config.h"

namespace tocsin::app {

struct ConfigFile {
  std::string text;
  std::size_t rules = 0;  // items of `rules` that stand in it
};

struct ConfigContent {
  std::map<std::string, ConfigFile> files;  // by path: the file and those it includes
  /// Sections that are written down with something behind their colon, also `[]` and `{}`.
  std::set<std::string> written;
  std::size_t rules = 0;            // items of `rules` in all files
  std::set<std::string> unmatched;  // included patterns that no file matches, as told
};

/// What these files hold now: `files` as AppConfig names them, the first one includes the others.
ConfigContent read_content(const std::vector<std::string>& files,
                           const config::Environment& environment);

/// One error for each thing that `fresh` has lost of what is in effect. `started`: what the sections
/// are that only a restart changes; `before`: what was read last and found right.
std::vector<config::Diagnostic> find_losses(const ConfigContent& started,
                                            const ConfigContent& before, const ConfigContent& fresh,
                                            const std::string& file);

/// Is `text` the beginning of `before`, cut off behind whole lines? Also a person leaves that who
/// takes out what stands last; who writes in place does for a while.
bool cut_at_a_line(const std::string& before, const std::string& text);

}  // namespace tocsin::app
