// What stands on the page of a link: pure.
#pragma once

#include <string>
#include <vector>

namespace tocsin::app {

struct LinkPage {
  std::string title;               // "Acknowledge this incident?"
  std::vector<std::string> lines;  // a paragraph each
  std::vector<std::string> list;   // below them
  std::string button;              // of the form; empty: there is none
};
/// HTML that needs no script. Nothing of the link stands in it: the form goes to its own address.
std::string link_page_html(const LinkPage& page);
/// Of /act.css, which it links.
std::string_view link_page_style();

}  // namespace tocsin::app
