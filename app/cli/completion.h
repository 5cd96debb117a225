// What a shell completes after `tocsin`, written from the command line's own declaration.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>

namespace tocsin::app {

/// A script for `shell` (bash, zsh or fish): commands, options, and the values of options that have a list.
std::string completion_script(const CLI::App& app, std::string_view shell);

}  // namespace tocsin::app
