#include "app/api/link_page_text.h"

#include <string_view>

#include "core/html_text.h"

namespace tocsin::app {

std::string link_page_html(const LinkPage& page) {
  const std::string title = core::html_escaped(page.title);
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"robots\" content=\"noindex\">\n<title>" +
      title + "</title>\n<link rel=\"stylesheet\" href=\"../act.css\">\n</head><body><main>\n<h1>" +
      title + "</h1>\n";
  for (const std::string& line : page.lines) out += "<p>" + core::html_escaped(line) + "</p>\n";
  if (!page.list.empty()) {
    out += "<ul>\n";
    for (const std::string& line : page.list) out += "<li>" + core::html_escaped(line) + "</li>\n";
    out += "</ul>\n";
  }
  if (!page.button.empty()) {
    out +=
        "<form method=\"post\">\n<label>Your name, for those who ask who has it (optional)\n"
        "<input name=\"name\" maxlength=\"80\" autocomplete=\"name\"></label>\n"
        "<button type=\"submit\">" +
        core::html_escaped(page.button) + "</button>\n</form>\n";
  }
  return out + "</main></body></html>\n";
}

std::string_view link_page_style() {
  return R"(:root{color-scheme:light dark}
body{margin:0;padding:16px;background:#fff;color:#1f2328;font:16px/1.5 -apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:40em;margin:0 auto;overflow-wrap:anywhere}
h1{font-size:1.3em;line-height:1.3}
label{display:block;margin:1.2em 0 .8em;color:#57606a}
input{display:block;box-sizing:border-box;width:100%;margin-top:.3em;padding:.5em;font:inherit;border:1px solid #57606a;border-radius:6px;background:#fff;color:#1f2328}
button{padding:.6em 1.4em;font:inherit;font-weight:600;border:0;border-radius:6px;background:#0969da;color:#fff;cursor:pointer}
button:focus-visible,input:focus-visible{outline:3px solid #bf8700;outline-offset:2px}
@media (prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}label{color:#9198a1}input{background:#161b22;color:#e6edf3;border-color:#9198a1}}
)";
}

}  // namespace tocsin::app
