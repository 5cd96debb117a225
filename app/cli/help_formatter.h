// How the help of each command is laid out.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace tocsin::app {

/// CLI11's layout with shorter placeholders: a noun and, in braces, its allowed values. Which options
/// need or exclude each other stands in their texts and in the error, not before every text.
class HelpFormatter : public CLI::Formatter {
 public:
  [[nodiscard]] std::string make_option_opts(const CLI::Option* option) const override;
  /// Without the empty line that CLI11 writes for a group of hidden options.
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
};

}  // namespace tocsin::app
