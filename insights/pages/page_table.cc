#include "insights/pages/page_table.h"

#include <algorithm>
#include <array>

// The bytes, as insights/pages/embedded.S lays them down.
// NOLINTBEGIN(readability-identifier-naming): symbols of the assembler
extern "C" {
extern const char tocsin_index_html[];
extern const char tocsin_index_html_end[];
extern const char tocsin_app_js[];
extern const char tocsin_app_js_end[];
extern const char tocsin_chunk_js[];
extern const char tocsin_chunk_js_end[];
extern const char tocsin_heavy_js[];
extern const char tocsin_heavy_js_end[];
extern const char tocsin_app_css[];
extern const char tocsin_app_css_end[];
extern const char tocsin_licenses_txt[];
extern const char tocsin_licenses_txt_end[];
}
// NOLINTEND(readability-identifier-naming)

namespace tocsin::insights {
namespace {

std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace

const PageFile* page_file(std::string_view name) {
  static const std::array<PageFile, 6> kFiles{{
      {"index.html", "text/html; charset=utf-8",
       between(static_cast<const char*>(tocsin_index_html), tocsin_index_html_end)},
      {"app.js", "text/javascript; charset=utf-8",
       between(static_cast<const char*>(tocsin_app_js), tocsin_app_js_end)},
      {"chunk.js", "text/javascript; charset=utf-8",
       between(static_cast<const char*>(tocsin_chunk_js), tocsin_chunk_js_end)},
      {"heavy.js", "text/javascript; charset=utf-8",
       between(static_cast<const char*>(tocsin_heavy_js), tocsin_heavy_js_end)},
      {"app.css", "text/css; charset=utf-8",
       between(static_cast<const char*>(tocsin_app_css), tocsin_app_css_end)},
      {"LICENSES.txt", "text/plain; charset=utf-8",
       between(static_cast<const char*>(tocsin_licenses_txt), tocsin_licenses_txt_end)},
  }};
  const auto* found = std::find_if(kFiles.begin(), kFiles.end(),
                                   [&](const PageFile& file) { return file.name == name; });
  return found == kFiles.end() ? nullptr : found;
}

}  // namespace tocsin::insights
