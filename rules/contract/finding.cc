#include "rules/contract/finding.h"

#include "core/visible_text.h"

namespace tocsin::rules {

Finding& Finding::titled(std::string_view what, Verb verb, std::string_view rest) {
  constexpr std::string_view kWords[] = {" is ",   " are ",      " has ",
                                         " have ", " does not ", " do not "};
  title = core::visible_words(what);
  if (title.empty()) title = "(a name without visible characters)";
  title += kWords[static_cast<std::size_t>(verb)];
  title += rest;
  return *this;
}

}  // namespace tocsin::rules
