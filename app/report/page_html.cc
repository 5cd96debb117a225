#include <array>
#include <cmath>
#include <string_view>

#include "app/report/base64.h"
#include "app/report/chart_svg.h"
#include "app/report/chart_table.h"
#include "app/report/heat_strip.h"
#include "app/report/page.h"
#include "core/html_text.h"
#include "core/identity.h"

namespace tocsin::app::report {
namespace {

constexpr const char* kStyle = R"css(
:root{color-scheme:light dark;--ink:#1b1f24;--quiet:#5a6370;--ground:#fff;--card:#f6f7f9;--rule:#d5dae0;--bad:#b42318;
--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#cc79a7;--c4:#b58900;--c5:#56b4e9;--c6:#7a5195;--c7:#6b7280}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ee;--quiet:#9aa4b1;--ground:#14171b;--card:#1d2127;--rule:#353c45;--bad:#ff8a80;
--c0:#4aa8e0;--c1:#f08a4b;--c2:#3ecfa3;--c3:#e29cc3;--c4:#e6c14a;--c5:#8fd0f5;--c6:#b08ed0;--c7:#a0a8b3}}
*{box-sizing:border-box}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--ground);max-width:1000px;margin:0 auto;padding:24px}
h1{font-size:1.6em;margin:0 0 8px}h2{font-size:1.2em;margin:32px 0 8px;border-bottom:1px solid var(--rule);padding-bottom:4px}
h1,h2,summary,p,li,dd{overflow-wrap:anywhere}td,th{overflow-wrap:break-word}h1,h2,td,th,summary,p,li,dd{unicode-bidi:isolate}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px;margin:0}dt{color:var(--quiet)}dd{margin:0}
body.goes-on{border-left:8px solid #e69f00;border-right:8px solid #e69f00}.as-of{border-left:8px solid #e69f00;padding:4px 10px;background:var(--card);font-weight:600}
nav{margin:16px 0;font-size:.9em}nav a{margin-right:12px}a{color:var(--c0)}
.scroll{overflow-x:auto}table{border-collapse:collapse;margin:8px 0;font-size:.92em}
th,td{text-align:left;vertical-align:top;padding:3px 12px 3px 0;border-bottom:1px solid var(--rule)}th{color:var(--quiet);font-weight:600}
td.n{text-align:right;font-variant-numeric:tabular-nums}
table.matrix td{text-align:right;padding:4px 8px;border:1px solid var(--rule);font-variant-numeric:tabular-nums}
table.matrix td.on{outline:2px solid var(--c2);outline-offset:-2px}
details{margin:6px 0;padding:4px 10px;background:var(--card);border-radius:4px}summary{cursor:pointer}
.important{color:var(--bad);font-weight:600}.quiet,footer{color:var(--quiet);font-size:.88em}
svg{width:100%;max-width:760px;height:auto;display:block;margin:8px 0}
svg text{font-size:11px;fill:var(--quiet)}.grid{stroke:var(--rule);stroke-width:.6}.axis{stroke:var(--quiet)}
.line{fill:none;stroke-width:1.8}.dashed{stroke-dasharray:5 3}.whisker{stroke:var(--quiet)}.median{stroke:var(--ink);stroke-width:2}.box{opacity:.55}
.c0{fill:var(--c0);stroke:var(--c0)}.c1{fill:var(--c1);stroke:var(--c1)}.c2{fill:var(--c2);stroke:var(--c2)}.c3{fill:var(--c3);stroke:var(--c3)}
.c4{fill:var(--c4);stroke:var(--c4)}.c5{fill:var(--c5);stroke:var(--c5)}.c6{fill:var(--c6);stroke:var(--c6)}.c7{fill:var(--c7);stroke:var(--c7)}
.line.c0,.line.c1,.line.c2,.line.c3,.line.c4,.line.c5,.line.c6,.line.c7{fill:none}
.swatch{display:inline-block;width:12px;height:12px;margin-right:5px;border-radius:2px}
.swatch.c0{background:var(--c0)}.swatch.c1{background:var(--c1)}.swatch.c2{background:var(--c2)}.swatch.c3{background:var(--c3)}
.swatch.c4{background:var(--c4)}.swatch.c5{background:var(--c5)}.swatch.c6{background:var(--c6)}.swatch.c7{background:var(--c7)}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:2px 16px;margin:0;padding:0;font-size:.88em}
.g-info{fill:var(--c5)}.g-warning{fill:var(--c4)}.g-error{fill:var(--c1)}.g-critical{fill:var(--bad)}
.h0{background:transparent}.h1{background:rgba(0,114,178,.12)}.h2{background:rgba(0,114,178,.25)}.h3{background:rgba(0,114,178,.4)}.h4{background:rgba(0,114,178,.6)}
.heat{image-rendering:pixelated}.band{opacity:.2;stroke:none}.notfinite{fill:var(--bad)}.mark{stroke:currentColor;stroke-width:1;stroke-dasharray:3 2}
svg g[class] text{fill:currentColor}.m-sign{color:var(--c4)}.m-alarm{color:var(--bad)}.m-stop{color:var(--c0)}.m-checkpoint{color:var(--c2)}
.marks{list-style:none;margin:0;padding:0;font-size:.88em}figure{margin:20px 0}figcaption{font-weight:600}figure p{margin:2px 0}
@page{margin:14mm}
@media print{nav{display:none}details{background:none}body{max-width:none;padding:0}figure,tr,svg{break-inside:avoid}
details::details-content{content-visibility:visible;height:auto}}
@media(max-width:600px){body{padding:12px}figure svg text{font-size:19px}dl{grid-template-columns:1fr}dt{margin-top:6px}}
)css";

std::string html_of(const std::vector<Block>& blocks);

bool is_number(const std::string& cell) {
  return !cell.empty() && cell.find_first_not_of("0123456789.-+e%") == std::string::npos &&
         cell.find_first_of("0123456789") != std::string::npos;
}

std::string row(const std::vector<std::string>& cells, const char* tag) {
  std::string out = "<tr>";
  for (const std::string& cell : cells) {
    const bool number = tag[1] == 'd' && is_number(cell);
    out += std::string("<") + tag + (number ? " class=\"n\">" : ">") + core::html_escaped(cell) +
           "</" + tag + ">";
  }
  return out + "</tr>";
}

/// The numbers of a chart, for those who do not see it.
std::string numbers(const Table& table);

std::string html_of(const Paragraph& block) {
  return std::string(block.important ? "<p class=\"important\">" : "<p>") +
         core::html_escaped(block.text) + "</p>";
}

std::string html_of(const Table& block) {
  std::string out = "<div class=\"scroll\"><table>";
  if (!block.head.empty()) out += "<thead>" + row(block.head, "th") + "</thead>";
  out += "<tbody>";
  for (const auto& cells : block.rows) out += row(cells, "td") + "\n";
  return out + "</tbody></table></div>";
}

std::string numbers(const Table& table) {
  return "<details><summary>as a table</summary>" + html_of(table) + "</details>";
}

template <typename Chart>
std::string html_of(const Chart& block) {
  return svg(block) + numbers(table_of(block));
}

std::string html_of(const Matrix& block) {
  double most = 0;
  for (const auto& cells : block.cells) {
    for (const double cell : cells) most = std::isfinite(cell) ? std::fmax(most, cell) : most;
  }
  std::string out = "<div class=\"scroll\"><table class=\"matrix\"><thead><tr><th>" +
                    core::html_escaped(block.rows + " ↓ " + block.columns + " →") + "</th>";
  for (const std::string& name : block.names) out += "<th>" + core::html_escaped(name) + "</th>";
  out += "</tr></thead><tbody>";
  for (std::size_t i = 0; i < block.cells.size(); ++i) {
    out += "<tr><th>" + core::html_escaped(i < block.names.size() ? block.names[i] : "") + "</th>";
    for (std::size_t j = 0; j < block.cells[i].size(); ++j) {
      const double cell = block.cells[i][j];
      const double share = most > 0 && cell > 0 ? cell / most : 0;
      const int heat = share <= 0 ? 0 : 1 + static_cast<int>(std::fmin(share * 4, 3.0));
      out += "<td class=\"h" + std::to_string(heat) + (i == j ? " on" : "") + "\">" +
             number_text(cell) + "</td>";
    }
    out += "</tr>";
  }
  return out + "</tbody></table></div>";
}

std::string html_of(const CurveChart& block) {
  std::string out = "<figure><figcaption>" + core::html_escaped(block.title) + "</figcaption>";
  for (const auto& series : block.series) {
    out += "<p class=\"quiet\">" + core::html_escaped(sentence_of(block, series)) + "</p>";
  }
  return out + svg(block) + numbers(table_of(block)) + "</figure>";
}

std::string html_of(const HeatStrip& block) {
  return "<figure><figcaption>" + core::html_escaped(block.title) +
         "</figcaption><p class=\"quiet\">" + core::html_escaped(sentence_of(block)) + "</p>" +
         svg(block) + "<p class=\"quiet\">dark is low, yellow high" +
         (block.logarithmic ? ", on a logarithmic scale" : "") +
         "; red: not finite; nothing: no data</p>" + numbers(table_of(block)) + "</figure>";
}

std::string html_of(const Group& block) {
  return "<details><summary>" + core::html_escaped(block.title) + "</summary>" +
         html_of(block.blocks) + "</details>";
}

std::string html_of(const std::vector<Block>& blocks) {
  std::string out;
  for (const Block& block : blocks) {
    out += std::visit([](const auto& one) { return html_of(one); }, block.of) + "\n";
  }
  return out;
}

/// SHA-256 of the style in base64, as a policy names it.
std::string hash_of_style() {
  const auto digest = core::sha256(kStyle);
  return base64({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

/// Data, which no browser runs; '<' is written so that no text of a training ends the element.
std::string inert_json(const std::string& json) {
  if (json.empty()) return "";
  std::string out = "<script type=\"application/json\" id=\"report\">";
  for (const char one : json) out += one == '<' ? std::string("\\u003c") : std::string(1, one);
  return out + "</script>\n";
}

std::string as_of(const Page& page) {
  if (page.as_of.empty()) return "";
  return "<p class=\"as-of\">As of " + core::html_escaped(page.as_of) +
         ": the run has not ended, and its numbers will change.</p>\n";
}

}  // namespace

std::string page_policy() {
  return "default-src 'none'; style-src 'sha256-" + hash_of_style() +
         "'; img-src data:; base-uri 'none'; form-action 'none'";
}

std::string page_html(const Page& page) {
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta "
      "http-equiv=\"Content-Security-Policy\" content=\"" +
      page_policy() +
      "\">\n<meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\">\n<meta name=\"referrer\" "
      "content=\"no-referrer\">\n<title>" +
      core::html_escaped(page.title) + "</title>\n<style>" + kStyle + "</style></head><body" +
      (page.as_of.empty() ? "" : " class=\"goes-on\"") + ">\n<h1>" +
      core::html_escaped(page.title) + "</h1>\n" + as_of(page) + "<dl>";
  for (const auto& [name, value] : page.facts) {
    out += "<dt>" + core::html_escaped(name) + "</dt><dd>" + core::html_escaped(value) + "</dd>\n";
  }
  out += "</dl>\n<nav>";
  for (std::size_t i = 0; i < page.sections.size(); ++i) {
    out += "<a href=\"#s" + std::to_string(i + 1) + "\">" +
           core::html_escaped(page.sections[i].title) + "</a>\n";
  }
  out += "</nav>\n";
  for (std::size_t i = 0; i < page.sections.size(); ++i) {
    out += "<section id=\"s" + std::to_string(i + 1) + "\"><h2>" +
           core::html_escaped(page.sections[i].title) + "</h2>\n" +
           html_of(page.sections[i].blocks) + "</section>\n";
  }
  return out + "<footer><p>" + core::html_escaped(page.note) + "</p></footer>\n" +
         inert_json(page.json) + "</body></html>\n";
}

}  // namespace tocsin::app::report
