// The files of the page, built from insights/web and carried by the program (insights/README.md).
#pragma once

#include <string_view>

namespace tocsin::insights {

struct PageFile {
  std::string_view name;  // "app.js"
  std::string_view content_type;
  std::string_view bytes;
};

/// Null: there is no such file.
const PageFile* page_file(std::string_view name);

}  // namespace tocsin::insights
