#include "app/cli/help_formatter.h"

#include <utility>

namespace tocsin::app {
namespace {

// "STEPS:POSITIVE" is a noun with a check; "ADDRESS:PORT" is a noun; "FORMAT:{text,json}" lists the values.
std::string placeholder(const std::string& type) {
  for (const char* check : {":POSITIVE", ":INT in "}) {
    if (const std::size_t at = type.find(check); at != std::string::npos) return type.substr(0, at);
  }
  return type;
}

}  // namespace

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (option->get_type_size() == 0) return {};  // a flag
  std::string out = " " + placeholder(option->get_type_name());
  if (option->get_expected_max() == CLI::detail::expected_max_vector_size) out += " ...";
  if (option->get_required()) out += " REQUIRED";
  return out;
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode mode) const {
  std::string out = CLI::Formatter::make_help(app, std::move(name), mode);
  for (std::size_t at = 0; (at = out.find("\n\n\n", at)) != std::string::npos;) out.erase(at, 1);
  return out;
}

}  // namespace tocsin::app
