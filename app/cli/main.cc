// tocsin: the command line. Parses, loads the configuration, hands over; decides nothing.
#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <iostream>

#include "app/cli/command_line.h"
#include "app/cli/suggest.h"
#include "app/process/exit_code.h"

namespace {

using namespace tocsin::app;

int run(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error code of write(), nothing to die of
  std::signal(SIGXFSZ, SIG_IGN);  // so is a limit of files that is reached
  CLI::App app;
  CommandRun work;
  declare_command_line(app, work);

  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  if (const std::string problem = unknown_word(app, words); !problem.empty()) {
    std::cerr << problem << "\n";
    return kUsage;
  }
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    std::cerr << refused(app, words, error) << "\n";
    return kUsage;
  }
  return work();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tocsin: internal error: %s\n", error.what());
    return tocsin::app::kFailed;
  }
}
